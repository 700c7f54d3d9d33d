//! Where the records of a coordinator wait for the history. It is no state: who coordinates next needs none of it, and NATS has
//! the same records for a week.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The name of the first directory. No site has it: its `=` is followed by no hexadecimal digits.
const NAME: &str = "=coordinator";
/// The file that is locked while a coordinator runs.
const LOCK: &str = "lock";

/// A directory that only this process uses.
pub(in crate::commands::fleet) struct Folder {
    path: PathBuf,
    /// The kernel unlocks it when this process ends, however it ends (flock(2)).
    _lock: File,
}

impl Folder {
    /// The first one in the directory of states that no other coordinator of this host uses.
    pub fn open(state: &Path) -> Result<Self> {
        let mut number = 1;
        loop {
            let name = if number == 1 { NAME.into() } else { format!("{NAME}-{number}") };
            let path = state.join("fleet").join(name);
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.with_context(|| format!("can't make the directory {}", path.display()))?;
            let locking = || format!("can't lock the directory {}", path.display());
            let lock = File::create(path.join(LOCK)).with_context(locking)?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => number += 1,
                locked => {
                    locked.with_context(locking)?;
                    return Ok(Self { path, _lock: lock });
                }
            }
        }
    }

    /// Its place.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_coordinator_of_a_host_has_its_own_directory_and_one_that_ended_leaves_it() {
        let state = tempfile::tempdir().unwrap();
        let first = Folder::open(state.path()).unwrap();
        let second = Folder::open(state.path()).unwrap();
        assert_ne!(first.path(), second.path());
        let path = first.path().to_owned();
        drop(first);
        assert_eq!(Folder::open(state.path()).unwrap().path(), path);
    }
}
