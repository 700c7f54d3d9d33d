//! The directories of journals and of their list: only this user may write to them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

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
        let why = "it is not a directory; name another one with --state-dir";
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

/// Keeps [`super::abandoned`] from seeing a journal that is not locked yet.
pub(super) fn lock_folder(folder: &Path) -> io::Result<File> {
    let folder = File::open(folder)?;
    rustix::io::retry_on_intr(|| flock(&folder, FlockOperation::LockExclusive))?;
    Ok(folder)
}

/// Makes sure that the names in a directory survive a power cut.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
