//! Waiting for an instant more precisely than a timer wakes: asleep until shortly before the instant, then spinning.
//!
//! A sleeping thread is woken some 5 to 100 us late, mostly because a CPU has to leave its idle state; the gap between
//! full-size datagrams at 1 Gbit/s is 11.8 us. How late this thread was woken recently decides how long before the
//! instant it gets up. If gaps are shorter, the thread never sleeps and takes a whole CPU.
//!
//! A thread that spins long loses its CPU to others sooner or later, and then for milliseconds. When it notices this,
//! it waits by timers alone for a while, if its gaps leave time to sleep at all.
//!
//! Timers alone make datagrams late by more than a gap; the schedule bounds what then leaves at once.
//!
//! One CPU is always left to threads that do not spin: otherwise a receiver on this host would wait for a CPU that
//! spins.

use std::hint;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;

/// Bounds of how early a thread wakes up, nanoseconds. A host that wakes threads later than the greater bound
/// is too busy for spinning to help.
const MAX_AHEAD_NS: u64 = 200_000;
const MIN_AHEAD_NS: u64 = 5_000;
/// What the first wait assumes, nanoseconds.
const FIRST_AHEAD_NS: u64 = 60_000;
/// A wait that was shorter than expected lowers the expectation by this part of the difference: the few late wake-ups
/// are what counts.
const FORGET_DIVISOR: u64 = 64;

/// Spinning that ends this late, nanoseconds, was preempted by another thread: no interrupt takes this time.
const PREEMPTED_NS: u64 = 500_000;
/// How long the thread then only sleeps and does not spin, nanoseconds.
const SLEEP_ONLY_NS: u64 = 200_000_000;
/// The shortest wait that a timer can serve, nanoseconds. If gaps are shorter, only spinning keeps datagrams
/// apart.
const MIN_TIMED_WAIT_NS: u64 = 30_000;

/// Threads of this process that are spinning right now.
static SPINNING: AtomicUsize = AtomicUsize::new(0);

/// How one thread waits.
#[derive(Debug)]
pub(crate) struct Spinner {
    /// How long before the instant it gets up, nanoseconds.
    early_ns: u64,
    /// Until when it does not spin.
    rests_until: u64,
    /// Whether the last wait was by timer alone.
    by_timer: bool,
}

impl Spinner {
    pub(crate) fn new() -> Self {
        Self { early_ns: FIRST_AHEAD_NS, rests_until: 0, by_timer: false }
    }

    /// Waits until `due` on the monotonic clock or for the stop, whichever comes first. May return earlier. Counts as
    /// paced; the spinning part also counts as spun.
    pub(crate) fn wait(&mut self, flow: &Flow, due: u64) -> Result<(), MoveError> {
        let now = now_ns();
        if due <= now {
            return Ok(());
        }
        let rests = now < self.rests_until && due - now > MIN_TIMED_WAIT_NS;
        if !rests && due - now > self.early_ns {
            return self.sleep(flow, due - self.early_ns);
        }
        let place = if rests { None } else { SpinPermit::take() };
        self.by_timer = place.is_none();
        if self.by_timer {
            return self.sleep(flow, due);
        }
        flow.counters.paced.during(|| spin(flow, due));
        let ended = now_ns();
        // Time after this belongs to another thread.
        flow.counters.spun.add(ended.min(due) - now);
        if ended > due + PREEMPTED_NS {
            self.rests_until = ended + SLEEP_ONLY_NS;
        }
        Ok(())
    }

    /// Whether the last wait was by timer alone.
    pub(crate) fn is_by_timer(&self) -> bool {
        self.by_timer
    }

    fn sleep(&mut self, flow: &Flow, until: u64) -> Result<(), MoveError> {
        flow.wait_paced(until)?;
        let woken = now_ns();
        // A stop wakes the thread early.
        if woken >= until {
            self.learn(woken - until);
        }
        Ok(())
    }

    /// Learns that it was woken `late_ns` after the time.
    fn learn(&mut self, late_ns: u64) {
        // Leaves a little time to spin.
        let wanted = (late_ns + late_ns / 4).clamp(MIN_AHEAD_NS, MAX_AHEAD_NS);
        self.early_ns = wanted
            .max(self.early_ns - self.early_ns.saturating_sub(wanted).div_ceil(FORGET_DIVISOR));
    }
}

fn spin(flow: &Flow, due: u64) {
    while now_ns() < due && flow.may_send() {
        hint::spin_loop();
    }
}

/// The right to spin.
struct SpinPermit;

impl SpinPermit {
    /// `None` if there are already as many spinning threads as CPUs, less one.
    fn take() -> Option<Self> {
        static MAX_SPINNING: OnceLock<usize> = OnceLock::new();
        let most = *MAX_SPINNING
            .get_or_init(|| thread::available_parallelism().map_or(1, usize::from) - 1);
        let more = |spinning| (spinning < most).then_some(spinning + 1);
        SPINNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self)
    }
}

impl Drop for SpinPermit {
    fn drop(&mut self) {
        SPINNING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_wakes_are_learnt_at_once_and_forgotten_slowly() {
        let mut spinner = Spinner::new();
        spinner.learn(100_000);
        assert_eq!(spinner.early_ns, 125_000);
        spinner.learn(10_000);
        assert!((120_000..125_000).contains(&spinner.early_ns), "{}", spinner.early_ns);
        (0..2000).for_each(|_| spinner.learn(10_000));
        assert_eq!(spinner.early_ns, 12_500);
        spinner.learn(1_000_000_000);
        assert_eq!(spinner.early_ns, MAX_AHEAD_NS);
        (0..2000).for_each(|_| spinner.learn(0));
        assert_eq!(spinner.early_ns, MIN_AHEAD_NS);
    }

    #[test]
    fn one_cpu_is_left_to_the_others() {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let places: Vec<_> = (0..2 * cpus).filter_map(|_| SpinPermit::take()).collect();
        assert!(places.len() < cpus, "{} of {cpus}", places.len());
    }
}
