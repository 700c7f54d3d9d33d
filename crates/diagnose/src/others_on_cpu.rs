//! Whether other programs of a host use its CPUs more than the measurement does.

use goodput_model::Missing;

use crate::cpu_bound::{MIN_CPU_WAIT_SHARE, is_throttled};
use crate::thresholds::MAX_WAIT_SHARE_OF_LIMITING_THREAD;
use crate::view::{Side, View};

/// CPUs' worth of time that others must have used, so that it is no wait for one's own threads.
const MIN_OTHERS_CPUS: f64 = 0.5;
/// Part of the rate asked for below which a sender is behind it.
const MAX_SHARE_OF_RATE: f64 = 0.9;

/// Other programs that use a host's CPUs more than both ends of the measurement there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OthersOnCpu {
    /// CPUs' worth of time of the measurement's own processes.
    pub ours: f64,
    /// CPUs' worth of time of all others.
    pub others: f64,
}

impl OthersOnCpu {
    /// On the host of `side`; `None` if the measurement uses more itself.
    ///
    /// # Errors
    /// If the host does not report what its programs use.
    pub fn of(view: &View, side: &Side) -> Result<Option<Self>, Missing> {
        let ours = view.own_cpus(side)?;
        let others = (side.programs_cpus()? - ours).max(0.0);
        Ok((others >= MIN_OTHERS_CPUS && others >= ours).then_some(Self { ours, others }))
    }
}

/// Whether a sender that nothing but its own pace holds sends less than it was asked to.
pub fn is_behind_rate(view: &View) -> Result<bool, Missing> {
    let Some(asked) = view.plan().rate_bits_per_s else { return Ok(false) };
    let free = view.sender.blocked_share()? < MAX_WAIT_SHARE_OF_LIMITING_THREAD;
    Ok(free && view.sender.payload_rate()? < MAX_SHARE_OF_RATE * asked.0)
}

/// Whether the pace falls behind because other programs have the sender's CPU: then the pace is not what limits.
pub fn others_delay_the_pace(view: &View) -> bool {
    let side = &view.sender;
    let waits = side.cpu_wait_share().is_ok_and(|wait| wait >= MIN_CPU_WAIT_SHARE);
    let others = || OthersOnCpu::of(view, side).ok().flatten();
    let throttled = view.sides().iter().any(|side| is_throttled(side));
    waits && !throttled && is_behind_rate(view).unwrap_or(false) && others().is_some()
}
