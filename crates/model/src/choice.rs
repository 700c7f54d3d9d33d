//! What an end chose, if the plan leaves the choice to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::Role;

/// How one end sends or receives, if the plan names the mover `auto`, or one that has several forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MoverChoice {
    /// Whether it is how this end sends or how it receives.
    pub role: Role,
    /// Id of the mover, as `goodput list movers` prints it.
    pub mover: String,
    /// Why it was taken, what stood against better ones, and in which form it works.
    pub why: String,
}
