//! One run of an arm over time, so that arms can be looked at beside each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::AccountSlice;
use crate::units::Bytes;

/// One run of an arm over time, in the direction that is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownRun {
    /// The block to which the run belongs.
    pub block: u32,
    /// What the receiver had counted at some moments, in order of time.
    pub received: Vec<ReceivedBy>,
    /// Which limiter held how much of the flows' time in each slice of the run. Empty if nobody knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<AccountSlice>,
}

/// What all flows had received by a moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedBy {
    /// Time since the start of the run, seconds.
    pub at_s: f64,
    /// Payload received since then.
    pub bytes: Bytes,
}
