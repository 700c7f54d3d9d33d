//! An operator's limits that held this side's flows.

use goodput_model::{BitRate, EndName, HeldTo, Missing, Plan};

use super::{Side, View, positive};
use crate::thresholds::MIN_LIMITING_TIME_SHARE;

/// How much longer than the time of the samples threads may have waited, as a share of it: the first sample is taken
/// a little after the threads begin, the last a little before they end.
const MAX_EXCESS_WAIT_SHARE: f64 = 0.05;

/// The limits that held one side's flows.
#[derive(Debug, Clone, Copy)]
pub struct HeldToLimits<'a> {
    /// The limit that held the flows longest.
    pub longest: &'a HeldTo,
    /// Number of limits that held them.
    pub limits: usize,
    /// Share of the time for which all limits held them, the mean of all flows; at most 1.
    pub share: f64,
}

impl View<'_> {
    /// The rate that the operator of an end allows, if the plan keeps to it and the goodput stands there. Whatever the sender
    /// looks like meanwhile, this is why it sent no more.
    pub fn kept_limit(&self) -> Option<(EndName, BitRate)> {
        let (end, rate) = (self.plan().rate_limit_of?, self.plan().rate_bits_per_s?);
        let stands_there = self.goodput_or_zero() >= Plan::MIN_SHARE_OF_KEPT_RATE * rate.0;
        stands_there.then_some((end, rate))
    }
}

impl<'a> Side<'a> {
    /// Whether an operator's limits are known to have held the `flows` of this side most of the time.
    pub fn is_held_to_limits(&self, flows: u16) -> bool {
        let held = self.held_to(flows).ok().flatten();
        held.is_some_and(|held| held.share >= MIN_LIMITING_TIME_SHARE)
    }

    /// The limits that held the `flows` of this side; `None` if none did.
    pub fn held_to(&self, flows: u16) -> Result<Option<HeldToLimits<'a>>, Missing> {
        let end = self.end()?;
        let unreported =
            || Missing::because(format!("the {} end does not report its limits", self.name));
        let held = end.held_to.as_ref().ok_or_else(unreported)?;
        let own: Vec<_> = held.iter().filter(|held| held.role == self.role).collect();
        let Some(longest) = own.iter().max_by_key(|held| held.held_us) else { return Ok(None) };
        for limit in &own {
            positive(limit.rate_bits_per_s.0, "a limit")?;
        }
        let lasted_s = positive(end.last_sample().map_or(0.0, |last| last.at_s), "the duration")?;
        let held_s: f64 = own.iter().map(|held| held.held_us as f64 / 1e6).sum();
        let share = held_s / positive(flows.into(), "flows")? / lasted_s;
        if share > 1.0 + MAX_EXCESS_WAIT_SHARE {
            return Err(Missing::because(format!(
                "the {} end reports {held_s:.3} s of waits for its limits, more than its flows had",
                self.name
            )));
        }
        Ok(Some(HeldToLimits { longest, limits: own.len(), share: share.min(1.0) }))
    }
}
