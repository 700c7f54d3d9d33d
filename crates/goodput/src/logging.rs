//! What goes to standard error besides results.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::screen::Log;

/// Warnings by default, one line for each client with `-v`, everything with `-vv`; `RUST_LOG`
/// overrides.
pub fn begin(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Log)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .compact()
        .init();
}
