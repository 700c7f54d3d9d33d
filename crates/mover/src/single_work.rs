//! What one CPU could carry if a single kind of work were its only work: copying, passing references to pages, or
//! calling the kernel. It is measured on a thread of its own, before payload moves.

use std::fs::OpenOptions;
use std::hint::black_box;
use std::io;
use std::iter::repeat_with;
use std::os::fd::OwnedFd;
use std::thread::Builder;
use std::time::{Duration, Instant};

use goodput_model::{Bytes, HostWork, Known, Missing, Plan, Role, WorkLimit};
use rustix::pipe::IoSliceRaw;

use crate::affinity;
use crate::choice;
use crate::error::Unsupported;
use crate::pages::Pages;
use crate::pipe::Pipe;
use crate::reference::{call_cost, middle, repeat_for};

/// How long each kind of work is measured. Most of it passes without the scheduler's interference (sched_base_slice, 1 to 3 ms),
/// and the median leaves out the rest.
const MEASURING_TIME: Duration = Duration::from_millis(200);

/// Memory into which copies go in turn, bytes: the default greatest size of a send buffer (`net.ipv4.tcp_wmem`, tcp(7)),
/// whose pages a sender uses again once they are acknowledged.
const TARGET_BYTES: usize = 4 << 20;

/// Least bytes that pass between two looks at the clock.
const BATCH_BYTES: usize = 1 << 20;

/// The limits of each kind of work.
#[derive(Debug, Clone, PartialEq)]
pub struct SingleWork {
    /// Copying pieces of one write from one buffer into 4 MiB.
    pub copying: Known<WorkLimit>,
    /// Passing references to pages of one write: vmsplice(2), then splice(2) to /dev/null.
    pub page_references: Known<WorkLimit>,
    /// One empty system call for each write.
    pub empty_calls: Known<WorkLimit>,
}

impl SingleWork {
    /// Limits that nobody could measure, because of `why`.
    pub fn unmeasured(why: &str) -> Self {
        let missing = || Known::missing(why.to_string());
        Self { copying: missing(), page_references: missing(), empty_calls: missing() }
    }
}

/// Measures all kinds of work, one after the other, for writes of `chunk` bytes. Takes 0.6 s. The work is done on `cpu`,
/// or on the CPUs that the scheduler chooses.
///
/// # Errors
/// If the system refuses a thread.
pub fn measure(chunk: Bytes, cpu: Option<u16>) -> io::Result<SingleWork> {
    measure_for(MEASURING_TIME, chunk, cpu)
}

fn measure_for(time: Duration, chunk: Bytes, cpu: Option<u16>) -> io::Result<SingleWork> {
    let bytes = usize::try_from(chunk.0).unwrap_or(usize::MAX).max(1);
    let all = move || {
        if let Some(cpu) = cpu
            && let Err(cause) = affinity::pin(cpu)
        {
            return SingleWork::unmeasured(&format!("can't run on CPU {cpu}: {cause}"));
        }
        let passed = page_references(bytes, time)
            .map_err(|cause| Missing::because(format!("can't pass {chunk} by a pipe: {cause}")));
        SingleWork {
            copying: copying(bytes, time),
            page_references: passed.unwrap_or_else(Known::Missing),
            empty_calls: limit(bytes, call_cost(time).nanoseconds),
        }
    };
    let thread = Builder::new().name("single-work".into()).spawn(all)?;
    Ok(thread.join().unwrap_or_else(|_| SingleWork::unmeasured("the measuring thread panicked")))
}

/// The least work that the sending or receiving of a plan does for payload here.
///
/// # Errors
/// If no mover can run the plan here.
pub fn work_of(plan: &Plan, role: Role) -> Result<HostWork, Unsupported> {
    Ok(choice::for_role(plan, role)?.mover.work(role))
}

fn limit(piece_bytes: usize, piece_ns: f64) -> Known<WorkLimit> {
    WorkLimit::of(Bytes(piece_bytes as u64), piece_ns)
        .map_or_else(|| Known::missing("it took no time that the clock can show"), Known::Value)
}

