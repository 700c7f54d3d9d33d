//! Where the flows' time went: every moment of every flow belongs to one limiter.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::percent_range;
use crate::place::Place;

/// The part of the transfer that limited a flow at a moment.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// The program wrote or read nothing: its own work, its source or sink, or a requested rate.
    Application,
    /// Nothing was left to send while the writer waited for buffer space.
    SendBuffer,
    /// The receiver's window was full while its reader kept up; for UDP, its socket dropped datagrams.
    ReceiveWindow,
    /// The congestion window was full without a queue, after it had been reduced.
    CongestionWindow,
    /// Fast recovery, timeouts, and the window growing back; for UDP, the share that was lost.
    Recovery,
    /// A queue stood, or the path delivered at a steady rate.
    PathRate,
    /// Undisturbed slow start.
    Startup,
    /// A thread ran, waited for a CPU, or was throttled; or a CPU was full of softirqs.
    Host,
}

impl Limiter {
    /// Every limiter, in the order in which they are listed.
    pub const ALL: [Self; 8] = [
        Self::Application,
        Self::SendBuffer,
        Self::ReceiveWindow,
        Self::CongestionWindow,
        Self::Recovery,
        Self::PathRate,
        Self::Startup,
        Self::Host,
    ];

    /// Its name in JSON, which the rule that finds the same cause has as well: `receive-window`.
    pub fn id(self) -> String {
        self.to_string().replace(' ', "-")
    }

    /// The limiter and its host, as `receive window (far)`; on the path, the limiter alone.
    pub fn at(self, place: Place) -> String {
        match place {
            Place::Path => self.to_string(),
            host => format!("{self} ({host})"),
        }
    }
}

impl fmt::Display for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Application => "application",
            Self::SendBuffer => "send buffer",
            Self::ReceiveWindow => "receive window",
            Self::CongestionWindow => "congestion window",
            Self::Recovery => "recovery",
            Self::PathRate => "path rate",
            Self::Startup => "startup",
            Self::Host => "host",
        })
    }
}

/// Where the time of one direction's flows went. The parts and the unknown time add up to the time of all flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Number of flows that were counted.
    pub flows: usize,
    /// Time of all flows together, seconds: number of flows times observed time.
    pub flow_seconds: f64,
    /// Limiters and their times, the largest first. Limiters without time are left out.
    pub parts: Vec<AccountPart>,
    /// Time without a known limiter, seconds.
    pub unknown_s: f64,
    /// The limiter of most of each period, in order of time.
    pub timeline: Vec<AccountSpan>,
    /// Which limiter held how much of the flows' time in each slice of the whole run, in order of time. Empty in records
    /// of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<AccountSlice>,
}

impl Account {
    /// The share of all flows' time that a part held: `12 % (6 to 19 %)`.
    pub fn share_text(&self, part: &AccountPart) -> String {
        let percent = |seconds: f64| seconds / self.flow_seconds * 100.0;
        let share = percent(part.seconds);
        format!(
            "{share:.0} %{}",
            percent_range(share, part.between_s.map(|ends| ends.map(percent)))
        )
    }
}

/// The time in which one limiter held the flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountPart {
    /// What limited the flows during this time.
    pub limiter: Limiter,
    /// Where this limiter is: the near end, the far end, or the path between them.
    pub end: Place,
    /// Time of all flows with this limiter, seconds.
    pub seconds: f64,
    /// Range in which this time lies with 95 % confidence, seconds: what the kernel counts is exact, and what samples saw may
    /// have begun and ended between them. Not in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_s: Option<[f64; 2]>,
}

/// A part of the run, and who limited the flows in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountSlice {
    /// Start, seconds on the clock of the sender's samples.
    pub from_s: f64,
    /// End, seconds on the same clock.
    pub to_s: f64,
    /// Limiters and their shares, the largest first. What is missing to 1 has no known limiter.
    pub parts: Vec<AccountShare>,
}

/// The share of the flows' time that one limiter held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountShare {
    /// What limited the flows during this time.
    pub limiter: Limiter,
    /// Where this limiter is: the near end, the far end, or the path between them.
    pub end: Place,
    /// Its share of the time of all flows, 0 to 1.
    pub share: f64,
}

/// A period of time with one main limiter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountSpan {
    /// Start, seconds on the clock of the sender's samples.
    pub from_s: f64,
    /// End, seconds on the same clock.
    pub to_s: f64,
    /// What limited the flows for most of this period.
    pub limiter: Limiter,
    /// Where this limiter is: the near end, the far end, or the path between them.
    pub end: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_limiter_is_its_name_in_json() {
        for limiter in Limiter::ALL {
            assert_eq!(serde_json::to_value(limiter).unwrap(), limiter.id());
        }
    }
}
