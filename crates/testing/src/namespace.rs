//! A network namespace for one test.

use std::thread;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use crate::skip;

/// Runs `test` on a thread of its own in a new, empty network namespace, or skips it if that is not
/// permitted. A panic there goes on here.
///
/// # Panics
///
/// If the namespace can't be made for another reason, or if everything is required.
pub fn in_namespace(name: &str, test: impl FnOnce() + Send) {
    let run = || unshare(CloneFlags::CLONE_NEWNET).map(|()| test());
    let ran = thread::scope(|scope| scope.spawn(run).join());
    match ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
        Ok(()) => {}
        Err(Errno::EPERM) => skip(name, "root for a network namespace"),
        Err(error) => panic!("{name}: make a network namespace: {error}"),
    }
}
