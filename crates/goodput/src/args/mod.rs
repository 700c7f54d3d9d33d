//! What can be typed. Parsing reads nothing but the command line: it never touches the machine.

mod options;
mod values;
mod verbs;

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand};

use values::path::path;

pub use options::{CredentialArgs, OutputArgs};
pub use values::local::LocalAddress;
pub use verbs::{
    AsArgs, CheckArgs, CompareArgs, Generate, HistoryArgs, KeyArgs, Lab, ListArgs, Listed,
    Narrowed, ServeArgs, ServedFileArgs, Settings, TestArgs, WhenBusy,
};

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

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer clients
    Serve(Box<ServeArgs>),
    /// Measure, then say what limits it
    Test(Box<TestArgs>),
    /// Prove a change: interleaved runs, statistics, always put back
    Compare(Box<CompareArgs>),
    /// Find what could limit this host, from its settings and counters, without traffic
    Check(CheckArgs),
    /// Read and change settings; undo what an interrupted run left
    #[command(subcommand)]
    Settings(Settings),
    /// Virtual hosts and links on this machine, with faults on demand
    #[command(subcommand)]
    Lab(Lab),
    /// List, show and compare earlier results
    History(HistoryArgs),
    /// Make a private key, and print the line for a server's list of keys
    Key(KeyArgs),
    /// Act as iperf3, iperf, nuttcp or ttcp, with their options and their output
    As(AsArgs),
    /// List what goodput knows
    List(ListArgs),
    /// Explain a rule, check, setting, mover or field of the record
    Explain {
        /// The name, as in `goodput list`, a report or a record
        name: String,
    },
    /// The whole loop on this machine: plant a fault, find it, prove the fix, put it back
    Demo,
    /// Completions, man pages and the reference documents
    #[command(subcommand)]
    Generate(Generate),
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
