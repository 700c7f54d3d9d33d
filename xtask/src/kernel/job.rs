//! The job of the guest: a command with its folder and environment, as a script.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Context, Result};

/// A command, its folder, and its environment.
pub struct Job {
    words: Vec<OsString>,
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// Variables that are passed on, besides those whose names begin with one of `PREFIXES`.
const VARIABLES: [&str; 5] = ["PATH", "HOME", "LANG", "TERM", "TMPDIR"];
const PREFIXES: [&str; 2] = ["GOODPUT_", "RUST_"];

impl Job {
    /// A command in the current folder.
    pub fn here(words: &[OsString]) -> Result<Self> {
        let goes_along = |name: &OsStr| {
            let name = name.to_string_lossy();
            VARIABLES.contains(&&*name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        };
        Ok(Self {
            words: words.to_vec(),
            folder: std::env::current_dir().context("this folder is gone")?,
            environment: std::env::vars_os().filter(|(name, _)| goes_along(name)).collect(),
        })
    }

    /// The lines of a shell script that runs the command.
    pub fn script(&self) -> String {
        let quoted = |word: &OsString| quoted(&word.to_string_lossy());
        let variable = |(name, value): &(OsString, OsString)| {
            format!("export {}={}\n", name.to_string_lossy(), quoted(value))
        };
        let environment: String = self.environment.iter().map(variable).collect();
        let folder = quoted(&self.folder.clone().into());
        let words: Vec<_> = self.words.iter().map(quoted).collect();
        format!("{environment}cd {folder} || exit 126\nexec {}\n", words.join(" "))
    }
}

/// A word quoted for a POSIX shell.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_tools::shell::capture;

    #[test]
    fn a_command_arrives_word_by_word() {
        let words = ["printf", "<%s>", "a b", "it's", "$HOME", "", "new\nline"];
        let job = Job::here(&words.map(OsString::from)).unwrap();
        let printed =
            capture(std::process::Command::new("sh").arg("-c").arg(job.script())).unwrap();
        assert_eq!(printed, "<a b><it's><$HOME><><new\nline>");
    }

    #[test]
    fn a_command_runs_in_its_folder_with_its_variables() {
        let environment = vec![("GOODPUT_X".into(), "a'b".into())];
        let words = ["sh", "-c", "pwd; echo $GOODPUT_X"].map(OsString::from).to_vec();
        let job = Job { words, folder: "/usr".into(), environment };
        let printed =
            capture(std::process::Command::new("sh").arg("-c").arg(job.script())).unwrap();
        assert_eq!(printed, "/usr\na'b\n");
    }
}
