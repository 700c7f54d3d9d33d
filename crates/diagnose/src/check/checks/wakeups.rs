//! How late the CPUs of this host wake up a thread with a timer.

use goodput_model::Confidence;

use super::super::{Answer, Check, HostView, Scope};
use crate::finding::time;

/// Fact: the longest delay of a wake-up on any CPU while it was watched.
pub(super) const LONGEST: &str = "wakeup.longest_us";
/// A gap that a window of data in flight on a local network does not bridge, seconds.
const MIN_GAP_S: f64 = 0.02;

/// Late wake-ups.
pub(super) const WAKEUPS: Check = Check {
    id: "late-wakeups",
    title: "threads that wake up late",
    scope: Scope::Host,
    ask: &wakeups,
};

fn wakeups(check: &Check, host: &HostView) -> Answer {
    let gap = host.number(LONGEST)? / 1e6;
    if gap < MIN_GAP_S {
        return Ok(None);
    }
    let text = format!("a thread that was ready waited up to {} for a CPU", time(gap));
    check
        .draft(Confidence::Possible, LONGEST, gap * 1e6, &text)
        .advice("find what holds the CPUs: other work, a quota, or the hypervisor (steal time)")
        .found()
}
