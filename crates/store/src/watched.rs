//! What the history knows of the tests of `goodput watch`: series of tests with one plan.

use goodput_model::BitRate;

/// What a watch knows of a test, beside its record.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// What of the plan makes tests comparable, as JSON. Tests of a target with the same text can be compared.
    pub plan: String,
    /// Goodput, bits per second; none if the test is not whole.
    pub goodput: Option<BitRate>,
}

/// A whole test of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// Number of its record.
    pub record: i64,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Goodput, bits per second.
    pub goodput: BitRate,
    /// Round-trip time under load, seconds, if the history knows it.
    pub round_trip_s: Option<f64>,
    /// Share that was lost or sent again, 0 to 1, if the history knows it.
    pub lost_share: Option<f64>,
    /// Whether it is the first one after a change of the path.
    pub begins_change: bool,
}

/// What a series is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The target, as typed by the user.
    pub target: String,
    /// What its tests have in common, as JSON.
    pub plan: String,
}

/// A change of a path, as the watch that found it said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldChange {
    /// The target, as typed by the user.
    pub target: String,
    /// What was said, as JSON.
    pub event: String,
    /// The host whose watch found it, if that is another one than this; only a database has those of others.
    pub of_host: Option<String>,
}

/// A number of bytes as a database has it: none has a larger one.
pub(crate) fn whole(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
