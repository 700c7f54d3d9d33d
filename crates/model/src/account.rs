//! Where the flows' time went: every moment of every flow belongs to one limiter.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::place::Place;

/// What would have delivered more at a moment, had it been wider.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// The program gave or took nothing: its own work, its source or sink, a rate that was asked for.
    Application,
    /// Nothing was left to send while the writer waited for room.
    SendBuffer,
    /// The receiver's window was full while its reader kept up; of UDP, its socket dropped.
    ReceiveWindow,
    /// The congestion window was full without a queue, after something had cut it.
    CongestionWindow,
    /// Fast recovery, time-outs, and the window growing back; of UDP, the share that was lost.
    Recovery,
    /// A queue stood, or the path delivered at a steady rate.
    PathRate,
    /// Slow start that nothing had cut.
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

/// The account of one direction. The parts and what is unknown add up to the time of all flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Flows that were counted.
    pub flows: usize,
    /// Time of all flows together, seconds: their number times the time that was looked at.
    pub flow_seconds: f64,
    /// What limited, the largest first. What held nothing is left out.
    pub parts: Vec<AccountPart>,
    /// Time that nothing is known about, seconds.
    pub unknown_s: f64,
    /// Who limited when: the limiter that held most of each stretch of time, in order.
    pub timeline: Vec<AccountSpan>,
}

/// The time that one limiter held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountPart {
    /// What limited.
    pub limiter: Limiter,
    /// Where it sits.
    pub end: Place,
    /// Time of all flows that it held, seconds.
    pub seconds: f64,
}

/// A stretch of time that one limiter held most of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountSpan {
    /// Start, seconds by the sender's samples.
    pub from_s: f64,
    /// End, seconds.
    pub to_s: f64,
    /// What limited.
    pub limiter: Limiter,
    /// Where it sits.
    pub end: Place,
}
