//! What can be typed. Parsing reads nothing but the command line: it never touches the machine.

#[cfg(test)]
mod documented;
mod options;
mod values;
mod verbs;

use std::path::PathBuf;

use clap::{ArgAction, Parser};

use values::path::path;

pub use options::{CredentialArgs, FileServerArgs, OutputArgs, asks_for_something, with_defaults};
pub use values::local::LocalAddress;
pub use values::{frequency, rate};
pub use verbs::*;

/// The heading of the options that every verb takes.
pub const GLOBAL: &str = "Global options";

/// How fast a network path really is, what holds it back, and which change fixes it, proven by
/// measurement.
#[derive(Debug, Parser)]
#[command(name = "goodput", version, max_term_width = 100)]
#[command(disable_help_flag = true, disable_version_flag = true)]
#[command(after_help = "Exit codes: 0 fine, 1 a problem found or an expectation missed, 2 could \
                        not do it, 3 not permitted, 4 inconclusive.")]
pub struct Cli {
    /// Report more: all details of a result, and progress on standard error; -vv everything
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = GLOBAL)]
    pub verbose: u8,

    /// Directory of the settings journal [default: where the system keeps state]
    #[arg(long, value_name = "DIR", env = "GOODPUT_STATE_DIR", value_parser = path("GOODPUT_STATE_DIR"),
          global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub state_dir: Option<PathBuf>,

    /// Print help: -h the most used options, --help all of them
    #[arg(short, long, action = ArgAction::Help, global = true, help_heading = GLOBAL)]
    help: Option<bool>,

    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = GLOBAL)]
    version: Option<bool>,

    #[command(subcommand)]
    pub command: Command,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
