//! How late the CPUs of this host wake a thread up that asked for it.

use goodput_model::{Confidence, Finding, Missing, Place};

use super::super::{Check, HostView, Scope};
use crate::finding::{Draft, time};

/// Fact: the longest delay of a wake-up on any CPU while it was watched.
pub(super) const LONGEST: &str = "wakeup.longest_us";
/// A gap that a window of data in flight on a local network does not ride out, seconds.
const LONG_S: f64 = 0.02;

/// Late wake-ups.
pub(super) struct Wakeups;

pub(super) const WAKEUPS: Wakeups = Wakeups;

impl Check for Wakeups {
    fn id(&self) -> &'static str {
        "late-wakeups"
    }

    fn title(&self) -> &'static str {
        "threads that are woken up late"
    }

    fn scope(&self) -> Scope {
        Scope::Host
    }

    fn check(&self, host: &HostView) -> Result<Option<Finding>, Missing> {
        let gap = host.number(LONGEST)? / 1e6;
        if gap < LONG_S {
            return Ok(None);
        }
        let text = format!("a thread that was ready waited up to {} for a CPU", time(gap));
        Draft::new(self.id(), Place::Near, Confidence::Possible, text.clone())
            .saw(Place::Near, LONGEST, gap * 1e6, text)
            .advice(
                "find out what holds the CPUs: other work, a quota, or the hypervisor (steal time)",
            )
            .found()
    }
}
