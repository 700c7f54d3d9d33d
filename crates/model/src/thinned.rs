//! What the record of a long measurement leaves out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Times between the details that the record of a long measurement keeps, seconds. Short measurements, and the
/// beginning of long ones, are kept in full. Kept details are as counted: sums and rates between any two samples,
/// and over any intervals, are exact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thinned {
    /// Length of the kept intervals, each joined from several that were shown, seconds. Absent if none were joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals_every_s: Option<f64>,
    /// Mean time between two kept samples of the near end after the beginning, seconds. Absent if none were left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_samples_every_s: Option<f64>,
    /// Mean time between two kept samples of the far end after the beginning, seconds. Absent if none were left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_samples_every_s: Option<f64>,
}

impl Thinned {
    /// The value for a record: none if nothing was left out.
    pub fn if_any(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}
