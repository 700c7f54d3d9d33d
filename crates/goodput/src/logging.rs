//! Everything on standard error besides results.

use std::io::IsTerminal;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

use crate::screen::Log;

/// The default log level: warnings, and the target of [`goodput_engine::serve::AUDIT`]. What the library of NATS says goes
/// wrong is an error of goodput's, too, in other words.
const DEFAULT: &str = "warn,audit=info,async_nats=off";
/// With `-v`.
const MORE: &str = "info,async_nats=off";

/// By default warnings and who did what with a credential, one line for each client with `-v`, everything with `-vv`;
/// `RUST_LOG` overrides this (`TARGET=LEVEL` separated by commas).
pub fn begin(verbose: u8) {
    let asked = std::env::var("RUST_LOG").ok();
    let (filter, not_understood) = filter(asked.as_deref(), verbose);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| Log)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .compact();
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
    if let Some(why) = not_understood {
        tracing::warn!("RUST_LOG is ignored: {why}");
    }
}

/// The log filter, and why `RUST_LOG` is ignored, if so.
fn filter(asked: Option<&str>, verbose: u8) -> (Targets, Option<String>) {
    let level = match verbose {
        0 => DEFAULT,
        1 => MORE,
        _ => "debug",
    };
    // Both are constants of this file, and a test parses them.
    let by_level = || level.parse().unwrap_or_default();
    match asked.filter(|asked| !asked.is_empty()).map(str::parse::<Targets>) {
        None => (by_level(), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(why)) => (by_level(), Some(why.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_did_what_is_logged_by_default() {
        assert!(DEFAULT.contains(&format!("{}=info", goodput_engine::serve::AUDIT)));
    }

    #[test]
    fn the_environment_decides_if_it_is_understood() {
        use tracing::level_filters::LevelFilter;
        let most = |asked, verbose| filter(asked, verbose).0.default_level();
        assert_eq!(most(None, 0), Some(LevelFilter::WARN));
        assert_eq!(most(Some(""), 1), Some(LevelFilter::INFO));
        assert_eq!(most(None, 2), Some(LevelFilter::DEBUG));
        assert_eq!(most(Some("error"), 2), Some(LevelFilter::ERROR));
        assert!(filter(Some("goodput_engine=loud"), 0).1.is_some());
    }
}
