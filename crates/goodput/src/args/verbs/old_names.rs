//! What `goodput as` takes.

use std::path::PathBuf;

use clap::Args;

/// `goodput as`
#[derive(Debug, Args)]
pub struct AsArgs {
    /// Print the equivalent goodput command, and run nothing
    #[arg(long)]
    pub show: bool,
    /// List the programs, or what each option of one program becomes
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, conflicts_with_all = ["line", "show"])]
    pub list: Option<Option<String>>,
    /// Make links to goodput under the programs' names in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["line", "show", "list"])]
    pub install: Option<PathBuf>,
    /// The program, and its own options
    #[arg(required_unless_present_any = ["list", "install"], trailing_var_arg = true, allow_hyphen_values = true,
          value_name = "PROGRAM")]
    pub line: Vec<String>,
}
