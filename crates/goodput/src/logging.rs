//! What goes to standard error besides results.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::screen::Log;

/// What is logged unless the user asks for more: warnings, and the target of [`goodput_engine::serve::AUDIT`].
const DEFAULT: &str = "warn,audit=info";

/// Warnings and who did what with a credential by default, one line for each client with `-v`, everything with
/// `-vv`; `RUST_LOG` overrides.
pub fn begin(verbose: u8) {
    let level = match verbose {
        0 => DEFAULT,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_did_what_is_logged_by_default() {
        assert!(DEFAULT.contains(&format!("{}=info", goodput_engine::serve::AUDIT)));
    }
}
