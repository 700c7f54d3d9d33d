//! The clocks of a flow: monotonic time, wall time for datagrams, and the CPU time of one thread,
//! had and waited for.

use std::fs;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use goodput_framing::Clock;
use goodput_model::{Known, Missing};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Marks a thread whose CPU time is not final yet. 2^64-1 ns is 584 years.
const STILL_RUNNING_NS: u64 = u64::MAX;
/// Marks a wait for CPUs that the kernel did not report.
const UNKNOWN_WAIT_NS: u64 = u64::MAX;

/// Converts arrival times, which the kernel takes from `CLOCK_REALTIME`, to `CLOCK_MONOTONIC`, which nobody sets. Both
/// run at the same pace and differ by a constant, except when the former is set.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// How far the first clock was ahead at the last reading of both: between these, nanoseconds.
    apart_ns: Option<(i64, i64)>,
}

impl Arrivals {
    /// When a datagram arrived, nanoseconds of `CLOCK_MONOTONIC`, from its `CLOCK_REALTIME` arrival time. Never too
    /// early, and late by no more than it takes to read both clocks; `None` if the `CLOCK_REALTIME` clock was set
    /// meanwhile.
    pub fn monotonic_ns(&mut self, arrived_ns: u64) -> Option<u64> {
        // An interrupted read is late by the length of the interruption. Three in a row are rarely all interrupted.
        let reads = (0..3).map(|_| (now_ns(), wall_ns(), now_ns()));
        let (before, wall, after) = reads.min_by_key(|(before, _, after)| after - before)?;
        self.convert(arrived_ns, (before, wall, after))
    }

