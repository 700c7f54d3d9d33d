//! A flow whose connection was lost while the others of its measurement went on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::Role;

/// A flow that one end lost. What it had moved until then counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LostFlow {
    /// Number of the flow.
    pub flow: u16,
    /// Whether this end was its sender or its receiver.
    pub role: Role,
    /// When this end learned of it, seconds by this end's samples.
    pub at_s: f64,
    /// What the system reported, in words.
    pub why: String,
}
