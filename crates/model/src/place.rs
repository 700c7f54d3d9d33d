//! Where a limit sits.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end_name::EndName;

/// Where a limit sits.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// At this host.
    Near,
    /// At the target.
    Far,
    /// Between the two.
    Path,
}

impl From<EndName> for Place {
    fn from(end: EndName) -> Self {
        match end {
            EndName::Near => Self::Near,
            EndName::Far => Self::Far,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::Path => "path",
        })
    }
}
