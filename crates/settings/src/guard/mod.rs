//! The dead-man's process: it waits for the run to end, however it ends, and puts settings back
//! if the run could not.
//!
//! It holds the read end of a pipe; the kernel closes the write end when the run dies. It lives in
//! its own session and ignores the terminal's signals, so that whatever kills the run does not
//! kill the guard.

mod program;
mod spawn;
mod takeover;

pub use program::GuardProgram;
pub(crate) use spawn::{Guard, detach};
pub use takeover::guard_main;
pub(crate) use takeover::runs;

/// The first word of a guard's command line.
const NAME: &str = "goodput";

/// The guard's message on standard output once it is ready to take over.
const READY: &str = "goodput-guard-ready";
