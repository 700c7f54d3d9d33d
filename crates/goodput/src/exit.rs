//! The exit codes, and how an error becomes one.

use std::process::ExitCode;

use goodput_engine::EngineError;
use goodput_lab::LabError;
use goodput_remote::RemoteError;
use goodput_sandbox::SandboxError;
use goodput_settings::SettingError;

use crate::args::refused;
use crate::screen;

/// How a command ended. The numbers are a contract (docs/cli.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Fine,
    /// A problem was found, or an expectation missed.
    Problem,
    /// It could not be done.
    CouldNot,
    /// A privilege or a token is missing.
    NotPermitted,
    /// The comparison was inconclusive.
    Inconclusive,
    /// As a command ended that goodput ran for the user.
    Command(u8),
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Problem => 1,
            Self::CouldNot => 2,
            Self::NotPermitted => 3,
            Self::Inconclusive => 4,
            Self::Command(code) => code,
        }
    }

    /// The same exit code if the output is `complete`; otherwise a success becomes "could not".
    pub fn printed(self, complete: bool) -> Self {
        if self == Self::Fine && !complete { Self::CouldNot } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Prints what there is instead of a command that doesn't run: what is wrong with it, or the requested help or version.
pub fn not_run(instead: clap::Error) -> anyhow::Result<Exit> {
    use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as HelpInstead;
    if instead.use_stderr() {
        match instead.kind() {
            // If nobody reads standard error, nothing more can be reported.
            HelpInstead => drop(instead.print()),
            _ => screen::say(format_args!("goodput: {}", refused::in_words(&instead))),
        }
        return Ok(Exit::CouldNot);
    }
    instead.print().map_err(screen::unprinted)?;
    Ok(Exit::Fine)
}

/// Prints an error with its causes and returns its exit code.
pub fn explain(error: &anyhow::Error) -> Exit {
    // A reader that has seen enough (`| head`) is not a failure.
    if is_seen_enough(error) {
        return Exit::Fine;
    }
    screen::say(format_args!("goodput: {}", in_words(error)));
    of(error)
}

/// The exit code of an error.
pub fn of(error: &anyhow::Error) -> Exit {
    if error.chain().any(lacks_permission) { Exit::NotPermitted } else { Exit::CouldNot }
}

/// An error and its causes, without repetitions: many errors already contain their cause.
pub fn in_words(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Whether the error only means that a reader has seen enough.
pub fn is_seen_enough(error: &anyhow::Error) -> bool {
    error.chain().any(is_broken_pipe)
}

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    let io = cause.downcast_ref::<std::io::Error>();
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

fn lacks_permission(cause: &(dyn std::error::Error + 'static)) -> bool {
    let engine = cause.downcast_ref::<EngineError>().is_some_and(EngineError::not_permitted);
    let setting = cause.downcast_ref::<SettingError>().is_some_and(SettingError::not_permitted);
    let remote = cause.downcast_ref::<RemoteError>().is_some_and(RemoteError::not_permitted);
    let lab = cause.downcast_ref::<LabError>().is_some_and(LabError::not_permitted);
    let sandbox = cause.downcast_ref::<SandboxError>().is_some_and(SandboxError::not_permitted);
    let io = cause.downcast_ref::<std::io::Error>();
    engine
        || setting
        || remote
        || lab
        || sandbox
        || io.is_some_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_file_that_may_not_be_opened_is_not_permitted() {
        let error = |kind| Err::<(), _>(std::io::Error::from(kind)).context("can't write x");
        assert_eq!(
            of(&error(std::io::ErrorKind::PermissionDenied).unwrap_err()),
            Exit::NotPermitted
        );
        assert_eq!(of(&error(std::io::ErrorKind::NotFound).unwrap_err()), Exit::CouldNot);
    }

    #[test]
    fn a_cause_is_reported_once() {
        let cause = std::io::Error::other("disk on fire");
        let error = Err::<(), _>(cause).context("can't write x: disk on fire").unwrap_err();
        assert_eq!(in_words(&error), "can't write x: disk on fire");
        let error = error.context("the result was not saved");
        assert_eq!(in_words(&error), "the result was not saved: can't write x: disk on fire");
    }
}
