//! The names of the two ends of a path.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which of the two ends. The near end is where the user typed the command.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EndName {
    /// This host.
    Near,
    /// The target.
    Far,
}

impl EndName {
    /// The end opposite to this one.
    pub fn other(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }
}

impl fmt::Display for EndName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Near => "near",
            Self::Far => "far",
        })
    }
}
