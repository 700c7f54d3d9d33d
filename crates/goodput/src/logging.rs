//! Everything on standard error besides results.

use std::fmt;
use std::io::IsTerminal;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

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
        .event_format(Plain);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
    if let Some(why) = not_understood {
        tracing::warn!("RUST_LOG is ignored: {why}");
    }
}

/// Lines like all others of goodput. Only what developers ask for has its level and its place.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let about = event.metadata();
        out.write_str("goodput: ")?;
        if *about.level() > Level::INFO {
            write!(out, "{} {}: ", about.level(), about.target())?;
        }
        context.field_format().format_fields(out.by_ref(), event)?;
        writeln!(out)
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
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    #[test]
    fn who_did_what_is_logged_by_default() {
        assert!(DEFAULT.contains(&format!("{}=info", goodput_engine::serve::AUDIT)));
    }

    /// What is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_of_the_log_is_like_any_other_one() {
        let kept = Kept::default();
        let writer = kept.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .event_format(Plain);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            tracing::warn!("the stream x is full");
            tracing::info!(peer = 7, "the test begins");
            tracing::debug!(target: "place", "detail");
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        let all = [
            "goodput: the stream x is full",
            "goodput: the test begins peer=7",
            "goodput: DEBUG place: detail",
        ];
        assert_eq!(lines, all);
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
