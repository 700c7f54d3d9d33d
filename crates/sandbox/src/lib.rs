//! A process that answers untrusted clients first drops its user, its capabilities, and the files and system calls that it
//! does not need.
//!
//! All of this lasts until the process ends, and its children inherit it.
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod calls;
mod capabilities;
mod error;
mod files;
mod user;

use std::fs;
use std::path::PathBuf;

pub use error::SandboxError;
pub use user::{User, check_open};

/// What the process keeps.
#[derive(Debug, Clone, Default)]
pub struct Keep {
    /// The user that it becomes. `None`: the user doesn't change.
    pub user: Option<User>,
    /// Directories whose files it reads, besides `/proc` and `/sys`.
    pub read: Vec<PathBuf>,
    /// Directories whose files it opens by name, without listing them.
    pub open: Vec<PathBuf>,
    /// Directories in which it makes and writes files.
    pub write: Vec<PathBuf>,
    /// Whether it looks up host names.
    pub resolves_names: bool,
    /// Whether it draws on the terminal from which it was started, and reads keys there.
    pub terminal: bool,
}

/// Drops everything else for good. Returns a sentence for each privilege that this kernel can't remove; the rest is
/// gone.
///
/// # Errors
/// When the process has more than one thread (a user and capabilities belong to a thread), when it can't become the
/// user, or when the kernel fails at something that it should support.
pub fn enter(keep: &Keep) -> Result<Vec<String>, SandboxError> {
    check_alone()?;
    // The library reads this and more, once, from /proc/self/auxv, which is inaccessible after the process has changed
    // its user.
    rustix::param::page_size();
    let mut lacks = Vec::new();
    // While the process still has the right to do so.
    capabilities::bound();
    if let Some(user) = &keep.user {
        lacks.extend(user.enter()?);
    }
    capabilities::clear()?;
    lacks.extend(files::restrict(keep)?);
    lacks.extend(calls::restrict(keep)?);
    Ok(lacks)
}

/// The kernel changes the user of one thread at a time.
fn check_alone() -> Result<(), SandboxError> {
    match fs::read_dir("/proc/self/task").map(Iterator::count) {
        Ok(1) => Ok(()),
        Ok(threads) => Err(SandboxError::Threads(threads)),
        Err(cause) => Err(SandboxError::of("count the threads of this process")(cause)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_is_refused_before_anything_is_given_up() {
        let refused = std::thread::spawn(|| enter(&Keep::default())).join();
        let refused = refused.expect("it does not panic");
        assert!(matches!(refused, Err(SandboxError::Threads(2..))), "{refused:?}");
        assert!(!rustix::thread::no_new_privs().expect("every kernel reports it"));
    }
}
