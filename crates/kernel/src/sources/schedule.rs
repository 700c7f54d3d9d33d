//! How long the threads that move the payload, mostly our own, were ready to run but had to wait for a CPU
//! (/proc/PID/task/*/schedstat).
//!
//! A thread that has ended is no longer counted: the later of two snapshots can be below the earlier. The context's
//! root does not matter: whichever files are read, these are this machine's threads.

use std::fs;
use std::io;

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::schedstat::{self, Schedstat};

/// More threads than goodput ever starts; of a larger program, only this many are read.
const MAX_THREADS: usize = 512;

pub(super) struct Schedule;

impl Source for Schedule {
    fn id(&self) -> &'static str {
        "schedule"
    }

    fn summary(&self) -> &'static str {
        "time that goodput's living threads waited for a CPU while ready to run"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.process_file("task").map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let (threads, sum) = all_threads(&format!("/{}", context.process_file("task")?))?;
        snapshot.put("schedule.threads", threads);
        snapshot.put("schedule.waiting_us", sum.waiting_ns / 1000);
        snapshot.put("schedule.slices", sum.slices);
        Ok(())
    }
}

fn all_threads(directory: &str) -> Result<(u64, Schedstat), Missing> {
    let unreadable =
        |error: io::Error| Missing::because(format!("can't read {directory}/*/schedstat: {error}"));
    let (mut threads, mut sum) = (0, Schedstat::default());
    for entry in fs::read_dir(directory).map_err(unreadable)?.take(MAX_THREADS) {
        let text = match fs::read_to_string(entry.map_err(unreadable)?.path().join("schedstat")) {
            Ok(text) => text,
            // It ended since it was listed. A kernel without schedstat shows by the absence of all of them.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
            Err(error) => return Err(unreadable(error)),
        };
        let thread = schedstat::parse(&text)?;
        threads += 1;
        sum.waiting_ns = sum.waiting_ns.saturating_add(thread.waiting_ns);
        sum.slices = sum.slices.saturating_add(thread.slices);
    }
    match threads {
        0 => Err(Missing::because("this kernel keeps no schedstat of threads")),
        threads => Ok((threads, sum)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_thread_has_run() {
        match all_threads("/proc/self/task") {
            Ok((threads, sum)) => assert!(threads >= 1 && sum.slices >= 1),
            Err(why) => assert!(why.to_string().contains("schedstat"), "{why}"),
        }
    }
}
