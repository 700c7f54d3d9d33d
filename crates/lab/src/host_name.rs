//! The names of the lab's hosts.

use std::fmt;

use serde::Deserialize;

/// A host of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostName {
    /// Where the client runs.
    Near,
    /// Where the server runs.
    Far,
    /// Between the two, if the scenario has it.
    Router,
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::Router => "router",
        })
    }
}
