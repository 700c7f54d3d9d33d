//! What `goodput generate` takes.

use std::path::PathBuf;

use clap::Subcommand;
use clap_complete::Shell;

/// `goodput generate`
#[derive(Debug, Subcommand)]
pub enum Generate {
    /// Print shell completions
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write man pages, one file for each verb
    Man {
        /// Directory to write to
        directory: PathBuf,
    },
    /// Print the JSON Schema of a record
    Schema,
    /// Write all reference documents
    Reference {
        /// Directory to write to
        directory: PathBuf,
    },
}
