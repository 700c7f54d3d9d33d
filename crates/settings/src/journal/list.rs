//! The list of all open journals of this user: a directory of links, in one place that every run
//! knows, whichever directory its journal is in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::own_folder::{FolderLock, lock_folder, make_own_folder};
use crate::error::{self, SettingError};
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
            .map_err(|cause| self.failed("lock", cause))
    }

    /// Adds a journal.
    pub(super) fn add(&self, journal: &Path) -> Result<(), SettingError> {
        std::os::unix::fs::symlink(journal, self.link(journal))
            .map_err(|cause| self.failed("write to", cause))
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
        error::of_list(operation, &self.folder, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    /// Another directory for journals would not help: the list stays where it is.
    #[test]
    fn a_list_that_can_not_be_kept_is_reported_without_the_option_that_does_not_move_it() {
        let scene = Scene::new();
        let list = scene.state_dir().with_file_name("list");
        fs::write(&list, "a file").unwrap();
        let refused = scene.try_to_begin().unwrap_err();
        assert!(matches!(refused, SettingError::List { .. }), "{refused:?}");
        let said = refused.to_string();
        assert!(
            said.contains(list.to_str().unwrap()) && said.contains("not a directory"),
            "{said}"
        );
        assert!(said.contains("--state-dir does not move"), "{said}");
        assert_eq!(scene.value(), "a");
    }
}
