//! Finishing what a power cut, or the death of a run and of its guard, left changed.

use std::path::Path;

use crate::error::SettingError;
use crate::journal::abandoned;
use crate::restore::{RestoreReport, settle};

/// Puts back what runs that are no more left changed, one report for each of them; none where
/// there is nothing to do. The changes of live runs are left alone.
///
/// # Errors
/// When `state_dir` can't be read. What can't be put back is told in the reports.
pub fn undo(state_dir: &Path) -> Result<Vec<RestoreReport>, SettingError> {
    // The last run first: it may have started from what an earlier one had left.
    let reports = abandoned(state_dir)?.into_iter().rev().map(|(path, opened)| match opened {
        Ok(journal) => settle(journal),
        Err(cause) => RestoreReport {
            journal: path,
            entries: Vec::new(),
            problem: Some(format!("it can't be opened: {cause}")),
        },
    });
    Ok(reports.collect())
}
