//! Cleans up what a power cut, or the death of a run and its guard, left changed.

use std::path::{Path, PathBuf};

use crate::error::SettingError;
use crate::held::{self, Patience};
use crate::journal::{abandoned, forget_missing, listed_elsewhere, missing, open_one};
use crate::leftover;
use crate::place::Place;
use crate::restore::{Forget, RestoreReport};
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
    if request.forget == Forget::Unseen {
        reports.extend(missing(state_dir).into_iter().map(|path| given_up(state_dir, path)));
    }
    reports.retain(|report| !report.is_silent());
    Ok(reports)
}

/// Gives up a journal whose whole directory is missing.
fn given_up(state_dir: &Path, journal: PathBuf) -> RestoreReport {
    forget_missing(state_dir, &journal);
    let note = format!("{}: its directory is missing; forgotten", journal.display());
    RestoreReport { notes: vec![note], ..RestoreReport::empty(journal) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::make_own_folder;
    use crate::leftover::{Whereabouts, leftovers};

    #[test]
    fn a_journal_whose_directory_is_missing_since_a_reboot_is_shown_until_it_is_forgotten() {
        let folder = crate::testing::folder();
        let [state_dir, away] = ["state", "away"].map(|name| folder.path().join(name));
        let links = folder.path().join("usual/elsewhere/another-boot");
        make_own_folder(&links).unwrap();
        let journal = away.join("1-1.remote.jsonl");
        std::os::unix::fs::symlink(&journal, links.join("1-1.remote.jsonl")).unwrap();
        assert_eq!(undo(&state_dir).unwrap(), []);
        let [left] = &leftovers(&state_dir)[..] else { panic!("it is left") };
        assert_eq!((&left.place, &left.journal), (&Whereabouts::NoFolder, &journal));
        let said = left.to_string();
        assert!(
            said.contains("is missing; mount it") && said.contains("--forget-unseen"),
            "{said}"
        );
        let request = UndoRequest { forget: Forget::Unseen, ..UndoRequest::default() };
        let reports = undo_as_asked(&state_dir, request, Patience::NONE).unwrap();
        assert!(reports[0].notes[0].contains("forgotten"), "{reports:?}");
        assert_eq!(leftovers(&state_dir), []);
    }

    /// What a run of an earlier boot left in another directory: a file that keeps values, which it did not keep.
    #[test]
    fn what_an_earlier_boot_left_in_another_directory_is_put_back() {
        let folder = crate::testing::folder();
        let [state_dir, other] = ["state", "other"].map(|name| folder.path().join(name));
        let links = folder.path().join("usual/elsewhere/another-boot");
        for path in [&links, &other] {
            make_own_folder(path).unwrap();
        }
        let (file, journal) =
            (folder.path().join("90-goodput.conf"), other.join("1-1.journal.jsonl"));
        std::fs::write(&file, "net.ipv4.tcp_sack = 0\n").unwrap();
        let new = serde_json::json!({ "path": file, "old": null, "new": "net.ipv4.tcp_sack = 0\n", "is_enabled": false });
        let lines = [
            serde_json::json!({ "line": "begin", "format": 1, "pid": 1, "boot_id": "another-boot", "netns": 1 }),
            serde_json::json!({ "line": "writes", "root": folder.path(), "files": [new] }),
        ];
        std::fs::write(&journal, lines.map(|line| format!("{line}\n")).concat()).unwrap();
        std::os::unix::fs::symlink(&journal, links.join("1-1.journal.jsonl")).unwrap();
        assert_eq!(leftovers(&state_dir)[0].place, Whereabouts::Here);
        let reports = undo(&state_dir).unwrap();
        assert!(reports[0].is_clean(), "{reports:?}");
        assert!(!file.exists() && !journal.exists() && !links.exists());
    }
}
