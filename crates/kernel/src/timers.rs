//! How late timers of this host are, when nothing else is late.

use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use crate::parse::schedstat;

/// How late each of many timers was that ran for `timer`, one after the other, on the CPUs that the calling thread is given.
/// Blocks for `time`, or as long as one takes.
///
/// A thread wakes by the same timers as a queueing discipline (hrtimers, or jiffies without them), but then still has to wait
/// for a CPU. That time is left out, if the kernel counts it (schedstat). The calling thread keeps a timer slack of 1 ns
/// (prctl(2), `PR_SET_TIMERSLACK`).
///
/// # Errors
/// If the kernel refuses that slack. With the usual 50 µs, all timers are late on purpose.
pub fn timer_latenesses(timer: Duration, time: Duration) -> std::io::Result<Vec<Duration>> {
    rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN))?;
    let (scheduler, until) = (Scheduler::of_this_thread(), Instant::now() + time);
    let mut late = Vec::new();
    let mut waited = scheduler.waited();
    // Once at least, however late this thread runs.
    loop {
        let before = Instant::now();
        thread::sleep(timer);
        let slept = before.elapsed();
        let waited_before = std::mem::replace(&mut waited, scheduler.waited());
        late.push(lateness(slept, timer, waited.saturating_sub(waited_before)));
        if Instant::now() >= until {
            return Ok(late);
        }
    }
}

/// How late a timer was after which a thread had slept for `slept`, `waited` of which it was ready but without a CPU.
fn lateness(slept: Duration, timer: Duration, waited: Duration) -> Duration {
    slept.saturating_sub(timer + waited)
}

/// What the scheduler counts of a thread, if it counts.
struct Scheduler(Option<File>);

impl Scheduler {
    fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Time that the thread was ready to run but waited for a CPU, since it began. Zero if that is not counted.
    fn waited(&self) -> Duration {
        let mut text = [0; 64];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let text = read.and_then(|bytes| str::from_utf8(&text[..bytes]).ok());
        let counted = text.and_then(|text| schedstat::parse(text).ok());
        counted.map_or(Duration::ZERO, |counted| Duration::from_nanos(counted.waiting_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_testing::skip;
    use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn each_timer_ends_after_its_time() {
        let begun = Instant::now();
        let timer = Duration::from_micros(50);
        let late = timer_latenesses(timer, Duration::from_millis(20)).unwrap();
        let all: Duration = late.iter().sum();
        assert!(!late.is_empty(), "{late:?}");
        assert!(all + timer * late.len() as u32 <= begun.elapsed(), "{all:?}");
    }

    #[test]
    fn waiting_for_a_cpu_is_no_lateness_of_timers() {
        let [timer, late, waited] = [500, 27, 3000].map(Duration::from_micros);
        assert_eq!(lateness(timer + late + waited, timer, waited), late);
        assert_eq!(lateness(timer, timer, waited), Duration::ZERO);
    }

    #[test]
    fn time_that_waits_for_a_cpu_is_counted() {
        if Scheduler::of_this_thread().0.is_none() {
            return skip("a kernel that counts how long threads wait for a CPU");
        }
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        let (ended, begun) = (AtomicBool::new(false), Instant::now());
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    sched_setaffinity(None, &one).unwrap();
                    let own = Scheduler::of_this_thread();
                    // Both keep the one CPU busy until one of them had to wait for it.
                    while !ended.load(Ordering::Relaxed) {
                        assert!(begun.elapsed() < Duration::from_secs(60), "no wait is counted");
                        if own.waited() > Duration::from_millis(1) {
                            ended.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
    }
}
