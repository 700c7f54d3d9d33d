//! What the programs of developers share: `xtask` itself, and `goodput-bench`.
#![forbid(unsafe_code)]

pub mod packages;
pub mod shell;

use std::process::ExitCode;

/// How a program ends: an error is printed.
pub fn exit(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
