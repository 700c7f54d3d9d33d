//! Losses of one direction's flows, and the explanation that fits their pattern best.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;

/// How packets are lost, or seem to be lost.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LossModel {
    /// Each packet is lost with the same probability.
    Random,
    /// Packets are lost by chance, but several in a row (Gilbert model).
    Runs,
    /// Packets are lost if one flow has more than a certain amount in flight: a bucket or a queue of limited depth.
    Flight,
    /// Packets are lost if all flows together have more than a certain amount in flight.
    SharedFlight,
    /// Packets are lost when a queue is full.
    Queue,
    /// Packets are lost when a token bucket is empty.
    Bucket,
    /// Packets are lost if all flows together send more than a certain rate, which passes.
    Rate,
    /// Packets are not lost but late: they overtake each other.
    Reordering,
}

impl fmt::Display for LossModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Random => "chance",
            Self::Runs => "chance, in runs",
            Self::Flight => "a limit of what is in flight",
            Self::SharedFlight => "a limit of what all flows have in flight",
            Self::Queue => "a full queue",
            Self::Bucket => "an empty token bucket",
            Self::Rate => "a rate that drops what exceeds it",
            Self::Reordering => "packets that come late",
        })
    }
}

/// Losses of one direction's flows over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// Segments sent, including retransmissions.
    pub sent_segments: u64,
    /// Sent segments that never arrived.
    pub lost_segments: u64,
    /// Segments that were retransmitted.
    pub repeated_segments: u64,
    /// Segments that were retransmitted although the receiver already had them (DSACK).
    pub needless_segments: u64,
    /// Segments that arrived late but were not lost, as the sender counts them.
    pub late_segments: u64,
    /// The explanation of the losses, or why there is none.
    pub explanation: Known<LossModel>,
    /// Every explanation that could be tested, the best first.
    pub candidates: Vec<LossCandidate>,
}

/// One explanation of the losses, and how well it fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossCandidate {
    /// The explanation.
    pub model: LossModel,
    /// How much worse this explanation fits than the best one: the difference of the Bayesian information criterion
    /// (Schwarz 1978), 0 or more.
    pub behind: f64,
    /// Properties of the path according to this explanation.
    pub parameters: Vec<LossParameter>,
}

/// A property of the path, with its 90 % interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossParameter {
    /// Name of the property, with its unit.
    pub name: String,
    /// Most likely value, in the unit that the name ends with.
    pub value: f64,
    /// Lower end of the 90 % interval.
    pub least: f64,
    /// Upper end of the 90 % interval.
    pub most: f64,
}
