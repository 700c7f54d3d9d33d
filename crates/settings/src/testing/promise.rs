//! What is promised to be put back within two seconds, on machines that have other things to do.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

const PROMISE: Duration = Duration::from_secs(2);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until `condition` holds, for as many looks as are in the promise: a machine that leaves this
/// thread alone for long leaves the guard alone as well, and then a look takes longer.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..PROMISE.as_millis() / LOOK.as_millis() {
        if condition() {
            return;
        }
        sleep(LOOK);
    }
    panic!("{what} not within {PROMISE:?}");
}

/// A place for journals. In memory where there is such a place: what a busy disk takes for fsync(2) is
/// no part of the promise.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap()
}
