//! Files that a run writes to keep values over a reboot, before it has decided to keep them: what they were, and what becomes
//! of them if the run does not come to that.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::holder::Holder;

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

impl Written {
    /// The outcome of each file, the last one first.
    pub(crate) fn each(&self, outcome: impl Fn(&WrittenFile) -> FileOutcome) -> Vec<TakenBack> {
        let back = self.files.iter().rev().map(|file| TakenBack {
            path: file.path.display().to_string(),
            outcome: outcome(file),
        });
        back.collect()
    }
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
    /// It was so already: the run had not written it yet.
    AlreadyBack,
    /// The dead run's guard put it back while we waited for the guard.
    ByGuard,
    /// A live run has written it, and keeps it or puts it back itself; left alone.
    InUse {
        /// The process of that run.
        pid: u32,
    },
    /// Someone else is working on it; left alone.
    Held(Holder),
    /// The journal is damaged, so nobody knows whether this is all of it; left alone.
    Untouched,
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
        use FileOutcome::{AlreadyBack, ByGuard, PutBack};
        matches!(self.outcome, PutBack | AlreadyBack | ByGuard)
    }

    /// Whether there is nothing left to do about it.
    pub fn is_settled(&self) -> bool {
        !matches!(self.outcome, FileOutcome::Failed(_) | FileOutcome::Held(_))
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
            FileOutcome::ByGuard => {
                write!(f, "{path}: put back by the guard of the interrupted run")
            }
            FileOutcome::InUse { pid } => write!(
                f,
                "{path}: written by a run at work (process {pid}), which keeps it or puts it back"
            ),
            FileOutcome::Held(holder) => {
                write!(f, "{path}: not put back yet: {holder}; run `goodput settings undo` again")
            }
            FileOutcome::Untouched => write!(
                f,
                "{path}: left alone: the run has written it, or was about to, and did not keep it"
            ),
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
                    "{path}: not put back, and it may keep the run's values after a reboot: {why}"
                )
            }
        }
    }
}
