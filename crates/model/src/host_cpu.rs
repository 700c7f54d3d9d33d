//! CPU time of a whole host at one instant, so that its load can be seen over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;

/// Most instants that are kept of one end. With more, every second one is dropped.
pub const MAX_HOST_CPU: usize = 240;

/// What all CPUs of a host had done until one instant, summed over the CPUs, since the first instant of the run. Counters
/// only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostCpu {
    /// Seconds since this end began to move payload, on its monotonic clock.
    pub at_s: f64,
    /// CPUs that the host had online then, whichever of them the program may use.
    pub cpus: u32,
    /// Time that the kernel has counted, busy or idle, microseconds: a share of it is one of the same clock and of the same
    /// ticks, and never more than all of the CPUs.
    pub counted_us: u64,
    /// Part of `counted_us`: time that the CPUs were not idle, microseconds: everything that runs on the host, soft interrupts, and time that
    /// the hypervisor took.
    pub busy_us: u64,
    /// Part of `busy_us`: soft interrupts, network receive among them.
    pub softirq_us: u64,
    /// Part of `busy_us`: time that the hypervisor took.
    pub steal_us: u64,
}

/// The value for an end that is another program, or an older goodput.
pub fn no_host_cpu() -> Known<Vec<HostCpu>> {
    Known::missing("this end does not report its CPU time over time")
}

pub(crate) fn is_no_host_cpu(cpu: &Known<Vec<HostCpu>>) -> bool {
    *cpu == no_host_cpu()
}
