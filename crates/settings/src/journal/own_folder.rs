//! The directories of journals and of their list: only this user may write to them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Creates a directory that only this user can write to; an existing one must have this property.
pub fn make_own_folder(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(path) {
        // The check reports what is there instead.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check_folder(path),
    }
}

/// Refuses a directory that someone else owns or can write to.
pub(super) fn check_folder(path: &Path) -> io::Result<()> {
    let status = fs::metadata(path)?;
    if !status.is_dir() {
        let why = "it is not a directory";
        return Err(io::Error::new(io::ErrorKind::NotADirectory, why));
    }
    own(&status)?;
    if status.mode() & 0o022 == 0 {
        return Ok(());
    }
    let why = format!("others can write to it (mode {:o}); chmod it to 700", status.mode() & 0o777);
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Refuses files that someone else owns.
pub(super) fn own(status: &fs::Metadata) -> io::Result<()> {
    if status.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let why = format!("it belongs to the user with id {}", status.uid());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// How long the lock of a directory is waited for. Others hold it while they change one setting, for which a device may
/// start anew.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Another process has held the lock of a directory for too long.
#[derive(Debug, thiserror::Error)]
#[error("another process has held the lock of {0} for {waited_s} s (`fuser {0}` names it)", folder.display())]
pub(crate) struct LockHeld {
    folder: PathBuf,
    waited_s: u64,
}

/// The lock of a directory, until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing alone would leave the lock with a child between its fork and its exec.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Keeps [`super::abandoned`] from seeing a journal that is not locked yet.
pub(super) fn lock_folder(folder: &Path) -> io::Result<FolderLock> {
    lock_within(folder, LOCK_TIMEOUT)
}

/// Attempts are counted, and not the time: it also passes while the machine stands still, or while this process has no CPU.
fn lock_within(path: &Path, patience: Duration) -> io::Result<FolderLock> {
    let folder = File::open(path)?;
    let attempts = patience.as_millis() / POLL_INTERVAL.as_millis();
    for _ in 0..=attempts {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(FolderLock(folder)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(POLL_INTERVAL),
            Err(error) => return Err(error.into()),
        }
    }
    let held = LockHeld { folder: path.into(), waited_s: patience.as_secs() };
    Err(io::Error::new(io::ErrorKind::TimedOut, held))
}

/// Makes sure that the names in a directory survive a power cut.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_never_released_is_reported_and_not_waited_for_without_end() {
        let folder = crate::testing::folder();
        let held = lock_folder(folder.path()).unwrap();
        let refused = lock_within(folder.path(), Duration::ZERO).unwrap_err();
        let refused = crate::error::of_journal("lock", folder.path(), refused);
        assert!(matches!(refused, crate::SettingError::Locked(_)), "{refused:?}");
        let said = refused.to_string();
        let fuser = format!("`fuser {}`", folder.path().display());
        assert!(said.contains("has held the lock") && said.contains(&fuser), "{said}");
        assert!(!said.contains("--state-dir"), "{said}");
        drop(held);
        // A process that another test starts also holds the lock until its program begins.
        lock_folder(folder.path()).unwrap();
    }
}