/// Copies from a buffer of `chunk` bytes, or of all of the target if the chunk is longer.
fn copying(chunk: usize, time: Duration) -> Known<WorkLimit> {
    let piece = chunk.min(TARGET_BYTES);
    // Neither is zero: the kernel would map all addresses to one page of zeros.
    let (source, mut target) = (vec![0x55u8; piece], vec![0xaau8; TARGET_BYTES]);
    let mut pass = || {
        let began = Instant::now();
        for room in target.chunks_exact_mut(piece) {
            room.copy_from_slice(black_box(&source));
        }
        black_box(&mut target);
        began.elapsed().as_nanos() as f64 / (TARGET_BYTES / piece) as f64
    };
    pass();
    limit(piece, middle(&repeat_for(time, pass)))
}

fn page_references(chunk: usize, time: Duration) -> io::Result<Known<WorkLimit>> {
    let null = OwnedFd::from(OpenOptions::new().write(true).open("/dev/null")?);
    let mut pipe = Pipe::roomy(chunk, true)?;
    let pages = Pages::payload(&goodput_framing::goodput(), chunk)?;
    let count = pipe.chunks(chunk);
    let parts: Vec<_> = repeat_with(|| IoSliceRaw::from_slice(&pages)).take(count).collect();
    let mut failed = None;
    let mut batch = || {
        let (began, mut passed) = (Instant::now(), 0);
        while passed < BATCH_BYTES && failed.is_none() {
            match pass_once(&mut pipe, &parts, &null) {
                Ok(bytes) => passed += bytes,
                Err(cause) => failed = Some(cause),
            }
        }
        began.elapsed().as_nanos() as f64 * chunk as f64 / passed as f64
    };
    batch();
    let times = repeat_for(time, batch);
    match failed {
        Some(cause) => Err(cause),
        None => Ok(limit(chunk, middle(&times))),
    }
}

/// Fills the pipe and empties it. Returns the number of bytes that passed.
fn pass_once(pipe: &mut Pipe, parts: &[IoSliceRaw<'_>], null: &OwnedFd) -> io::Result<usize> {
    pipe.fill(parts)?;
    let filled = pipe.filled;
    while pipe.filled > 0 {
        pipe.empty_into(null, pipe.filled)?;
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_work_gives_a_limit_for_writes_of_any_size() {
        let cpu = *crate::allowed_cpus().unwrap().last().unwrap();
        for chunk in [1, 1472, 70_001, 128 << 10] {
            let found = measure_for(Duration::ZERO, Bytes(chunk), Some(cpu)).unwrap();
            let kinds = [&found.copying, &found.page_references, &found.empty_calls];
            for limit in kinds.map(|limit| *limit.value().unwrap_or_else(|| panic!("{limit:?}"))) {
                assert_eq!(limit.piece_bytes, Bytes(chunk));
                assert!(limit.bits_per_s.0 > 1e6, "{limit:?}");
            }
        }
    }

    /// No pipe is as large, and nothing is allocated for it.
    #[test]
    fn what_no_pipe_holds_has_its_reason() {
        assert!(page_references(usize::MAX >> 1, Duration::ZERO).is_err());
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_the_reason() {
        let found = measure_for(Duration::ZERO, Bytes(100), Some(u16::MAX)).unwrap();
        assert!(matches!(found.copying, Known::Missing(why) if why.missing.contains("CPU 65535")));
    }

    #[test]
    fn each_way_to_move_payload_names_its_work() {
        let work = |mover: &str, role| {
            work_of(&Plan { mover: mover.into(), ..Plan::standard() }, role).unwrap()
        };
        assert_eq!(work("copy", Role::Sender), HostWork::Copying);
        assert_eq!(work("splice", Role::Sender), HostWork::PageReferences);
        assert_eq!(work("splice", Role::Receiver), HostWork::Copying, "the other side is copy");
        assert_eq!(work("discard", Role::Receiver), HostWork::EmptyCalls);
    }
}
