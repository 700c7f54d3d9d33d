//! What the pages show and do besides the history. The program hands it over, so that no page knows the engine.

use std::process::Command;

use goodput_fleet::Surveyed;
use goodput_model::{CheckReport, Direction, Record};
use goodput_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

/// What the program does for the pages. Every call may block for a moment.
pub trait Program: Send + Sync + 'static {
    /// The history, opened anew to be read: another process may have moved or damaged it meanwhile.
    ///
    /// # Errors
    /// When it can't be opened.
    fn history(&self) -> Result<Store, StoreError>;

    /// The lasting changes that the tests of watches show of the path to `target`, the oldest first.
    ///
    /// # Errors
    /// When the history can't be read.
    fn path_changes(&self, history: &Store, target: &str) -> Result<Vec<PathChange>, StoreError>;

    /// What the tests of the history say of each pair of a mesh.
    ///
    /// # Errors
    /// In words for a person.
    fn mesh(&self, history: &Store, asked: &MeshAsked) -> Result<Surveyed, String>;

    /// What could limit this host.
    ///
    /// # Errors
    /// In words for a person.
    fn check(&self) -> Result<CheckReport, String>;

    /// The settings of this host with their values.
    fn settings(&self) -> Vec<SettingLine>;

    /// At most `most` changes of settings that are on record: those before a place that [`ChangesPart::older`] named, or the
    /// newest ones.
    ///
    /// # Errors
    /// In words for a person.
    fn changes(&self, before: Option<u64>, most: usize) -> Result<ChangesPart, String>;

    /// The changes that are still in effect and that no run will put back, the newest first, one for each setting.
    ///
    /// # Errors
    /// In words for a person.
    fn standing(&self) -> Result<Vec<LoggedChange>, String>;

    /// Takes a standing change back. Returns what it did.
    ///
    /// # Errors
    /// In words for a person.
    fn take_back(&self, change: &LoggedChange) -> Result<String, String>;

    /// The files that keep settings after a reboot, a line each.
    fn saved(&self) -> Vec<String>;

    /// Removes these files. Returns what it did, a line each.
    fn remove_saved(&self) -> Vec<String>;

    /// What interrupted runs left changed, a sentence each.
    fn leftovers(&self) -> Vec<String>;

    /// Puts back what interrupted runs left changed. Returns what it did, a line each.
    ///
    /// # Errors
    /// In words for a person.
    fn undo(&self) -> Result<Vec<String>, String>;

    /// What interrupted runs may have left changed at hosts reached by SSH, a sentence each. Nobody logs in for it.
    fn left_at_hosts(&self) -> Vec<String>;

    /// Logs in to these hosts and puts back what is still changed, which may take minutes. Returns what it did, a line each.
    fn undo_at_hosts(&self) -> Vec<String>;

    /// A result with its reasons as people read them; programs get the record as it was kept.
    fn in_words(&self, record: Record) -> Record;

    /// The report of a result, as its command printed it, without control sequences.
    fn report(&self, record: &Record) -> String;

    /// The command that measures what is asked for, and prints events as JSON lines. It ends early when its standard input
    /// ends.
    ///
    /// # Errors
    /// When the command line would refuse it: why, in words for a person.
    fn measurement(&self, asked: &MeasureAsked) -> Result<Command, String>;

    /// What is measured on this host now and was not started from a page.
    fn running(&self) -> Vec<Running>;

    /// The cause that the rule with this id finds, in a few words; `None` if there is no such rule.
    fn cause(&self, rule: &str) -> Option<&'static str>;
}

/// What a form asks to be measured. The values are as they were typed: the command line reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasureAsked {
    /// What is done.
    pub what: Measures,
    /// The far end.
    pub target: String,
    /// Settings of a comparison, each `SETTING=A,B`.
    pub settings: Vec<String>,
    /// Length of a run.
    pub time: Option<String>,
    /// Who sends.
    pub direction: Direction,
    /// Flows in each direction.
    pub flows: Option<String>,
    /// Whether it is UDP instead of TCP.
    pub udp: bool,
    /// At which rate it sends.
    pub rate: Option<String>,
    /// Congestion control at both ends.
    pub congestion: Option<String>,
    /// The public key that the server must have.
    pub server_key: Option<String>,
}

/// What is done with a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Measures {
    /// One measurement.
    #[default]
    Test,
    /// Interleaved runs with different values of settings.
    Compare,
    /// Changes are proposed, tried and put back.
    Tune,
}

impl Measures {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Test, Self::Compare, Self::Tune];

    /// The command.
    pub fn command(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Compare => "compare",
            Self::Tune => "tune",
        }
    }
}

/// What is asked of the tests of a mesh.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshAsked {
    /// When they began, or later: RFC 3339, UTC, or the beginning of such a time.
    pub since: String,
    /// How much slower than typical a slow pair is, percent, above 0 and below 100.
    pub slow_percent: f64,
}

/// A lasting change of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// When the first test after it began, RFC 3339, UTC.
    pub since: String,
    /// What changed: `the path`, or `a test` if tests were made in another way.
    pub whose: &'static str,
    /// What it does since, as `gives 41 % less`, with its interval.
    pub amount: String,
    /// The value before, and what limited the path.
    pub before: String,
    /// The value since, and what limits the path.
    pub after: String,
    /// What else changed, a line each.
    pub with_it: Vec<String>,
    /// The last record before, and the newest one that was needed to be sure.
    pub records: [i64; 2],
}

/// What ends the events of a measurement that has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum NoResult {
    /// It failed.
    Failed {
        /// Why, in words.
        why: String,
    },
}

/// A measurement of another program.
pub struct Running {
    /// Distinguishes it from all others.
    pub id: String,
    /// The command, such as `test`.
    pub command: String,
    /// What is measured.
    pub target: String,
    /// When its record begins, RFC 3339, UTC.
    pub started: String,
    /// Its events, each a line of JSON, from the first one on, and [`NoResult`] at the end of one that failed. Waits for the
    /// next one; ends with the measurement.
    pub events: Box<dyn Iterator<Item = String> + Send>,
}

/// A setting of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingLine {
    /// `NAME[@SCOPE]`.
    pub name: String,
    /// What it does.
    pub title: String,
    /// Its value, or why it has none.
    pub value: Result<String, String>,
}

/// A part of all changes, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesPart {
    /// The changes.
    pub changes: Vec<LoggedChange>,
    /// Where those before them end; `None` if there are none.
    pub older: Option<u64>,
}

/// One change of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChange {
    /// When, RFC 3339, UTC.
    pub time: String,
    /// `NAME[@SCOPE]`.
    pub setting: String,
    /// Value before.
    pub from: String,
    /// Value after.
    pub to: String,
    /// What happened, in a word or two.
    pub what: String,
    /// The run that made it; empty if the log does not say.
    pub run: String,
    /// The network namespace in which it was made; empty if the log does not say.
    pub place: String,
    /// The host that was changed by SSH, as `ssh://…`; empty: this host.
    pub host: String,
}
