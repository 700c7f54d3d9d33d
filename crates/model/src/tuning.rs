//! What tuning tried, what each change gained, and which gains are proven.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::comparison::Comparison;
use crate::known::Known;

/// Everything that tuning showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tuning {
    /// What was to be gained.
    pub purpose: Purpose,
    /// Smallest gain for which a change is kept, percent.
    pub min_gain_percent: f64,
    /// Every change that was proposed, in the order in which they were tried.
    pub steps: Vec<TuningStep>,
    /// The changes that are proven: the last comparison, of all of them against the start, found them better.
    pub proven: Vec<Change>,
    /// The files that keep the proven changes after a reboot, if that was asked for; those of a host reached by SSH
    /// begin with its address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_in: Vec<String>,
    /// Why no more was tried.
    pub stopped: String,
}

/// One change, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuningStep {
    /// What was changed.
    pub change: Change,
    /// Id of the rule that proposed it.
    pub rule: String,
    /// What came of it.
    pub outcome: TuningOutcome,
    /// Against the best that was known before, or why there was no comparison.
    pub comparison: Known<Comparison>,
}

/// What came of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TuningOutcome {
    /// It was proven to gain enough, and stayed for the steps after it.
    Kept,
    /// It helped when it was tried, but makes no difference beside the changes kept after it: it was dropped.
    Dropped,
    /// Leaving it out again was tried, and it stayed.
    Confirmed,
    /// It was not proven to gain enough.
    NotBetter,
    /// Its comparison ended before its first look: so few runs can show nothing.
    TooFewRuns,
    /// It could not be tried.
    Failed,
    /// It could not be tried, because a privilege is missing here or at the far end.
    NotPermitted,
    /// It was not tried, because only a plan was asked for.
    Planned,
}

/// What tuning is to gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Goodput.
    Throughput,
    /// Shorter round trips under load, at no less goodput.
    Latency,
    /// Less CPU time for each byte, at no less goodput.
    Cpu,
    /// Any of the three, if none of the others gets worse.
    Balanced,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Self; 4] = [Self::Throughput, Self::Latency, Self::Cpu, Self::Balanced];

    fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Cpu => "cpu",
            Self::Balanced => "balanced",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no purpose.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a purpose; write throughput, latency, cpu or balanced")]
pub struct BadPurpose(String);

impl FromStr for Purpose {
    type Err = BadPurpose;

    fn from_str(text: &str) -> Result<Self, BadPurpose> {
        let named = Self::ALL.into_iter().find(|purpose| purpose.name() == text);
        named.ok_or_else(|| BadPurpose(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purpose_is_read_as_it_is_written() {
        for purpose in Purpose::ALL {
            assert_eq!(purpose.to_string().parse(), Ok(purpose));
        }
        assert!("speed".parse::<Purpose>().is_err());
    }
}
