//! A network namespace for one test.

use std::thread;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use crate::{running_test, skip};

/// Runs `test` on a thread of its own in a new, empty network namespace, or skips it if that is not permitted.
/// Propagates a panic.
///
/// # Panics
///
/// If the namespace can't be made for another reason, or if everything is required; and on a thread that runs no test.
pub fn in_namespace(test: impl FnOnce() + Send) {
    let name = running_test();
    let run = || unshare(CloneFlags::CLONE_NEWNET).map(|()| test());
    let ran = thread::scope(|scope| {
        let thread = thread::Builder::new().name(name.clone()).spawn_scoped(scope, run);
        thread.expect("there is a thread for a test").join()
    });
    match ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
        Ok(()) => {}
        Err(Errno::EPERM) => skip("root for a network namespace"),
        Err(error) => panic!("{name}: make a network namespace: {error}"),
    }
}
