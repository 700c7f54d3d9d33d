//! What the flows of one direction lost, and which explanation fits the way it was lost best.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;

/// How packets come to be lost, or to look lost.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LossModel {
    /// Each packet is lost with the same chance.
    Random,
    /// Chance too, but packets are lost in runs (Gilbert).
    Runs,
    /// Lost from a certain amount in flight on, in each flow: a bucket or a queue that holds only so much.
    Flight,
    /// The same of all flows together.
    SharedFlight,
    /// Lost when a queue is full.
    Queue,
    /// Lost when a token bucket is empty.
    Bucket,
    /// Not lost but late: packets overtake each other.
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
            Self::Reordering => "packets that come late",
        })
    }
}

/// What the flows of one direction lost, over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// Segments sent, repeated ones included.
    pub sent_segments: u64,
    /// Of them, those that never arrived.
    pub lost_segments: u64,
    /// Segments sent again.
    pub repeated_segments: u64,
    /// Of them, those that the receiver had already (DSACK).
    pub needless_segments: u64,
    /// Segments that arrived after later ones and were not lost, as the sender noticed.
    pub late_segments: u64,
    /// What explains it, or why there is no explanation.
    pub explanation: Known<LossModel>,
    /// Every explanation that could be tried, the best first.
    pub candidates: Vec<LossCandidate>,
}

/// One explanation, as well as it fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossCandidate {
    /// Which.
    pub model: LossModel,
    /// How much worse it fits than the best one of the lost segments: the difference of the Bayesian information
    /// criterion (Schwarz 1978), 0 or more.
    pub behind: f64,
    /// What it says of the path.
    pub parameters: Vec<LossParameter>,
}

/// A property of the path, with the interval that holds it with 90 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossParameter {
    /// Name with its unit.
    pub name: String,
    /// Best value.
    pub value: f64,
    /// Start of the interval.
    pub least: f64,
    /// End of the interval.
    pub most: f64,
}
