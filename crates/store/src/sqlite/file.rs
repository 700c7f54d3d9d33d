//! The file of the history on disk: for its user alone, and reached through no link.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{OTHERS_WRITE, StoreError};

/// In a directory with this bit only a file's owner may rename it (inode(7)).
const STICKY_BIT: u32 = 0o1000;

/// What makes a file the same, whatever its name.
pub(super) fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

pub(super) fn make_directory(path: &Path) -> Result<(), StoreError> {
    let Some(directory) = path.parent() else { return Ok(()) };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|source| StoreError::io("make the directory", directory, source))
}

/// Another user who may rename files in the directory could give this user another file to write to.
pub(super) fn trust_directory(path: &Path) -> Result<(), StoreError> {
    let Some(directory) = directory_of(path) else { return Ok(()) };
    let metadata = fs::metadata(directory);
    let metadata = metadata.map_err(|source| StoreError::io("look at", directory, source))?;
    let ours = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
    let shared = metadata.mode() & OTHERS_WRITE != 0 && metadata.mode() & STICKY_BIT == 0;
    if ours && !shared {
        return Ok(());
    }
    let (path, uid, mode) = (directory.to_path_buf(), metadata.uid(), metadata.mode() & 0o7777);
    Err(StoreError::Untrusted { path, uid, mode })
}

/// Makes the file for this user alone, if it doesn't exist; SQLite gives its journals the mode of the file. An
/// existing file is not opened here: closing it again would drop the locks that other connections of this process hold
/// on it (POSIX record locks belong to the process).
pub(super) fn make_file(path: &Path) -> Result<(), StoreError> {
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match new {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::io("make", path, error))
        }
        _ if path.is_symlink() => Err(StoreError::Link { path: path.to_path_buf() }),
        _ => Ok(()),
    }
}

/// Whether there is nothing at the path, not even a link to nothing.
pub(super) fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|why| why.kind() == io::ErrorKind::NotFound)
}

/// The path with the links of its directories resolved: SQLite follows none at all, and another user could only make the
/// last one.
pub(super) fn real_path(path: &Path) -> Result<PathBuf, StoreError> {
    let (Some(directory), Some(name)) = (directory_of(path), path.file_name()) else {
        return Ok(path.to_path_buf());
    };
    let real = fs::canonicalize(directory);
    Ok(real.map_err(|source| StoreError::io("look at", directory, source))?.join(name))
}

/// The directory of the file, even if it is the working directory.
fn directory_of(path: &Path) -> Option<&Path> {
    let directory = path.parent()?;
    Some(if directory.as_os_str().is_empty() { Path::new(".") } else { directory })
}
