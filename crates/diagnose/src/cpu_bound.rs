//! Whether a thread of a flow is held back by its CPU.

use goodput_model::{Confidence, Missing};

use crate::thresholds::{ALL_BUSY, BEHIND, CPU_BOUND, CPU_FULL, HOLDS, THROTTLED};
use crate::view::Side;

/// Share of a CPU that is much for one thread on a host that has none left.
const MUCH: f64 = 0.25;

/// A flow's thread that wants more CPU than there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuBound {
    /// Share of the time in which it was its turn: it waited neither for the socket nor on purpose.
    pub turn: f64,
    /// CPU time of the thread as a share of wall time.
    pub cpu: f64,
    /// Whether it is only that the host's CPUs are all busy, with whatever, and the thread needs
    /// much of one. It then waits for the socket as well, as the other end waits for a CPU too.
    pub crowded: bool,
}

impl CpuBound {
    /// How sure it is.
    pub fn confidence(&self) -> Confidence {
        match self.cpu {
            _ if self.crowded => Confidence::Possible,
            cpu if cpu >= CPU_FULL => Confidence::Certain,
            _ => Confidence::Likely,
        }
    }
}

/// The thread of `side`, if the CPU holds it back: it hardly waits for anything, and spends its
/// turn on the CPU, or waiting for one on a host whose CPUs are all busy.
pub fn cpu_bound(side: &Side) -> Result<Option<CpuBound>, Missing> {
    let cpu = side.thread_cpu_share()?;
    let turn = 1.0 - side.blocked_share()? - side.paced_share()?;
    let busy = side.host_busy_share().is_ok_and(|busy| busy >= ALL_BUSY);
    let hardly_waits = turn >= 1.0 - BEHIND;
    let on_cpu = cpu >= CPU_BOUND * turn || (busy && cpu >= HOLDS * turn);
    let crowded = busy && cpu >= MUCH;
    if is_throttled(side) || !(hardly_waits && on_cpu || crowded) {
        return Ok(None);
    }
    Ok(Some(CpuBound { turn, cpu, crowded: !(hardly_waits && on_cpu) }))
}

/// Share of the time in which the thread of `side` neither waited nor ran though its host had CPU
/// left: something stopped it, or it waits inside the program.
pub fn stopped_share(side: &Side) -> Result<f64, Missing> {
    let turn = 1.0 - side.blocked_share()? - side.paced_share()?;
    let busy = side.host_busy_share()? >= ALL_BUSY;
    let idle = turn - side.thread_cpu_share()?;
    Ok(if busy || is_throttled(side) { 0.0 } else { idle.max(0.0) })
}

/// Whether a quota is known to hold this side's process back.
pub fn is_throttled(side: &Side) -> bool {
    side.throttled_share().is_ok_and(|share| share >= THROTTLED)
}
