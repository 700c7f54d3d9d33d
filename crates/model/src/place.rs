//! Where something is on the measured path.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end_name::EndName;

/// Where something is on the measured path: at one of the hosts, or between them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// This host.
    Near,
    /// The target.
    Far,
    /// Between the two hosts.
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
