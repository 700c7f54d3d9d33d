//! Finishing what a power cut, or the death of a run and of its guard, left changed.

use std::path::{Path, PathBuf};

use goodput_model::SettingRef;

use crate::error::SettingError;
use crate::journal::{JournalFile, abandoned, left};
use crate::restore::{Forget, RestoreReport, settle};

/// Puts back what runs that are no more left changed, one report for each of them; none where
/// there is nothing to do. The changes of live runs are left alone.
///
/// # Errors
/// When `state_dir` can't be read, or someone else can write to it. What can't be put back is
/// told in the reports.
pub fn undo(state_dir: &Path) -> Result<Vec<RestoreReport>, SettingError> {
    settle_all(state_dir, Forget::Nothing)
}

/// The same, and gives up what belongs to other network namespaces, as far as `forget` says so.
///
/// # Errors
/// As [`undo`].
pub fn undo_and_forget(
    state_dir: &Path,
    forget: Forget,
) -> Result<Vec<RestoreReport>, SettingError> {
    settle_all(state_dir, forget)
}

fn settle_all(state_dir: &Path, forget: Forget) -> Result<Vec<RestoreReport>, SettingError> {
    // The last run first: it may have started from what an earlier one had left.
    let reports = abandoned(state_dir)?.into_iter().rev().map(|(path, opened)| match opened {
        Ok(journal) => settle(journal, forget),
        Err(cause) => unopened(path, &cause),
    });
    Ok(reports.collect())
}

/// Settles what can be settled before a new run begins in `state_dir`, so that nothing which a dead
/// run left passes for an original.
pub(crate) fn settle_before(state_dir: &Path) -> Result<Vec<RestoreReport>, SettingError> {
    let opened = abandoned(state_dir)?.into_iter().rev();
    let journals = opened.filter_map(|(_, journal)| journal.ok());
    let reports = journals.map(|journal: JournalFile| settle(journal, Forget::Nothing));
    Ok(reports.filter(|report| !report.entries.is_empty()).collect())
}

fn unopened(journal: PathBuf, cause: &std::io::Error) -> RestoreReport {
    let problem = Some(format!("it can't be opened: {cause}"));
    RestoreReport { journal, entries: Vec::new(), problem }
}

/// A journal that a dead run left: something may still be as that run had set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Where the journal is.
    pub journal: PathBuf,
    /// What it would put back; empty if it can't be read.
    pub settings: Vec<SettingRef>,
}

impl std::fmt::Display for Leftover {
    /// What is left, and the command that puts it back.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings: Vec<_> = self.settings.iter().map(ToString::to_string).collect();
        let what = if settings.is_empty() { "something".into() } else { settings.join(", ") };
        let folder = self.journal.parent().unwrap_or(&self.journal).display();
        write!(
            f,
            "an interrupted run left {what} changed; `goodput --state-dir {folder} settings undo` puts it back"
        )
    }
}

/// What dead runs left changed: by the journals in `state_dir` and in every other directory that
/// this user's runs used since the host started. Nothing is changed.
pub fn leftovers(state_dir: &Path) -> Vec<Leftover> {
    let found = left(state_dir).into_iter().map(|found| Leftover {
        journal: found.path,
        settings: found
            .contents
            .map(|contents| contents.entries.into_iter().map(|entry| entry.setting).collect())
            .unwrap_or_default(),
    });
    found.collect()
}
