//! How late those timers of the sending host are that run as long as its shaper's.

use goodput_ceiling::bucket::PLAUSIBLE_LATENESS_S;
use goodput_ceiling::lateness::lateness_to_bridge;
use goodput_model::{Missing, TimerLateness, median};

/// Timers that were watched before the traffic: a shaper waits for the tokens of its next packet, which may be a super-packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Timers {
    /// Those that ran about as long as a frame takes at the rate.
    pub frame: Watched,
    /// Those that ran about as long as a super-packet takes.
    pub super_packet: Watched,
}

/// Timers of one length, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Requested length of each, seconds.
    pub timer_s: f64,
    /// Lateness of each, seconds.
    pub latenesses_s: Vec<f64>,
}

impl Watched {
    /// What they mean for packets that take `cycle_s` at the rate.
    pub(super) fn lateness(&self, cycle_s: f64) -> Result<TimerLateness, Missing> {
        let few = || Missing::because("no timer was watched");
        let late = &self.latenesses_s;
        Ok(TimerLateness {
            count: late.len() as u64,
            timer_us: Some(self.timer_s * 1e6),
            median_us: median(late.iter().copied()).ok_or_else(few)? * 1e6,
            longest_us: late.iter().copied().fold(0.0, f64::max) * 1e6,
            bridged_us: lateness_to_bridge(late, cycle_s).ok_or_else(few)? * 1e6,
            pauses: Some(late.iter().filter(|one| **one > PLAUSIBLE_LATENESS_S).count() as u64),
        })
    }
}
