//! The list of all open journals of this user: a directory of links, in one place that every run
//! knows, whichever directory its journal is in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::own_folder::{FolderLock, lock_folder, make_own_folder};
use crate::error::SettingError;
use crate::place::list_dir;

/// The directory of links.
#[derive(Debug, Clone)]
pub(super) struct List {
    folder: PathBuf,
}

impl List {
    /// The list that includes the journals in `state_dir`.
    pub(super) fn of(state_dir: &Path) -> Result<Self, SettingError> {
        // Tests that run at the same time must not see each other's journals.
        let folder = match state_dir.parent() {
            Some(beside) if cfg!(test) => beside.join("list"),
            _ => list_dir()?,
        };
        Ok(Self { folder })
    }

    /// Creates the list if needed. While the result is held, no journal begins and no setting is
    /// claimed.
    pub(super) fn lock(&self) -> Result<FolderLock, SettingError> {
        make_own_folder(&self.folder)
            .and_then(|()| lock_folder(&self.folder))
            .map_err(|cause| self.failed("lock the list of", cause))
    }

    /// Adds a journal.
    pub(super) fn add(&self, journal: &Path) -> Result<(), SettingError> {
        std::os::unix::fs::symlink(journal, self.link(journal))
            .map_err(|cause| self.failed("list", cause))
    }

    /// Removes a journal.
    pub(super) fn remove(&self, journal: &Path) -> io::Result<()> {
        fs::remove_file(self.link(journal))
    }

    /// The journals on the list, oldest first. Removes those that are gone, so only a holder of the lock
    /// may call this.
    pub(super) fn journals(&self) -> Vec<PathBuf> {
        let mut journals = self.peek();
        journals.retain(|journal| {
            let gone = fs::symlink_metadata(journal)
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            if gone {
                // The next look has the same effect.
                let _ = self.remove(journal);
            }
            !gone
        });
        journals
    }

    /// The journals on the list, some of which may be gone; none if there is no list.
    pub(super) fn peek(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut journals: Vec<PathBuf> =
            entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
        journals.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
        journals
    }

    fn link(&self, journal: &Path) -> PathBuf {
        self.folder.join(journal.file_name().unwrap_or_default())
    }

    fn failed(&self, operation: &'static str, cause: io::Error) -> SettingError {
        SettingError::Journal { operation, path: self.folder.clone(), cause }
    }
}
