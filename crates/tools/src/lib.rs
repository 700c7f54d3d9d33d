//! What the developers' programs share: `xtask`, `goodput-bench` and `goodput-campaigns`.
#![forbid(unsafe_code)]

pub mod packages;
pub mod shell;

use std::process::ExitCode;

/// Ends a program, and prints its error if there is one.
pub fn exit(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
