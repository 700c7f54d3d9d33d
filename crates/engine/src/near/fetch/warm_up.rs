//! The fetch before the measurement: by the same mover, alone, so that its time can be compared with later fetches. A
//! file that comes quickly is fetched a few more times: later fetches share their connection, or are requested ahead.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use goodput_files::{Conversation, FileError, Ready, Wait};
use goodput_model::{Fetch, Known, Plan, Role, Seconds, Transport};
use goodput_mover::{
    Awaited, BodySource, FlowConfig, Gate, MoveError, RunningFlow, Stop, for_role,
};
use rustix::event::{PollFd, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::bodies::{OneBody, Question};
use super::connections::PastConnections;
use super::readiness::events;
use super::socket_of;
use crate::control::target::Target;
use crate::error::EngineError;
use crate::run::traffic::byte_limit;

/// How long payload is read. The measurement itself reads the rest.
const MAX_READ_TIME: Duration = Duration::from_secs(10);
/// Most further fetches like the first, and how long they may take together.
const MAX_FURTHER_FETCHES: usize = 20;
const MAX_FURTHER_TIME: Duration = Duration::from_millis(500);
/// How long one of them may take: fewer than five prove nothing about how they vary.
const MAX_FURTHER_FETCH_TIME: Duration = Duration::from_millis(100);
/// How often to check for its end. The time of the end is known exactly anyway.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// How long a wait lasts before it checks whether anyone still waits for the result.
const WAIT_SLICE_TIME: Duration = Duration::from_millis(100);

/// Waits as long as someone waits for the result.
pub struct Patient<'a>(pub &'a Awaited);

impl Wait for Patient<'_> {
    fn wait(&self, socket: BorrowedFd<'_>, ready: Ready, until: Instant) -> Result<(), FileError> {
        self.0.check().map_err(|_| FileError::Stopped)?;
        wait_at_most(socket, ready, until)
    }

    fn rest(&self, until: Instant) -> Result<(), FileError> {
        loop {
            self.0.check().map_err(|_| FileError::Stopped)?;
            match until.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Ok(()),
                left => std::thread::sleep(left.min(WAIT_SLICE_TIME)),
            }
        }
    }
}

/// Waits until `socket` is ready or until `until`, and for a moment at most.
pub fn wait_at_most(socket: BorrowedFd<'_>, ready: Ready, until: Instant) -> Result<(), FileError> {
    let events = events(ready);
    let left = until.saturating_duration_since(Instant::now()).min(WAIT_SLICE_TIME);
    let left = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    match poll(&mut [PollFd::from_borrowed_fd(socket, events)], Some(&left)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(cause) => {
            Err(FileError::Io { operation: "wait for the server".into(), cause: cause.into() })
        }
    }
}

/// What came before the measurement.
pub struct WarmUp {
    pub first: Known<Fetch>,
    /// Length of the file, as its server announced it, bytes.
    pub announced: Option<u64>,
    /// Times of further fetches like it, seconds; empty for a file that takes long.
    pub further_s: Vec<f64>,
    /// Already hung up.
    pub conversation: Box<dyn Conversation>,
}

impl WarmUp {
    /// For a file that an earlier run has fetched.
    pub fn none(conversation: Box<dyn Conversation>) -> Self {
        let first = Known::missing("an earlier run made the first fetch");
        Self { first, announced: None, further_s: Vec::new(), conversation }
    }
}

/// Fetches the file and discards it: once and, if that takes little time, a few times more.
pub fn fetch(
    target: &Target,
    conversation: Box<dyn Conversation>,
    plan: &Plan,
    awaited: &Awaited,
) -> Result<WarmUp, EngineError> {
    let once = fetch_once(target, conversation, plan, awaited, MAX_READ_TIME)?;
    let Once { fetch: first, announced, mut conversation } = once;
    let first = first.ok_or_else(|| {
        let time = Seconds(MAX_READ_TIME.as_secs_f64());
        let why = format!("the server answered, and sent no payload for {time}");
        EngineError::File { target: target.text.clone(), why: FileError::TimedOut(why) }
    })?;
    let (mut further_s, until) = (Vec::new(), Instant::now() + MAX_FURTHER_TIME);
    while first.whole && further_s.len() < MAX_FURTHER_FETCHES {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let Once { fetch: next, conversation: again, .. } =
            fetch_once(target, conversation, plan, awaited, left.min(MAX_FURTHER_FETCH_TIME))?;
        conversation = again;
        match next {
            Some(next) if next.whole && next.bytes == first.bytes => further_s.push(next.took_s),
            _ => break,
        }
    }
    Ok(WarmUp { first: Known::Value(first), announced, further_s, conversation })
}

