//! Runs programs at a host.

use crate::command::Command;
use crate::error::RemoteError;
use crate::plain;

/// What a program printed, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Its exit code; 128 and the signal's number if a signal ended it (POSIX.1-2024, Shell, 2.8.2).
    pub status: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs programs at a host, one after another, in the locale C and with an empty standard input.
pub trait Shell {
    /// The host, for messages.
    fn host(&self) -> &str;

    /// Runs a program to its end.
    ///
    /// # Errors
    /// When the connection is lost, the program takes too long or prints too much. A failing program is no error.
    fn run(&mut self, command: &Command) -> Result<Output, RemoteError>;

    /// Runs a program that must succeed, and returns its standard output.
    ///
    /// # Errors
    /// The same, and when the program is missing, a privilege is missing, or the program fails.
    fn output(&mut self, command: &Command) -> Result<String, RemoteError> {
        let output = self.run(command)?;
        match output.status {
            0 => Ok(output.stdout),
            _ => Err(failure(self.host(), command, &output)),
        }
    }
}

/// Exit code of a shell that does not find a program (POSIX.1-2024, Shell, 2.8.2).
const NOT_FOUND: i32 = 127;

/// Longest piece of a program's output in an error, characters.
const MAX_SAID: usize = 400;

/// Why a command failed.
pub(crate) fn failure(host: &str, command: &Command, output: &Output) -> RemoteError {
    let said = [&output.stderr, &output.stdout].map(|text| plain::one_line(text));
    let said = said.into_iter().find(|text| !text.is_empty());
    let said = said.unwrap_or_else(|| "it printed nothing".into());
    let said: String = said.chars().take(MAX_SAID).collect();
    let (host, status) = (host.to_owned(), output.status);
    // A script names the program that it misses.
    if status == NOT_FOUND && command.purpose.is_none() {
        return RemoteError::NoProgram { host, program: command.program.clone() };
    }
    let lower = said.to_lowercase();
    // EPERM and EACCES in the words of strerror(3).
    let denied = ["operation not permitted", "permission denied"].iter().any(|w| lower.contains(w));
    match (denied, &command.purpose) {
        (true, _) => RemoteError::NotPermitted { host, command: command.shown(), said },
        (false, Some(purpose)) => {
            RemoteError::CouldNot { host, purpose: purpose.clone(), status, said }
        }
        (false, None) => RemoteError::Failed { host, command: command.shown(), status, said },
    }
}
