//! Whether a thread of a flow is held back by its CPU.

use goodput_model::Missing;

use crate::thresholds::{BEHIND, CPU_BOUND, CPU_FULL, HOLDS, THROTTLED};
use crate::view::Side;

/// A flow's thread that wants more CPU than there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuBound {
    /// Share of the time in which it was its turn: it waited neither for the socket nor on purpose.
    pub turn: f64,
    /// CPU time of the thread as a share of wall time.
    pub cpu: f64,
}

impl CpuBound {
    /// Whether no second witness is needed.
    pub fn is_full(&self) -> bool {
        self.cpu >= CPU_FULL
    }
}

/// The thread of `side`, if the CPU holds it back: it hardly waits for anything, and spends its
/// turn on the CPU, or waiting for one on a host whose CPUs are all busy.
pub fn cpu_bound(side: &Side) -> Result<Option<CpuBound>, Missing> {
    let cpu = side.thread_cpu_share()?;
    let turn = 1.0 - side.blocked_share()? - side.paced_share()?;
    if turn < 1.0 - BEHIND {
        return Ok(None);
    }
    let crowded = cpu >= HOLDS * turn && side.host_busy_share().is_ok_and(|busy| busy >= CPU_FULL);
    let bound = (cpu >= CPU_BOUND * turn || crowded) && !is_throttled(side);
    Ok(bound.then_some(CpuBound { turn, cpu }))
}

/// Whether a quota is known to hold this side's process back.
pub fn is_throttled(side: &Side) -> bool {
    side.throttled_share().is_ok_and(|share| share >= THROTTLED)
}
