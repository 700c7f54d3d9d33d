//! Everything that can go wrong with a host reached by SSH, in words that say what to do about it.

use goodput_settings::SettingError;

/// What went wrong. Unless it says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// It names no host.
    #[error(
        "{text:?} is no host reached by SSH: {why}; write it like ssh://root@host or ssh://host:2222"
    )]
    BadAddress {
        /// What was asked for.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The host has a program that is missing.
    #[error("{host} has no program {program:?}; install it there")]
    NoProgram {
        /// The host.
        host: String,
        /// What was to be run.
        program: String,
    },
    /// A command failed.
    #[error("{host}: {command:?} failed with exit code {status}: {said}")]
    Failed {
        /// The host.
        host: String,
        /// The command, as one would type it.
        command: String,
        /// Its exit code.
        status: i32,
        /// Its standard error, or its standard output if that is empty.
        said: String,
    },
    /// The login there lacks a privilege.
    #[error(
        "{host}: not permitted to run {command:?} ({said}); log in as root, like ssh://root@{host}"
    )]
    NotPermitted {
        /// The host.
        host: String,
        /// The command, as one would type it.
        command: String,
        /// What it said.
        said: String,
    },
    /// A command printed something else than its documentation says.
    #[error("{host}: can't understand what {command:?} printed: {why}, in the line {line:?}")]
    NotUnderstood {
        /// The host.
        host: String,
        /// The command, as one would type it.
        command: String,
        /// The line.
        line: String,
        /// What was expected.
        why: String,
    },
    /// Its operating system is not one that goodput knows.
    #[error("{host} runs {name:?}; goodput can only change settings of Linux and FreeBSD by SSH")]
    UnknownSystem {
        /// The host.
        host: String,
        /// What `uname -s` printed.
        name: String,
    },
    /// The system has no such setting, or no faithful command for it.
    #[error("{host}: {setting} can't be changed by SSH: {why}")]
    NoSuchSetting {
        /// The host.
        host: String,
        /// The setting.
        setting: String,
        /// What is missing, and what could be done.
        why: String,
    },
    /// The same that can go wrong with a setting of this host.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

impl RemoteError {
    /// Whether a privilege is missing.
    pub fn not_permitted(&self) -> bool {
        match self {
            Self::NotPermitted { .. } => true,
            Self::Setting(error) => matches!(error, SettingError::NotPermitted { .. }),
            _ => false,
        }
    }
}