    fn convert(&mut self, arrived_ns: u64, (before, now, after): (u64, u64, u64)) -> Option<u64> {
        let apart = (now.wrapping_sub(after) as i64, now.wrapping_sub(before) as i64);
        let last = self.apart_ns.replace(apart);
        let was_set = last.is_some_and(|last| last.0 > apart.1 || last.1 < apart.0);
        let at = arrived_ns.wrapping_sub(apart.0 as u64);
        (!was_set && at <= after).then_some(at)
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn now_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// The current reading of a clock that datagrams carry as their sending time, nanoseconds.
pub(crate) fn ns_by(clock: Clock) -> u64 {
    match clock {
        Clock::Wall => wall_ns(),
        Clock::Monotonic => now_ns(),
    }
}

/// Nanoseconds since 1970 by `CLOCK_REALTIME`, the clock of the kernel's receive timestamps.
pub(crate) fn wall_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// CPU time that the calling thread has had, nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Both clocks are positive on any running system, so the casts lose nothing.
fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time that one thread had and waited for. Other threads can read it while the thread runs and after it has ended.
#[derive(Debug)]
pub(crate) struct ThreadCpu {
    /// Kernel thread id; 0 before the thread has begun.
    thread: AtomicI32,
    /// CPU time at the end of the thread, or [`STILL_RUNNING_NS`].
    total_ns: AtomicU64,
    /// How long it had waited for a CPU at its end, or [`UNKNOWN_WAIT_NS`]. Valid once there is a total.
    waited_ns: AtomicU64,
}

impl ThreadCpu {
    pub(crate) fn new() -> Self {
        Self {
            thread: AtomicI32::new(0),
            total_ns: AtomicU64::new(STILL_RUNNING_NS),
            waited_ns: AtomicU64::new(UNKNOWN_WAIT_NS),
        }
    }

    /// Called by the thread itself, first thing.
    pub(crate) fn begin(&self) {
        self.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
    }

    /// Called by the thread itself, last thing: its clock is gone with it.
    pub(crate) fn end(&self) {
        let waited = run_queue_wait_ns("thread-self").unwrap_or(UNKNOWN_WAIT_NS);
        self.waited_ns.store(waited, Ordering::Release);
        let total = nanoseconds(clock_gettime(ClockId::ThreadCPUTime));
        self.total_ns.store(total, Ordering::Release);
    }

    /// Kernel id of the thread, while it runs.
    pub(crate) fn thread(&self) -> Option<i32> {
        let thread = self.thread.load(Ordering::Acquire);
        (thread != 0 && self.total_ns.load(Ordering::Acquire) == STILL_RUNNING_NS).then_some(thread)
    }

    /// User and system time so far, microseconds.
    pub(crate) fn used_us(&self) -> Known<u64> {
        let thread = self.thread.load(Ordering::Acquire);
        if thread == 0 {
            return Known::missing("the flow's thread has not begun yet");
        }
        // The clock is read first: if no total is stored afterwards, the thread was still alive at the reading, and no
        // other thread had its id yet.
        let running = thread_clock_ns(thread);
        match (self.total_ns.load(Ordering::Acquire), running) {
            (STILL_RUNNING_NS, Some(ns)) => Known::Value(ns / 1000),
            (STILL_RUNNING_NS, None) => Known::missing("the kernel refused the thread's CPU clock"),
            (total, _) => Known::Value(total / 1000),
        }
    }

    /// Time so far in which it was ready to run but waited for a CPU, microseconds.
    pub(crate) fn waited_us(&self) -> Known<u64> {
        let thread = self.thread.load(Ordering::Acquire);
        if thread == 0 {
            return Known::missing("the flow's thread has not begun yet");
        }
        // In this order for the reason given above.
        let running = run_queue_wait_ns(&format!("self/task/{thread}"));
        let waited = match self.total_ns.load(Ordering::Acquire) {
            STILL_RUNNING_NS => running,
            _ => Some(self.waited_ns.load(Ordering::Acquire)).filter(|ns| *ns != UNKNOWN_WAIT_NS),
        };
        let waited = waited.map(|ns| ns / 1000);
        waited.ok_or_else(|| Missing::because("this kernel keeps no schedstat of threads")).into()
    }
}

/// How long a thread waited for a CPU while it was ready to run, nanoseconds: the second of the three numbers of its
/// schedstat (Documentation/scheduler/sched-stats.rst).
fn run_queue_wait_ns(thread: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Reads another thread's CPU clock. Clock ids of threads are `~tid << 3 | CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED`
/// (include/linux/posix-timers_types.h), as in pthread_getcpuclockid(3).
#[expect(unsafe_code, reason = "rustix has no clock ids for the CPU time of other threads")]
fn thread_clock_ns(thread: i32) -> Option<u64> {
    const PER_THREAD_SCHED: i32 = 4 | 2;
    let clock = (!thread << 3) | PER_THREAD_SCHED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call; the kernel refuses clocks that don't exist.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_never_too_early_and_dropped_when_the_clock_was_set() {
        let mut arrivals = Arrivals::default();
        // Read between 1000 and 1010, when the other clock was 5_000 ahead.
        assert_eq!(arrivals.convert(5_900, (1000, 6_005, 1010)), Some(905));
        assert_eq!(arrivals.convert(6_500, (2000, 7_001, 2004)), Some(1503));
        assert_eq!(arrivals.convert(9_000, (3000, 9_001, 3004)), None, "set by a second");
        assert_eq!(arrivals.convert(9_500, (4000, 10_001, 4004)), Some(3503));
        assert_eq!(arrivals.convert(20_000, (5000, 11_001, 5004)), None, "of the future");
    }
    use std::sync::Arc;

    #[test]
    fn the_time_of_a_thread_is_known_while_it_runs_and_stays_after_its_end() {
        let cpu = Arc::new(ThreadCpu::new());
        assert!(cpu.used_us().get().is_err(), "not begun");
        let (inner, (sender, receiver)) = (Arc::clone(&cpu), std::sync::mpsc::channel::<()>());
        let thread = std::thread::spawn(move || {
            inner.begin();
            while inner.used_us().value().is_none_or(|us| *us < 2000) {}
            sender.send(()).unwrap();
            inner.end();
        });
        receiver.recv().unwrap();
        assert!(*cpu.used_us().get().unwrap() >= 2000);
        thread.join().unwrap();
        let after = *cpu.used_us().get().unwrap();
        assert!(after >= 2000);
        assert_eq!(*cpu.used_us().get().unwrap(), after);
    }

    #[test]
    fn the_wait_for_a_cpu_stays_known_after_the_end_of_the_thread() {
        let cpu = ThreadCpu::new();
        assert!(cpu.waited_us().get().is_err(), "not begun");
        cpu.begin();
        let before = cpu.waited_us();
        cpu.end();
        let after = cpu.waited_us();
        assert_eq!(before.get().is_ok(), after.get().is_ok());
        assert!(after.value() >= before.value());
        assert_eq!(cpu.waited_us(), after);
    }
}
