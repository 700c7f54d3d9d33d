//! What `goodput key` takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What the longer help adds.
const MORE: &str = "\
The line has a name, a role and the public key. The role is measure, or settings for a client that may also \
change what --allow-settings PATTERN names. The server's operator may add options to the line: max-rate=RATE, \
max-duration=TIME, max-measurements=N and from=NETWORK,… To withdraw a key, remove its line.";

/// `goodput key`
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub struct KeyArgs {
    /// File of the private key [default: goodput/key in $XDG_CONFIG_HOME or ~/.config]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Name that the server's log shows for you [default: user@host]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Role to request; the server's operator decides
    #[arg(long, value_enum, default_value_t = AskedRole::Measure, value_name = "ROLE")]
    pub role: AskedRole,
    /// Replace an existing key; servers don't know the new one yet
    #[arg(long)]
    pub replace: bool,
}

/// The role that a public line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AskedRole {
    /// Measure
    Measure,
    /// Measure, and change settings
    Settings,
}

impl AskedRole {
    /// As the file of authorized keys has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Measure => "measure",
            Self::Settings => "settings",
        }
    }
}
