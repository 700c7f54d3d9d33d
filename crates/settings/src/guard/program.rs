//! The program that runs as the guard.

use std::ffi::OsString;
use std::path::PathBuf;

/// The program that runs [`super::guard_main`] on the journal given as the last argument.
#[derive(Debug, Clone)]
pub struct GuardProgram {
    /// The executable.
    pub exe: PathBuf,
    /// The arguments in front of the journal's path.
    pub args: Vec<OsString>,
}

impl GuardProgram {
    /// This executable with `settings guard`.
    pub fn current() -> Self {
        Self::this_executable(["settings", "guard"])
    }

    /// This executable with other arguments.
    pub fn this_executable<const N: usize>(args: [&str; N]) -> Self {
        // The link leads to the running program even if its file has been replaced or removed.
        Self { exe: "/proc/self/exe".into(), args: args.map(OsString::from).to_vec() }
    }
}
