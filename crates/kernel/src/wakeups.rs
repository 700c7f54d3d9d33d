//! How late the CPUs of this host run a thread after its timer expired. In this gap, a CPU does nothing for the
//! network's programs either.

use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::CpuSet;

/// Time between two wake-ups of each CPU.
const WAKEUP_INTERVAL: Duration = Duration::from_millis(1);

/// Watches every CPU of our affinity mask for `time`; returns the longest wake-up delay on any of them. Blocks. Costs
/// each CPU a wake-up every millisecond. CPUs for which there is no thread are left out; `None` if no CPU remains.
pub fn longest_wakeup_delay(time: Duration) -> Option<Duration> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let until = Instant::now() + time;
    let watcher = |cpu| thread::Builder::new().spawn(move || watch(cpu, until)).ok();
    let watchers: Vec<_> = cpus.filter_map(watcher).collect();
    watchers.into_iter().filter_map(|watcher| watcher.join().ok().flatten()).max()
}

fn watch(cpu: usize, until: Instant) -> Option<Duration> {
    let mut one = CpuSet::new();
    one.set(cpu);
    rustix::thread::sched_setaffinity(None, &one).ok()?;
    let mut longest = Duration::ZERO;
    loop {
        let before = Instant::now();
        if before >= until {
            return Some(longest);
        }
        thread::sleep(WAKEUP_INTERVAL);
        longest = longest.max(before.elapsed().saturating_sub(WAKEUP_INTERVAL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wakeup_is_never_early() {
        let delay = longest_wakeup_delay(Duration::from_millis(20)).unwrap();
        assert!(delay > Duration::ZERO);
    }
}
