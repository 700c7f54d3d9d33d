//! What flows need from this process and this host, and what is available: descriptors, locked memory, memory. A
//! shortage that is known in advance is reported before the test begins.

use std::{fs, io};

use goodput_model::{Bytes, PAGE_BYTES, Plan, Role, Transport};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use crate::buffer_pool::BUFFER_BYTES;
use crate::error::Unsupported;

/// Most descriptors that a measurement takes beside its flows: its signals, and the files of /proc that it reads during
/// the run.
const OTHER_DESCRIPTORS: u64 = 16;

/// What one flow takes, beside its socket and its thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Descriptors.
    pub descriptors: u64,
    /// Memory that can't be swapped out, bytes: the minimum to make any progress.
    pub locked_bytes: u64,
    /// Memory that it touches, bytes.
    pub memory_bytes: u64,
    /// What its pipe must hold, bytes.
    pub pipe_bytes: u64,
}

impl Needs {
    /// A flow that sends from a file: that of the plan, or one of its own in memory.
    pub fn own_file(plan: &Plan) -> Self {
        let memory_bytes = if plan.storage.source.is_some() { 0 } else { plan.chunk_bytes.0 };
        Self { descriptors: 1, memory_bytes, ..Self::default() }
    }

    /// A flow that receives into a chunk of memory, or that reads a source into one. Flows that send from memory share
    /// theirs. Flows that receive streams share buffers (`buffer_pool.rs`), or have small ones (`refilled.rs`).
    pub fn chunk(plan: &Plan, role: Role) -> Self {
        let (chunk, stores) = (plan.chunk_bytes.0, plan.storage.sink.is_some());
        let memory_bytes = match role {
            Role::Sender if plan.storage.source.is_none() => 0,
            Role::Sender => chunk,
            // The sink's own buffer, with its alignment.
            Role::Receiver if stores => {
                chunk.max(BUFFER_BYTES as u64).saturating_add(2 * PAGE_BYTES)
            }
            Role::Receiver if plan.transport == Transport::Tcp => 0,
            Role::Receiver => chunk,
        };
        Self { memory_bytes, ..Self::default() }
    }

    /// The larger of both, for each need.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            descriptors: self.descriptors.max(other.descriptors),
            locked_bytes: self.locked_bytes.max(other.locked_bytes),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            pipe_bytes: self.pipe_bytes.max(other.pipe_bytes),
        }
    }
}

/// Bytes that the kernel counts for a zero-copy send of `bytes` (`mm_account_pinned_pages`, net/core/skbuff.c of Linux
/// 6.18).
pub(crate) fn pinned_bytes(bytes: u64) -> u64 {
    (bytes / PAGE_BYTES + 2) * PAGE_BYTES
}

/// What is available. `None`: no limit, or an unreadable one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    /// `RLIMIT_NOFILE`, and how many descriptors are in use.
    descriptors: Option<(u64, u64)>,
    /// `RLIMIT_MEMLOCK`, if this process is bound by it.
    locked_bytes: Option<u64>,
    /// `MemAvailable` of /proc/meminfo.
    available_bytes: Option<u64>,
    /// What all pipes of this user may hold together (sysctl fs.pipe-user-pages-soft), if this
    /// process is bound by it.
    pipe_bytes: Option<u64>,
}

/// Raises this process's limit on open files to its hard limit, and returns that; `None`: there is none. Each flow and
/// each client needs some, and the soft limit is often 1024.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(maximum)
}

/// Whether this process can have what the flows of `plan` need in a role that `mover` supports.
pub(crate) fn check(mover: &str, each: Needs, plan: &Plan) -> Result<(), Unsupported> {
    Limits::here().allow(mover, each, plan)
}

