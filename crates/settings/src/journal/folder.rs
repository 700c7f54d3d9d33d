//! All journals of one directory: those that nobody holds any more, and those of other live runs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use goodput_model::SettingRef;

use super::contents::Contents;
use super::file::{JournalFile, SUFFIX, lock_folder};
use crate::error::SettingError;
use crate::place::Place;
use crate::setting::Machine;

/// Opens every journal in `state_dir` whose owner is dead, oldest first, and says which could not
/// be opened. Live runs are left alone.
pub(crate) fn abandoned(
    state_dir: &Path,
) -> Result<Vec<(PathBuf, io::Result<JournalFile>)>, SettingError> {
    list(state_dir).or_else(|cause| match cause.kind() {
        io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => Err(SettingError::Journal { operation: "read", path: state_dir.into(), cause }),
    })
}

/// Makes sure that no other live run has `setting` changed: the two would take each other's values
/// for originals. Nobody else can change it first while the returned lock is held.
pub(crate) fn claim(
    own: &Path,
    place: &Place,
    machine: &dyn Machine,
    setting: &SettingRef,
) -> Result<File, SettingError> {
    let folder = own.parent().unwrap_or(Path::new("/"));
    let fail = |cause| SettingError::Journal { operation: "look beside", path: own.into(), cause };
    let busy = lock_folder(folder).map_err(fail)?;
    for path in journals(folder).map_err(fail)?.iter().filter(|path| *path != own) {
        // One that vanishes meanwhile holds nothing; one that can't be read is somebody else's.
        let Ok(Some(Contents { owner: Some(owner), entries, .. })) = JournalFile::peek_alive(path)
        else {
            continue;
        };
        let same_place = owner.place == *place || !machine.namespaced(setting);
        if same_place && entries.iter().any(|entry| entry.setting == *setting) {
            return Err(SettingError::InUse { setting: setting.clone(), pid: owner.pid });
        }
    }
    Ok(busy)
}

fn list(state_dir: &Path) -> io::Result<Vec<(PathBuf, io::Result<JournalFile>)>> {
    let _busy = lock_folder(state_dir)?;
    let open = |path: PathBuf| {
        let opened = JournalFile::open_abandoned(&path).transpose()?;
        Some((path, opened))
    };
    Ok(journals(state_dir)?.into_iter().filter_map(open).collect())
}

/// The journals in a folder, oldest first.
fn journals(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_str().is_some_and(|name| name.ends_with(SUFFIX)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
