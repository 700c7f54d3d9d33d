//! The CPUs that a flow's thread may use, and those on which it was seen.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Words of a set of all CPUs that this program can name (`CpuSet::MAX_CPU`), 64 each.
const CPU_SET_WORDS: usize = CpuSet::MAX_CPU / 64;

/// Where a thread was seen; other threads can read it while the thread runs and after it has ended.
#[derive(Debug, Default)]
pub(crate) struct CpusSeen {
    seen: [AtomicU64; CPU_SET_WORDS],
}

impl CpusSeen {
    /// Called by the thread itself: notes its current CPU.
    pub(crate) fn note_own(&self) {
        self.note(sched_getcpu());
    }

    /// Notes that it was seen on `cpu`.
    pub(crate) fn note(&self, cpu: usize) {
        if let Some(word) = self.seen.get(cpu / 64) {
            word.fetch_or(1 << (cpu % 64), Ordering::Relaxed);
        }
    }

    /// CPUs on which it was seen, in rising order.
    pub(crate) fn seen(&self) -> Vec<u16> {
        let is_seen = |cpu: &u16| {
            let word = self.seen[usize::from(*cpu) / 64].load(Ordering::Relaxed);
            word >> (cpu % 64) & 1 == 1
        };
        (0..CpuSet::MAX_CPU as u16).filter(is_seen).collect()
    }
}

/// The CPU of thread `id` of this process; `None` if there is no such thread.
pub(crate) fn cpu_of(id: i32) -> Option<usize> {
    last_cpu(&fs::read_to_string(format!("/proc/self/task/{id}/stat")).ok()?)
}

/// The CPU on which a thread last ran: field 39 of its stat, `processor` (proc_pid_stat(5)). The name before field 3
/// may contain anything, but ends with the last parenthesis.
fn last_cpu(stat: &str) -> Option<usize> {
    const AFTER_NAME: usize = 39 - 3;
    stat.rsplit_once(')')?.1.split_whitespace().nth(AFTER_NAME)?.parse().ok()
}

/// Keeps the calling thread on `cpu` from now on.
pub(crate) fn pin(cpu: u16) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    if usize::from(cpu) >= CpuSet::MAX_CPU {
        return Err(rustix::io::Errno::INVAL);
    }
    set.set(usize::from(cpu));
    sched_setaffinity(None, &set)
}

/// CPUs on which the calling thread may run, in rising order: those that its control group and its parent process have
/// left to it (sched_getaffinity(2), cpuset(7)).
pub fn allowed_cpus() -> rustix::io::Result<Vec<u16>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU as u16).filter(|cpu| set.is_set(usize::from(*cpu))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_is_found_where_it_was_put_and_nowhere_else() {
        let last = *allowed_cpus().unwrap().last().unwrap();
        let cpus = CpusSeen::default();
        assert!(cpus.seen().is_empty());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin(last).unwrap();
                cpus.note_own();
                let own = rustix::thread::gettid().as_raw_nonzero().get();
                assert_eq!(cpu_of(own), Some(usize::from(last)));
                assert_eq!(allowed_cpus().unwrap(), [last]);
            });
        });
        assert_eq!(cpus.seen(), [last]);
        assert!(pin(u16::MAX).is_err());
    }

    #[test]
    fn a_name_with_parentheses_does_not_move_the_fields() {
        let fields: Vec<_> = (4..=40).map(|field| field.to_string()).collect();
        let stat = format!("7 (a) S) R {}", fields.join(" "));
        assert_eq!(last_cpu(&stat), Some(39));
        assert_eq!(last_cpu("7 (a) R 4 5"), None);
        assert_eq!(last_cpu(""), None);
    }
}
