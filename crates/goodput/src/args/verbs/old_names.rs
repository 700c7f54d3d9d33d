//! What `goodput as` and `goodput shim` take.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `goodput as`
#[derive(Debug, Args)]
pub struct AsArgs {
    /// Print the command of goodput that it comes to, and run nothing
    #[arg(long)]
    pub show: bool,
    /// The program, as `goodput shim list` shows it, and its own options
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub line: Vec<String>,
}

/// `goodput shim`
#[derive(Debug, Subcommand)]
pub enum ShimWork {
    /// Make links to goodput under the old names
    Install {
        /// Directory for the links
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// The programs, or what each option of one becomes
    List {
        /// The program
        program: Option<String>,
    },
}
