//! Where the records of a coordinator wait for the history. It is no state: who coordinates next needs none of it, and NATS has
//! the same records for a week.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, Result};
use goodput_store::Place;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// How the names of the directories begin. No site has one: the `=` is followed by no hexadecimal digits.
const NAME: &str = "=coordinator";
/// The file that is locked while a coordinator runs.
const LOCK: &str = "lock";

/// A directory that only this process uses. What waits in it is for one history.
pub(in crate::commands::fleet) struct Folder {
    path: PathBuf,
    /// The name of the first one of the same history; those of the others begin with it.
    first: String,
    /// The kernel unlocks it when this process ends, however it ends (flock(2)).
    _lock: File,
}

impl Folder {
    /// The first one of this history, in the directory of states, that no other coordinator of this host uses.
    pub fn open(state: &Path, history: &Place) -> Result<Self> {
        let (all, first) = (state.join("fleet"), format!("{NAME}-{}", short(history)));
        let mut number = 1;
        loop {
            let name = if number == 1 { first.clone() } else { format!("{first}-{number}") };
            if let Some(folder) = Self::lock(all.join(name), &first)? {
                return Ok(folder);
            }
            number += 1;
        }
    }

    /// Locks a directory, which is made if need be. None: someone else uses it.
    fn lock(path: PathBuf, first: &str) -> Result<Option<Self>> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.with_context(|| format!("can't make the directory {}", path.display()))?;
        let locking = || format!("can't lock the directory {}", path.display());
        let lock = File::create(path.join(LOCK)).with_context(locking)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Ok(None),
            locked => {
                locked.with_context(locking)?;
                Ok(Some(Self { path, first: first.into(), _lock: lock }))
            }
        }
    }

    /// Its place.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The others of the same history that nobody uses: whoever did may have ended while the history was away.
    pub fn left(&self) -> Result<Vec<Self>> {
        let Some(all) = self.path.parent() else { return Ok(Vec::new()) };
        let entries = all.read_dir();
        let entries =
            entries.with_context(|| format!("can't read the directory {}", all.display()))?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let paths = names.filter(|name| name.starts_with(&self.first)).map(|name| all.join(name));
        let others = paths.filter(|path| *path != self.path);
        others.filter_map(|path| Self::lock(path, &self.first).transpose()).collect()
    }
}

/// Tells the histories of a host apart, in a few hexadecimal digits: a place has characters that no name of a file has.
fn short(history: &Place) -> String {
    let place = match history {
        Place::File(file) => absolute(file).unwrap_or_else(|_| file.clone()).display().to_string(),
        Place::Postgres(_) => history.to_string(),
    };
    Sha256::digest(place).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_coordinator_of_a_host_has_its_own_directory_and_one_that_ended_leaves_it() {
        let state = tempfile::tempdir().unwrap();
        let open = || Folder::open(state.path(), &Place::File("/a/history.db".into())).unwrap();
        let [first, second] = [open(), open()];
        assert_ne!(first.path(), second.path());
        assert!(first.left().unwrap().is_empty(), "it is in use");
        let [path, others] = [&first, &second].map(|folder| folder.path().to_owned());
        drop((first, second));
        let again = open();
        assert_eq!(again.path(), path);
        let left = again.left().unwrap();
        assert_eq!(left.iter().map(Folder::path).collect::<Vec<_>>(), [&*others]);
    }

    #[test]
    fn what_waits_for_one_history_is_not_for_another() {
        let state = tempfile::tempdir().unwrap();
        let open = |file: &str| Folder::open(state.path(), &Place::File(file.into())).unwrap();
        let path = open("/a/history.db").path().to_owned();
        let other = open("/b/history.db");
        assert_ne!(other.path(), path);
        assert!(other.left().unwrap().is_empty());
        let whole = absolute("history.db").unwrap().display().to_string();
        let [short, whole] =
            ["history.db", whole.as_str()].map(|file| open(file).path().to_owned());
        assert_eq!(short, whole, "however it is named");
    }
}
