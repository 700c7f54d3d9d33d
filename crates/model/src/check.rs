//! What `goodput check` finds on a host without any traffic of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end::Host;
use crate::finding::{Finding, Undecided};
use crate::known::Known;

/// The result of a check: the contract of `goodput check --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// Version of this format.
    pub format: u32,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// The host that was looked at.
    pub host: Host,
    /// The network devices that were looked at.
    pub devices: Vec<String>,
    /// How long counters were watched, seconds; missing if they were read once.
    pub watched_s: Known<f64>,
    /// What limits or could limit a transfer; certain before possible.
    pub findings: Vec<Finding>,
    /// Checks that could not decide, with what they lacked.
    pub undecided: Vec<Undecided>,
}
