//! What `goodput generate` takes.

use std::path::PathBuf;

use clap::Subcommand;
use clap_complete::Shell;

/// `goodput generate`
#[derive(Debug, Subcommand)]
pub enum Generate {
    /// Shell completions, to standard output
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Man pages, one file per verb
    Man {
        /// Directory to write to
        directory: PathBuf,
    },
    /// The JSON Schema of a record, to standard output
    Schema,
    /// All reference documents
    Reference {
        /// Directory to write to
        directory: PathBuf,
    },
}
