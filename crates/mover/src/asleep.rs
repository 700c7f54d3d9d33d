//! How long a thread slept within calls that read a file and send it at once.
//!
//! The socket is in non-blocking mode, so a thread that sleeps in such a call waits for the file, or for a CPU; the two
//! look the same here. Reading the CPU clock of a thread costs a system call, so it is read only after calls that took
//! long. The sleep is the time of all calls since the last reading minus their CPU time.

use crate::clock::{now_ns, thread_cpu_ns};
use crate::flow::Flow;

/// A call that takes longer may have slept, nanoseconds: sending 128 KiB takes less.
const MIN_SLEEP_NS: u64 = 50_000;

/// The clocks at the last reading.
#[derive(Debug, Default)]
pub(crate) struct SleepMeter {
    wall_ns: u64,
    awake_ns: u64,
}

impl SleepMeter {
    pub(crate) fn new(flow: &Flow) -> Self {
        Self { wall_ns: now_ns(), awake_ns: awake_ns(flow) }
    }

    /// Makes a call, and counts its sleep as time in the source.
    pub(crate) fn during<T>(&mut self, flow: &Flow, call: impl FnOnce() -> T) -> T {
        let began = now_ns();
        let result = call();
        let ended = now_ns();
        if ended - began >= MIN_SLEEP_NS {
            let awake = awake_ns(flow);
            let asleep = (ended - self.wall_ns).saturating_sub(awake - self.awake_ns);
            flow.counters.source.add(asleep.min(ended - began));
            (self.wall_ns, self.awake_ns) = (ended, awake);
        }
        result
    }
}

/// Time in which the flow's own thread ran, or waited for anything but its source.
fn awake_ns(flow: &Flow) -> u64 {
    let counters = &flow.counters;
    thread_cpu_ns() + counters.blocked.total_ns() + counters.paced.total_ns()
}
