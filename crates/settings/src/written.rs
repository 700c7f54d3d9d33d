//! Files that a run writes to keep values over a reboot, before it has decided to keep them: what they were, and what becomes
//! of them if the run does not come to that.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Files of ours that change together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    /// Below which they are; `/` except in tests.
    pub(crate) root: PathBuf,
    /// The files, in the order in which they are written.
    pub(crate) files: Vec<WrittenFile>,
}

/// A file before and after its change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenFile {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its text before, if it was there.
    pub(crate) old: Option<String>,
    /// Its text after; without one, it is removed.
    pub(crate) new: Option<String>,
    /// Whether it is the unit, and started at boot before.
    pub(crate) is_enabled: bool,
}

/// A file that a run had written and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenBack {
    /// Where it is.
    pub path: String,
    /// What became of it.
    pub outcome: FileOutcome,
}

/// The end of a file that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOutcome {
    /// It is as it was before the run.
    PutBack,
    /// It was so already: the run did not come to write it.
    AlreadyBack,
    /// It is neither as before nor as the run wrote it; left alone.
    ChangedByOther,
    /// It could not be put back, for this reason, and someone has given it up.
    GivenUp(String),
    /// It could not be put back, for this reason; kept in the journal.
    Failed(String),
}

impl TakenBack {
    /// Whether it is as before the run.
    pub fn is_as_before(&self) -> bool {
        matches!(self.outcome, FileOutcome::PutBack | FileOutcome::AlreadyBack)
    }

    /// Whether there is nothing left to do about it.
    pub fn is_settled(&self) -> bool {
        !matches!(self.outcome, FileOutcome::Failed(_))
    }
}

impl fmt::Display for TakenBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, outcome } = self;
        match outcome {
            FileOutcome::PutBack => {
                write!(
                    f,
                    "{path}: as before the run, which had written values that it did not keep"
                )
            }
            FileOutcome::AlreadyBack => write!(f, "{path}: as before the run"),
            FileOutcome::ChangedByOther => write!(
                f,
                "{path}: changed by someone else since the run wrote it; left alone, and it may keep the run's values"
            ),
            FileOutcome::GivenUp(why) => {
                write!(
                    f,
                    "{path}: forgotten, and it may keep the run's values after a reboot ({why})"
                )
            }
            FileOutcome::Failed(why) => {
                write!(
                    f,
                    "{path}: not put back, and it keeps the run's values after a reboot: {why}"
                )
            }
        }
    }
}
