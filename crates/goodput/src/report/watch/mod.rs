//! What happens during a watch: the events as data, as text, and for a page in a browser.

mod named;
mod page;
mod text;

use goodput_model::{BitRate, Bytes, Limiter, Place};
use goodput_watch::Difference;
use serde::{Deserialize, Serialize};

pub use self::page::for_a_page;
pub use self::text::{interval, moment, text, text_in};
use super::change_point::ChangePoint;
use super::shifted::Shifted;

/// Something that happened. All times are RFC 3339, UTC.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The watch begins.
    Begin {
        /// When.
        at: String,
        /// The targets, as typed.
        targets: Vec<String>,
        /// Time between two tests of a target, seconds.
        every_s: f64,
        /// Bytes that all tests may cost in 24 hours.
        budget_bytes: Bytes,
        /// Bytes that one test costs if nothing is lost; absent if it moves what the path lets through.
        #[serde(skip_serializing_if = "Option::is_none")]
        test_bytes: Option<Bytes>,
        /// Seconds after which the tests have used up what is left of the budget of 24 hours; absent if it suffices, or is not
        /// known to be too small.
        #[serde(skip_serializing_if = "Option::is_none")]
        budget_lasts_s: Option<f64>,
        /// Bytes of the last 24 hours.
        used_bytes: Bytes,
        /// Further tests of each target before a change of all of them can be found; absent if it can already.
        #[serde(skip_serializing_if = "Option::is_none")]
        learning_tests: Option<usize>,
    },
    /// Tests of a target are made in another way than those before, so they are compared with each other alone.
    MadeInAnotherWay {
        /// When this was known.
        at: String,
        /// The target, as typed.
        target: String,
        /// What differs.
        test: Vec<Difference>,
        /// Further tests before a change can be found.
        learning_tests: usize,
    },
    /// Tests were left out, because something held up the watch.
    Late {
        /// When this was known.
        at: String,
        /// Their number.
        tests: u64,
        /// The targets whose turns passed, each once.
        targets: Vec<String>,
        /// What held up the watch.
        #[serde(flatten)]
        because: HeldUp,
    },
    /// A test has a result.
    Tested(Tested),
    /// A test has none: a gap, not a rate of 0.
    NoResult {
        /// When the test ended.
        at: String,
        /// The target, as typed.
        target: String,
        /// Why.
        why: String,
        /// The first test without a result since the last one with a result.
        since: String,
        /// Bytes that it cost all the same.
        bytes: Bytes,
        /// Bytes of all tests of the last 24 hours.
        used_bytes: Bytes,
    },
    /// A test was not made, because this host or the target was busy: it says nothing of the path.
    NotTested {
        /// When this was known.
        at: String,
        /// The target, as typed.
        target: String,
        /// Why.
        why: String,
        /// Bytes that it cost all the same.
        bytes: Bytes,
        /// Bytes of all tests of the last 24 hours.
        used_bytes: Bytes,
    },
    /// A target answers again.
    Back {
        /// When its test began.
        at: String,
        /// The target, as typed.
        target: String,
        /// The first test without a result.
        since: String,
    },
    /// The budget is used up, and a test was left out.
    UsedUp {
        /// When it would have begun.
        at: String,
        /// The target, as typed.
        target: String,
        /// Bytes of the last 24 hours.
        used_bytes: Bytes,
        /// Bytes that may be spent in 24 hours.
        budget_bytes: Bytes,
        /// When a test fits again; absent if it never does.
        #[serde(skip_serializing_if = "Option::is_none")]
        free_at: Option<String>,
    },
    /// The goodput of a path changed.
    Changed(Box<Changed>),
    /// Another quantity of a path changed.
    Shifted(Box<Shifted>),
}

impl Event {
    /// Whether the path changed, as far as anyone can tell.
    pub fn is_of_path(&self) -> bool {
        match self {
            Self::Changed(change) => change.found.is_of_path(),
            Self::Shifted(shift) => shift.found.is_of_path(),
            _ => false,
        }
    }

    /// The target that it is about; empty if it is about none or all.
    pub fn target(&self) -> &str {
        match self {
            Self::Begin { .. } | Self::Late { .. } => "",
            Self::Tested(test) => &test.target,
            Self::Changed(change) => &change.found.target,
            Self::Shifted(shift) => &shift.found.target,
            Self::NoResult { target, .. }
            | Self::NotTested { target, .. }
            | Self::Back { target, .. }
            | Self::MadeInAnotherWay { target, .. }
            | Self::UsedUp { target, .. } => target,
        }
    }
}

/// What held up a watch since the last turn was due. What took less than a tenth of that time is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct HeldUp {
    /// A test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<TestTook>,
    /// Waiting for another watch on this host, which had the turn to test, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_s: Option<f64>,
    /// The history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryDelay>,
    /// Seconds in which the watch could not go on and waited for none of these, as on a busy host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_s: Option<f64>,
}

/// What a test took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestTook {
    /// Its target, as typed.
    pub target: String,
    /// Seconds.
    pub took_s: f64,
}

/// What the history cost tests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryDelay {
    /// How long it took, seconds, without the time in which this host's CPUs were busy with something else.
    pub took_s: f64,
    /// Why it could not be used in the end; absent if it was only slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A test with a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tested {
    /// When it began.
    pub at: String,
    /// The target, as typed.
    pub target: String,
    /// Number of its record; absent if the record was not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<i64>,
    /// Goodput, bits per second.
    pub goodput_bits_per_s: BitRate,
    /// Id of the limiting rule, or `none`.
    pub limit: String,
    /// What took more than half of the flows' time, if no rule says why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limiter: Option<Limiter>,
    /// Where the limit is.
    pub end: Place,
    /// Probability of the limit, 0 to 1, if it was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Round-trip time under load, seconds, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_s: Option<f64>,
    /// Smallest round-trip time, seconds, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_round_trip_s: Option<f64>,
    /// Share of the payload that was sent again, or of the datagrams that were lost, 0 to 1, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_share: Option<f64>,
    /// Why it is only a part of a test, if it is one. Such a test is not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// What else goodput measured on this host when its payload began or ended, as commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// Bytes that it cost.
    pub bytes: Bytes,
    /// Bytes of all tests of the last 24 hours.
    pub used_bytes: Bytes,
}

impl Tested {
    /// One name for the limit, whether a rule names it or only the account of the time.
    pub fn limit_name(&self) -> String {
        self.limiter.map_or_else(|| self.limit.clone(), Limiter::id)
    }
}

/// A change of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// When, by which tests, and what changed with it.
    #[serde(flatten)]
    pub found: ChangePoint,
    /// Change of the goodput, percent, without the daily rhythm.
    pub percent: f64,
    /// Lower end of its 95 % confidence interval.
    pub low_percent: f64,
    /// Upper end of its 95 % confidence interval.
    pub high_percent: f64,
    /// Usual goodput before, bits per second.
    pub before_bits_per_s: BitRate,
    /// Usual goodput since, bits per second.
    pub since_bits_per_s: BitRate,
}
