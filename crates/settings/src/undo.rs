//! Cleans up what a power cut, or the death of a run and its guard, left changed.

use std::path::{Path, PathBuf};

use crate::error::SettingError;
use crate::held::{self, Patience};
use crate::journal::{abandoned, listed_elsewhere, open_one};
use crate::leftover;
use crate::place::Place;
use crate::restore::RestoreReport;
use crate::settle::{UndoRequest, settle};

/// Puts back what dead runs left changed, with one report per run; no report if
/// there is nothing to do. Waits for a guard that is at work. Leaves the changes of live
/// runs alone, and reports those in `state_dir`. Journals of this user in other directories count if
/// everything in them belongs to this network namespace.
///
/// # Errors
/// When `state_dir` can't be read, or someone else can write to it or holds its lock. The reports list what can't be
/// put back.
pub fn undo(state_dir: &Path) -> Result<Vec<RestoreReport>, SettingError> {
    undo_as_asked(state_dir, UndoRequest::default(), Patience::for_a_guard(|_| {}))
}

/// The same, but waits for guards with `patience`, and goes as far as `request` allows.
///
/// # Errors
/// As [`undo`].
pub fn undo_as_asked(
    state_dir: &Path,
    request: UndoRequest,
    mut patience: Patience,
) -> Result<Vec<RestoreReport>, SettingError> {
    let mut reports = settle_own(state_dir, request, &mut patience)?;
    let here = Place::here()?;
    let elsewhere = listed_elsewhere(state_dir).into_iter().rev();
    let elsewhere =
        elsewhere.filter_map(|path| settle_elsewhere(&path, &here, request, &mut patience));
    reports.extend(elsewhere.filter(|report| !report.is_in_use()));
    reports.retain(|report| !report.is_silent());
    Ok(reports)
}

/// The journals in `state_dir`.
fn settle_own(
    state_dir: &Path,
    request: UndoRequest,
    patience: &mut Patience,
) -> Result<Vec<RestoreReport>, SettingError> {
    // The last run first: it may have started from values that an earlier run had left.
    let reports = abandoned(state_dir)?.into_iter().rev().filter_map(|(path, opened)| {
        let settled = match opened {
            Ok(Some(journal)) => Some(Ok(settle(journal, request))),
            Ok(None) => held::settle(&path, request, patience).transpose(),
            Err(cause) => Some(held::unopened(&path, &cause)),
        };
        Some((path, settled?))
    });
    // What was put back is reported whatever becomes of the others.
    let report = |(path, settled): (PathBuf, Result<RestoreReport, SettingError>)| {
        settled.unwrap_or_else(|why| RestoreReport::unusable(path, why.to_string()))
    };
    Ok(reports.map(report).collect())
}

/// A journal in another directory of this user, if everything in it can be settled here.
fn settle_elsewhere(
    path: &Path,
    here: &Place,
    request: UndoRequest,
    patience: &mut Patience,
) -> Option<RestoreReport> {
    // An unreadable journal is reported as a leftover.
    let text = leftover::read(path)?;
    let is_ours = text.foreign().is_none()
        && text.damage().is_none()
        && leftover::elsewhere(&text.says, here).is_empty();
    let settled = match is_ours.then(|| open_one(path))? {
        Ok(Some(journal)) => Ok(Some(settle(journal, request))),
        Ok(None) => held::settle(path, request, patience),
        Err(cause) => held::unopened(path, &cause).map(Some),
    };
    // The journals of this directory are settled already, so it is no failure of all.
    settled.unwrap_or_else(|error| Some(RestoreReport::unusable(path.into(), error.to_string())))
}

/// Settles what can be settled before a new run begins in `state_dir`, so that nothing that a dead
/// run left passes for an original. One report per run that had left something. Journals that others still
/// hold when `patience` is spent are left out: changing one of their settings is refused with the reason.
///
/// # Errors
/// As [`undo`].
pub fn settle_before(
    state_dir: &Path,
    mut patience: Patience,
) -> Result<Vec<RestoreReport>, SettingError> {
    let mut reports = settle_own(state_dir, UndoRequest::default(), &mut patience)?;
    reports.retain(|report| !report.is_silent() && !report.is_held());
    Ok(reports)
}
