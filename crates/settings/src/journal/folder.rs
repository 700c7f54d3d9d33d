//! The journals that nobody holds any more.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::file::{JournalFile, SUFFIX, lock_folder};
use crate::error::SettingError;

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

fn list(state_dir: &Path) -> io::Result<Vec<(PathBuf, io::Result<JournalFile>)>> {
    let _busy = lock_folder(state_dir)?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(state_dir)? {
        let path = entry?.path();
        if path.to_str().is_some_and(|name| name.ends_with(SUFFIX)) {
            paths.push(path);
        }
    }
    paths.sort();
    let open = |path: PathBuf| {
        let opened = JournalFile::open_abandoned(&path).transpose()?;
        Some((path, opened))
    };
    Ok(paths.into_iter().filter_map(open).collect())
}
