//! The commands of `cargo xtask` that are programs of their own: builds and starts the one that has the command.

use std::ffi::OsString;

use anyhow::Result;
use goodput_tools::shell::{cargo, run as run_command};

/// Measures goodput's speed (`crates/bench`).
pub const BENCH: &str = "goodput-bench";
/// Measures how often goodput is right (`crates/campaigns`).
pub const CAMPAIGNS: &str = "goodput-campaigns";

/// What the program takes; it has the help.
#[derive(clap::Args)]
pub struct Arguments {
    /// Its arguments; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    all: Vec<OsString>,
}

/// Starts a command of a program in the user's folder, because file names are relative to it.
pub fn run(program: &str, what: &str, arguments: &Arguments) -> Result<()> {
    let mut cargo = cargo(["run", "--quiet", "--package", program, "--", what]);
    run_command(cargo.args(&arguments.all).current_dir(std::env::current_dir()?))
}
