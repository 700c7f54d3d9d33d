//! What an end chose, if the plan leaves the choice to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::Role;

/// How one end sends or receives, if the plan names the mover `auto`, or one that has several forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MoverChoice {
    /// Whether this end sends or receives with the mover.
    pub role: Role,
    /// Id of the mover, as `goodput list movers` prints it.
    pub mover: String,
    /// Why this mover was chosen, why better ones were not, and the form in which it works.
    pub why: String,
}
