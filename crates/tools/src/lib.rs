//! Code shared by the developers' programs: `xtask` itself, and `goodput-bench`.
#![forbid(unsafe_code)]

mod median;
pub mod packages;
pub mod shell;

use std::process::ExitCode;

pub use median::median;

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
