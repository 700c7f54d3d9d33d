//! Where tests keep journals.

use std::path::Path;

use tempfile::TempDir;

/// A place for journals, in memory if possible: on a busy disk, fsync(2) only
/// makes the tests slow.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap()
}