impl Limits {
    fn here() -> Self {
        let open = fs::read_dir("/proc/self/fd").map(|folder| folder.count() as u64);
        let has = capabilities(None).map_or(CapabilitySet::empty(), |has| has.effective);
        let may_lock = has.contains(CapabilitySet::IPC_LOCK);
        // `too_many_pipe_buffers_soft`, fs/pipe.c of Linux 6.18.
        let may_pipe = has.intersects(CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_ADMIN);
        let pages = fs::read_to_string("/proc/sys/fs/pipe-user-pages-soft").ok();
        let pages =
            pages.and_then(|text| text.trim().parse().ok()).filter(|pages: &u64| *pages > 0);
        Self {
            descriptors: getrlimit(Resource::Nofile).current.zip(open.ok()),
            locked_bytes: getrlimit(Resource::Memlock).current.filter(|_| !may_lock),
            pipe_bytes: pages.filter(|_| !may_pipe).map(|pages| pages.saturating_mul(PAGE_BYTES)),
            available_bytes: available_bytes(),
        }
    }

    fn allow(&self, mover: &str, each: Needs, plan: &Plan) -> Result<(), Unsupported> {
        let obstacle = self
            .descriptors(each, plan)
            .or_else(|| self.locked(each, plan))
            .or_else(|| self.pipes(each, plan))
            .or_else(|| self.memory(each, plan));
        let unsupported = |(why, needs)| Unsupported { mover: mover.into(), why, needs };
        obstacle.map_or(Ok(()), |obstacle| Err(unsupported(obstacle)))
    }

    fn descriptors(&self, each: Needs, plan: &Plan) -> Option<Obstacle> {
        let sockets = plan.flow_plans().len() as u64;
        let takes = sockets + u64::from(plan.flows) * each.descriptors + OTHER_DESCRIPTORS;
        let (limit, open) = self.descriptors.filter(|(limit, open)| open + takes > *limit)?;
        let all = open + takes;
        Some((
            format!(
                "it needs {takes} file descriptors for {}; {open} are open, and this process may have {limit} (RLIMIT_NOFILE)",
                count(sockets)
            ),
            format!("raise the limit to {all} (ulimit -n {all}), or use fewer flows"),
        ))
    }

    fn locked(&self, each: Needs, plan: &Plan) -> Option<Obstacle> {
        let takes = u64::from(plan.flows) * each.locked_bytes;
        let limit = self.locked_bytes.filter(|limit| takes > *limit)?;
        let kib = takes.div_ceil(1024);
        Some((
            format!(
                "it locks at least {takes} bytes of memory for {}; this process may lock {limit} (RLIMIT_MEMLOCK)",
                count(plan.flows.into())
            ),
            format!(
                "raise the limit to {kib} KiB or more (ulimit -l {kib}), choose a smaller --chunk or \
                 fewer flows"
            ),
        ))
    }

    fn pipes(&self, each: Needs, plan: &Plan) -> Option<Obstacle> {
        let takes = u64::from(plan.flows) * each.pipe_bytes.next_multiple_of(PAGE_BYTES);
        let limit = self.pipe_bytes.filter(|limit| takes > *limit)?;
        Some((
            format!(
                "it needs pipes that hold {takes} bytes for {}; this user may have {limit} (sysctl fs.pipe-user-pages-soft, {} pages)",
                count(plan.flows.into()),
                limit / PAGE_BYTES
            ),
            format!(
                "raise it to {} or more, choose a smaller --chunk or fewer flows",
                takes / PAGE_BYTES
            ),
        ))
    }

    fn memory(&self, each: Needs, plan: &Plan) -> Option<Obstacle> {
        let takes = u64::from(plan.flows).saturating_mul(each.memory_bytes);
        let available = self.available_bytes.filter(|available| takes > *available)?;
        Some((
            format!(
                "it keeps {} in memory for {} with a chunk of {}; this host has {} available",
                Bytes(takes),
                count(plan.flows.into()),
                plan.chunk_bytes,
                Bytes(available)
            ),
            "choose a smaller --chunk or fewer flows".into(),
        ))
    }
}

