//! What is said of every lasting change of a path, whatever changed.

use goodput_watch::{Difference, Limit};
use serde::{Deserialize, Serialize};

/// When a path changed, by which tests, and what changed with it. All times are RFC 3339, UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// When the test began that made it certain enough.
    pub at: String,
    /// The target, as typed.
    pub target: String,
    /// When the first test after the change began: the likeliest one.
    pub since: String,
    /// When the first test after the change began at the earliest and at the latest, with a likelihood of 95 % between; absent
    /// if it is sure to the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_between: Option<[String; 2]>,
    /// Number of tests since then.
    pub tests: usize,
    /// Probability that tests of an unchanged path differ as much, 0 to 1.
    pub p_value: f64,
    /// The last record that is surely before.
    pub record_before: i64,
    /// The first record since; absent in what earlier goodputs said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_first: Option<i64>,
    /// The newest record.
    pub record_since: i64,
    /// What limited the path before; absent if no record can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_before: Option<Limit>,
    /// What has limited it since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_since: Option<Limit>,
    /// What changed of the test itself: then nobody knows whether the path did. Earlier goodputs had it in `changed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test: Vec<Difference>,
    /// What else changed.
    pub changed: Vec<Difference>,
    /// If all is as before an earlier change again, when the first test after that began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_back: Option<String>,
    /// The host whose watch found it, if that is another one than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_host: Option<String>,
}

impl ChangePoint {
    /// Whether the path changed, as far as anyone can tell: its tests were made in one way.
    pub fn is_of_path(&self) -> bool {
        self.test.is_empty()
    }

    /// What it is a change of.
    pub fn subject(&self) -> &'static str {
        if self.is_of_path() { "the path" } else { "a test" }
    }

    /// Whether a count of changes has it: it is one of the path, and takes none back.
    pub fn counts(&self) -> bool {
        self.is_of_path() && self.takes_back.is_none()
    }

    /// The numbers of the last record before, and of the newest.
    pub fn records(&self) -> [i64; 2] {
        [self.record_before, self.record_since]
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A change of `nas`, seen by eight tests.
    pub fn example() -> ChangePoint {
        ChangePoint {
            at: "2026-11-27T15:20:00Z".into(),
            target: "nas".into(),
            since: "2026-11-24T14:05:00Z".into(),
            since_between: None,
            tests: 8,
            p_value: 1e-9,
            record_before: 811,
            record_first: None,
            record_since: 819,
            limit_before: None,
            limit_since: None,
            test: Vec::new(),
            changed: Vec::new(),
            takes_back: None,
            of_host: None,
        }
    }
}
