//! The processes that hold sockets, and what their threads do (proc_pid_fd(5), proc_pid_task(5)).

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;

use goodput_model::{Missing, plain_char};

use crate::foreign::socket_inodes_of;
use crate::parse::process::{parse_cpu, parse_state};
use crate::parse::schedstat;

/// Most threads of a process that are read.
const MAX_THREADS: usize = 512;

/// A process that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// Its name, which the kernel cuts to 15 bytes; what can't be printed is replaced.
    pub name: String,
}

/// The current state of one thread of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Its id.
    pub tid: u32,
    /// State, as in proc_pid_stat(5): `R`, `S`, `D`, `T` and others.
    pub state: char,
    /// CPU time, user and system, in steps of a clock tick, microseconds.
    pub cpu_us: u64,
    /// Time it was ready to run but waited for a CPU, microseconds; `None` if the kernel keeps no schedstat.
    pub cpu_wait_us: Option<u64>,
}

impl Owner {
    /// The process `pid`, if there is one.
    pub fn of(pid: u32) -> Option<Self> {
        let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
        Some(Self { pid, name: printable(&name) })
    }
}

/// A process's name on one line. Any user may put anything into it, such as control sequences of a terminal (prctl(2),
/// `PR_SET_NAME`).
fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(name));
    // A tab would shift the columns of a list.
    text.chars().map(|c| if c == '\t' { ' ' } else { plain_char(c) }).collect()
}

/// The process that holds each socket of `inodes`, as far as permitted: without root, other users' processes are hidden.
/// Of several, as after fork(2), it is the oldest.
pub fn holders_of(inodes: &BTreeSet<u64>) -> HashMap<u64, Owner> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut holders = HashMap::new();
    for pid in pids {
        let Ok(held) = socket_inodes_of(pid) else { continue };
        let mut wanted = held.intersection(inodes).peekable();
        let owner = wanted.peek().and_then(|_| Owner::of(pid));
        for (inode, owner) in wanted.zip(owner.iter().cycle()) {
            holders.entry(*inode).or_insert_with(|| owner.clone());
        }
    }
    holders
}

/// Whether process `pid` is in the network namespace of the calling thread; only sockets of this namespace can be
/// listed. Needs the rights of its user or of root.
pub fn shares_network_namespace(pid: u32) -> Result<bool, Missing> {
    let namespace = |process: &str| {
        fs::read_link(format!("/proc/{process}/ns/net")).map_err(|error| {
            Missing::because(format!("can't read /proc/{process}/ns/net: {error}"))
        })
    };
    Ok(namespace(&pid.to_string())? == namespace("thread-self")?)
}

/// The threads of process `pid`. Needs no privilege.
pub fn threads_of(pid: u32) -> Result<Vec<Thread>, Missing> {
    let directory = format!("/proc/{pid}/task");
    let unreadable =
        |error: io::Error| Missing::because(format!("can't read {directory}: {error}"));
    let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let mut threads = Vec::new();
    for entry in fs::read_dir(&directory).map_err(unreadable)?.take(MAX_THREADS) {
        let entry = entry.map_err(unreadable)?;
        // A thread that ended since it was listed is skipped.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let tid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let (Some(tid), Some(state), Some((user, system))) =
            (tid, parse_state(&stat), parse_cpu(&stat))
        {
            let cpu_us = user.saturating_add(system).saturating_mul(tick_us);
            let schedule = fs::read_to_string(entry.path().join("schedstat")).ok();
            let waiting = schedule.and_then(|text| schedstat::parse(&text).ok());
            let cpu_wait_us = waiting.map(|schedule| schedule.waiting_ns / 1000);
            threads.push(Thread { tid, state, cpu_us, cpu_wait_us });
        }
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn the_holder_of_a_socket_is_found_with_its_threads() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let text = link.to_string_lossy();
        let inode = text.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        let holders = holders_of(&BTreeSet::from([inode]));
        let (me, owner) = (std::process::id(), &holders[&inode]);
        assert!(owner.pid == me && !owner.name.is_empty(), "{owner:?}");
        assert!(!threads_of(me).unwrap().is_empty());
        assert_eq!(shares_network_namespace(me), Ok(true));
    }

    #[test]
    fn a_name_is_text_on_one_line() {
        assert_eq!(printable(b"nginx: worker\n"), "nginx: worker");
        assert_eq!(printable(b"a\x1b[2J\nb\xff\n"), "a\u{fffd}[2J\u{fffd}b\u{fffd}");
    }

    #[test]
    fn a_process_that_is_gone_has_neither_name_nor_threads() {
        assert_eq!(Owner::of(u32::MAX), None);
        assert!(threads_of(u32::MAX).is_err() && shares_network_namespace(u32::MAX).is_err());
    }
}
