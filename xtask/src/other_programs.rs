//! `cargo xtask bench`, `crowd` and `soak`: build and start the program in `crates/bench`.

use std::ffi::OsString;

use anyhow::Result;

use xtask::shell::{cargo, run as run_command};

/// What the program takes; it has the help.
#[derive(clap::Args)]
pub struct Arguments {
    /// Its arguments; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    all: Vec<OsString>,
}

/// Starts one of its commands in the user's folder, because file names are relative to it.
pub fn run(what: &str, arguments: &Arguments) -> Result<()> {
    let mut program = cargo(["run", "--quiet", "--package=goodput-bench", "--", what]);
    run_command(program.args(&arguments.all).current_dir(std::env::current_dir()?))
}
