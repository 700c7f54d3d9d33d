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
    /// Start of the check, RFC 3339, UTC.
    pub started: String,
    /// The checked host.
    pub host: Host,
    /// The checked network devices.
    pub devices: Vec<String>,
    /// Time over which counters were observed, seconds; missing if they were read once.
    pub watched_s: Known<f64>,
    /// Causes that limit or could limit a transfer; certain ones first.
    pub findings: Vec<Finding>,
    /// Checks that could not decide, and why.
    pub undecided: Vec<Undecided>,
}
