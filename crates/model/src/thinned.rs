//! What a long measurement leaves out of its record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far apart what is kept of a long measurement lies, seconds. Everything that was taken is kept of a short one,
/// and of the beginning of each. What is left is as it was counted: sums and rates between any two samples, and over any
/// intervals, are exact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thinned {
    /// Length of the intervals, each joined from several that were shown. Absent if none were joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals_every_s: Option<f64>,
    /// Mean time between two samples of the near end after the beginning. Absent if none was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_samples_every_s: Option<f64>,
    /// The same of the far end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_samples_every_s: Option<f64>,
}

impl Thinned {
    /// As a record has it: not at all if nothing was left out.
    pub fn if_any(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}