fn count(flows: u64) -> String {
    if flows == 1 { "1 flow".into() } else { format!("{flows} flows") }
}

/// What prevents it, and what would be needed.
type Obstacle = (String, String);

/// Memory of this host that is available without swapping, bytes; `None` if unreadable.
pub(crate) fn available_bytes() -> Option<u64> {
    available(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// The same from the text of proc_meminfo(5).
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: Limits =
        Limits { descriptors: None, locked_bytes: None, available_bytes: None, pipe_bytes: None };
    const EACH: Needs =
        Needs { descriptors: 2, locked_bytes: 100_000, memory_bytes: 1 << 20, pipe_bytes: 65_536 };

    fn refused(limits: Limits, flows: u16) -> String {
        let plan = Plan { flows, ..Plan::standard() };
        limits.allow("splice", EACH, &plan).expect_err("it is too little").to_string()
    }

    #[test]
    fn what_is_too_low_is_named_with_its_value_and_with_what_is_needed() {
        let why = refused(Limits { descriptors: Some((64, 10)), ..PLENTY }, 20);
        assert!(why.contains("it needs 76 file descriptors for 20 flows; 10 are open"), "{why}");
        assert!(why.contains("64 (RLIMIT_NOFILE); raise the limit to 86 (ulimit -n 86)"), "{why}");
        let why = refused(Limits { locked_bytes: Some(150_000), ..PLENTY }, 2);
        assert!(why.contains("at least 200000 bytes of memory for 2 flows"), "{why}");
        assert!(why.contains("150000 (RLIMIT_MEMLOCK)") && why.contains("ulimit -l 196"), "{why}");
        let why = refused(Limits { pipe_bytes: Some(65_536), ..PLENTY }, 2);
        assert!(why.contains("fs.pipe-user-pages-soft, 16 pages); raise it to 32"), "{why}");
        let why = refused(Limits { available_bytes: Some(1 << 20), ..PLENTY }, 2);
        assert!(why.contains("smaller --chunk or fewer flows"), "{why}");
    }

    #[test]
    fn what_is_just_enough_is_enough() {
        let plan = Plan { flows: 20, ..Plan::standard() };
        let limits = Limits {
            descriptors: Some((86, 10)),
            locked_bytes: Some(2_000_000),
            available_bytes: Some(20 << 20),
            pipe_bytes: Some(20 << 16),
        };
        assert_eq!(limits.allow("splice", EACH, &plan), Ok(()));
        assert_eq!(PLENTY.allow("splice", EACH, &plan), Ok(()));
        let copy = crate::find("copy").expect("it is in the list");
        let plan = Plan::standard();
        assert_eq!(check(copy.id(), copy.needs(&plan, Role::Sender), &plan), Ok(()));
    }

    #[test]
    fn only_what_a_flow_keeps_for_itself_is_counted() {
        let takes = |change: &dyn Fn(&mut Plan), role| {
            let mut plan = Plan::standard();
            change(&mut plan);
            Needs::chunk(&plan, role).memory_bytes
        };
        let large = 16 << 20;
        let chunk = |bytes| move |plan: &mut Plan| plan.chunk_bytes = Bytes(bytes);
        assert_eq!(takes(&chunk(large), Role::Sender), 0, "one mapping for all");
        assert_eq!(takes(&chunk(large), Role::Receiver), 0, "buffers are pooled");
        let sink = |plan: &mut Plan| {
            let name = "x".into();
            plan.storage.sink = Some(goodput_model::Sink { name, direct: false, fsync: false });
        };
        assert!(takes(&sink, Role::Receiver) > BUFFER_BYTES as u64);
    }

    #[test]
    fn the_memory_of_the_host_is_read() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   20000000 kB\n";
        assert_eq!(available(text), Some(20_000_000 * 1024));
        assert_eq!(available("MemAvailable: many\n"), None);
        assert_eq!(pinned_bytes(131_072), 34 * 4096);
    }
}
