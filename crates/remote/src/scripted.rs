//! A shell for tests that answers from a script, and notes its requests.

use std::collections::VecDeque;

use crate::command::Command;
use crate::error::RemoteError;
use crate::shell::{Output, Shell};

/// Answers each command with the first answer that was added for it; the last answer stays.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    answers: Vec<(String, VecDeque<Output>)>,
    /// Every command that was run, as one would type it.
    pub(crate) ran: Vec<String>,
}

impl Scripted {
    /// Adds an answer to `command`, as one would type it, with exit code 0.
    pub(crate) fn prints(self, command: &str, stdout: &str) -> Self {
        self.answers(command, Output { stdout: stdout.into(), ..Output::default() })
    }

    /// Adds a failure of `command`.
    pub(crate) fn fails(self, command: &str, status: i32, stderr: &str) -> Self {
        self.answers(command, Output { status, stderr: stderr.into(), ..Output::default() })
    }

    fn answers(mut self, command: &str, output: Output) -> Self {
        match self.answers.iter_mut().find(|(known, _)| known == command) {
            Some((_, outputs)) => outputs.push_back(output),
            None => self.answers.push((command.into(), [output].into())),
        }
        self
    }
}

impl Shell for Scripted {
    fn host(&self) -> &str {
        "scripted"
    }

    fn run(&mut self, command: &Command) -> Result<Output, RemoteError> {
        let typed = command.typed();
        self.ran.push(typed.clone());
        let known = self.answers.iter_mut().find(|(known, _)| *known == typed);
        let Some((_, outputs)) = known else {
            let stderr = format!("sh: {}: not found", command.program);
            return Ok(Output { status: 127, stderr, ..Output::default() });
        };
        match outputs.len() {
            1 => Ok(outputs[0].clone()),
            _ => Ok(outputs.pop_front().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_distinguished() {
        let mut shell = Scripted::default()
            .prints("uname -s", "Linux\n")
            .fails("sysctl -w a=1", 1, "sysctl: permission denied on key 'a'")
            .fails("sysctl -n b", 1, "sysctl: unknown oid 'b'");
        let mut run = |line: &str| {
            let mut words = line.split(' ');
            shell.output(&Command::new(words.next().unwrap(), words))
        };
        assert_eq!(run("uname -s").unwrap(), "Linux\n");
        assert!(run("sysctl -w a=1").unwrap_err().not_permitted());
        assert!(matches!(run("sysctl -n b"), Err(RemoteError::Failed { status: 1, .. })));
        assert!(matches!(run("ethtool -k eth0"), Err(RemoteError::NoProgram { .. })));
    }
}
