//! The exit codes, and how an error becomes one.

use std::process::ExitCode;

use goodput_engine::EngineError;
use goodput_settings::SettingError;

/// How a command ended. The numbers are a contract (docs/cli.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Fine = 0,
    /// A problem was found, or an expectation missed.
    Problem = 1,
    /// It could not be done.
    CouldNot = 2,
    /// A privilege or a token is lacking.
    NotPermitted = 3,
    /// The comparison could not tell.
    Inconclusive = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Prints an error with its causes and tells which exit code it means.
pub fn explain(error: &anyhow::Error) -> Exit {
    // A reader that has seen enough (`| head`) is no failure.
    if error.chain().any(is_broken_pipe) {
        return Exit::Fine;
    }
    eprintln!("goodput: {error:#}");
    if error.chain().any(lacks_permission) { Exit::NotPermitted } else { Exit::CouldNot }
}

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    let io = cause.downcast_ref::<std::io::Error>();
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

fn lacks_permission(cause: &(dyn std::error::Error + 'static)) -> bool {
    let engine = cause.downcast_ref::<EngineError>().is_some_and(EngineError::not_permitted);
    let setting = cause.downcast_ref::<SettingError>().is_some_and(SettingError::not_permitted);
    engine || setting
}
