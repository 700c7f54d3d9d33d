//! What a scenario runs.

use serde::Deserialize;

use crate::amount::{self, Time};

/// What to run in the hosts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// What the near host runs.
    pub verb: Verb,
    /// Further arguments of `goodput serve` in the far host.
    pub server: Vec<String>,
    /// Further arguments of the command in the near host.
    pub client: Vec<String>,
    /// Length of the test; 4 s by default.
    pub seconds: Option<f64>,
    /// The far end reports neither facts nor samples, as a public server may: only the near host's view is available
    /// for the verdict.
    pub private: bool,
    /// Over IPv6 instead of IPv4.
    pub ipv6: bool,
    /// CPUs that goodput may use in either host, the same ones; all by default.
    pub cpus: Option<usize>,
    /// How long the command may take in all; ten minutes by default.
    #[serde(deserialize_with = "amount::optional")]
    pub within: Option<Time>,
}

/// A command of goodput that a scenario can run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// `goodput test`.
    #[default]
    Test,
}

impl Verb {
    /// The word on goodput's command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Test => "test",
        }
    }
}
