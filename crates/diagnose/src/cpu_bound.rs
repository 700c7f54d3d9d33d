//! Whether a thread of a flow is held back by its CPU.

use goodput_model::{Confidence, Missing};

use crate::thresholds::{ALL_BUSY, BEHIND, CPU_BOUND, CPU_FULL, HOLDS, STOPPED, THROTTLED};
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

/// Share of the time in which the thread of `side` neither waited nor ran.
pub fn stopped_share(side: &Side) -> Result<f64, Missing> {
    let turn = 1.0 - side.blocked_share()? - side.paced_share()?;
    Ok((turn - side.thread_cpu_share()?).max(0.0))
}

/// How sure it is that something stops the thread of `side`, or that it waits inside the program:
/// only possible where all CPUs of its host are busy, so that it may have waited for one; then a
/// thread that gets much of a CPU is left to [`cpu_bound`].
pub fn stopped(side: &Side) -> Result<Option<Confidence>, Missing> {
    if stopped_share(side)? < STOPPED || is_throttled(side) {
        return Ok(None);
    }
    let busy = side.host_busy_share()? >= ALL_BUSY;
    Ok(match busy {
        true if side.thread_cpu_share()? >= MUCH => None,
        true => Some(Confidence::Possible),
        false => Some(Confidence::Likely),
    })
}

/// Whether a quota is known to hold this side's process back.
pub fn is_throttled(side: &Side) -> bool {
    side.throttled_share().is_ok_and(|share| share >= THROTTLED)
}
