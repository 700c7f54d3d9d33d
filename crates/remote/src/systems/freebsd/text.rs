//! Output of programs is read strictly. Anything unexpected is an error that shows the line.

use crate::command::Command;
use crate::error::RemoteError;
use crate::shell::Shell;

/// A line that contradicts the program's documentation, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotUnderstood {
    line: String,
    why: &'static str,
}

impl NotUnderstood {
    /// `line` is not as expected.
    pub(crate) fn new(line: &str, why: &'static str) -> Self {
        // Whoever controls the other host controls this text, and it goes to the user's terminal.
        let line = line.chars().filter(|c| !c.is_control()).take(120).collect();
        Self { line, why }
    }
}

/// Runs a command that must succeed, and parses its output.
pub(crate) fn read<T>(
    shell: &mut dyn Shell,
    command: &Command,
    parse: impl FnOnce(&str) -> Result<T, NotUnderstood>,
) -> Result<T, RemoteError> {
    let text = shell.output(command)?;
    parse(&text).map_err(|NotUnderstood { line, why }| RemoteError::NotUnderstood {
        host: shell.host().into(),
        command: command.shown(),
        line,
        why: why.into(),
    })
}

/// A number of decimal digits only.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}