/// One fetch.
struct Once {
    /// `None` if it was given up before payload came.
    fetch: Option<Fetch>,
    /// Length of the file, as its server announced it, bytes.
    announced: Option<u64>,
    /// Already hung up.
    conversation: Box<dyn Conversation>,
}

/// Fetches the file once, or as much as a flow of the plan reads, for this time at most.
fn fetch_once(
    target: &Target,
    mut conversation: Box<dyn Conversation>,
    plan: &Plan,
    awaited: &Awaited,
    most: Duration,
) -> Result<Once, EngineError> {
    let failed = |why: FileError| EngineError::File { target: target.text.clone(), why };
    let limit_bytes = byte_limit(plan, 0, 1);
    limit_bytes.into_iter().for_each(|bytes| conversation.want(bytes));
    conversation.connect(&Patient(awaited)).map_err(failed)?;
    let socket = socket_of(conversation.as_ref())?;
    let shared = Arc::new(Mutex::new(Question::new(conversation)));
    let answered = Arc::new(OnceLock::new());
    let one = OneBody { question: Arc::clone(&shared), answered: Arc::clone(&answered) };
    let source = BodySource::new(one, PastConnections::default());
    let chunk = usize::try_from(plan.chunk_bytes.0).unwrap_or(usize::MAX);
    let config = FlowConfig {
        bodies: Some(Arc::new(source)),
        limit_bytes,
        ..FlowConfig::new(Role::Receiver, Transport::Tcp, chunk)
    };
    // Only measured payload goes to a sink.
    let mut to_nothing = plan.clone();
    to_nothing.storage.sink = None;
    let mover = for_role(&to_nothing, Role::Receiver);
    let mover = mover.map_err(|why| EngineError::Flow(format!("near end: {why}")))?.mover;
    let stop = Arc::new(Stop::new().map_err(EngineError::io("make the stop signal of a flow"))?);
    let gate = Arc::new(Gate::default());
    gate.open();
    let running = goodput_mover::start(mover, config, socket, gate, Arc::clone(&stop))
        .map_err(EngineError::io("start the thread of the first fetch"))?;
    let counters = Arc::clone(running.counters());
    let cut = await_end(&running, &stop, &answered, most, awaited);
    let ended = running.finished_at().unwrap_or_else(Instant::now);
    let cpu_wait_us = running.cpu_wait_us().map(|us| us as f64);
    let moved = running.join();
    let mut question = question(&shared);
    if let Some(why) = question.failure.take() {
        return Err(failed(why));
    }
    // A fetch that was given up may have stalled; the measurement will show whether it still does.
    if !cut {
        moved.map_err(|why| failed(broken_off(&why)))?;
    }
    let nothing = || EngineError::Flow("the file server's connection is gone".into());
    let mut conversation = question.conversation.take().ok_or_else(nothing)?;
    conversation.hang_up();
    let bytes = counters.bytes();
    let announced = question.announced;
    let fetch = match question.asked_and_answered {
        Some((asked, answered)) if bytes > 0 => {
            let waited = answered.saturating_duration_since(asked);
            Some(Fetch {
                bytes,
                whole: !cut,
                first_byte_us: Known::Value(waited.as_secs_f64() * 1e6),
                took_s: ended.saturating_duration_since(asked).as_secs_f64(),
                cpu_wait_us,
            })
        }
        _ if cut => None,
        _ => {
            let empty = "the file is empty: there is nothing to measure";
            return Err(failed(FileError::Refused(empty.into())));
        }
    };
    Ok(Once { fetch, announced, conversation })
}

/// Why a fetch ended in the middle. A server may forbid what it has allowed before.
fn broken_off(why: &MoveError) -> FileError {
    match why.is_not_permitted() {
        true => FileError::NotPermitted(why.to_string()),
        false => FileError::Protocol(why.to_string()),
    }
}

/// Waits until a fetch has ended, or ends it once its payload has come for this time. Returns whether it was cut off.
fn await_end(
    running: &RunningFlow,
    stop: &Stop,
    answered: &OnceLock<Instant>,
    most: Duration,
    awaited: &Awaited,
) -> bool {
    let mut cut = false;
    while !running.is_finished() {
        if answered.get().is_some_and(|answered| answered.elapsed() >= most) {
            cut = true;
            stop.finish(Duration::ZERO);
        }
        if awaited.check().is_err() {
            stop.abort();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    cut
}

fn question(shared: &Mutex<Question>) -> MutexGuard<'_, Question> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use goodput_mover::BodyFault;

    use super::*;

    #[test]
    fn what_is_forbidden_in_the_middle_keeps_its_exit_code() {
        let body = |fault| MoveError::Body { flow: 0, why: "READ: no".into(), fault };
        assert!(broken_off(&body(BodyFault::Forbidden)).not_permitted());
        assert!(!broken_off(&body(BodyFault::Peer)).not_permitted());
    }
}
