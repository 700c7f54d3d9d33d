//! `goodput check`: checks this host's settings and counters before trouble comes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use goodput_diagnose::check::is_seen;

use super::measured;
use super::settings::warn_of_leftovers;
use crate::args::CheckArgs;
use crate::data_dirs::state_dir;
use crate::exit::Exit;
use crate::json_text;
use crate::report::test::Detail;
use crate::{report, screen};

/// Checks, reports, and returns whether anything was seen to do harm.
pub fn run(args: &CheckArgs, state: Option<PathBuf>, verbose: bool) -> Result<Exit> {
    // A user without a home has no journals.
    if let Ok(state_dir) = state_dir(state) {
        warn_of_leftovers(&state_dir);
    }
    let watch = args.watch.map(Duration::from_secs_f64);
    let report = goodput_engine::check(&args.devices, watch, &measured::now())?;
    if args.json {
        screen::line(json_text::indented(&report)?)?;
    } else {
        let detail = Detail { undecided: args.undecided, verbose, ..Detail::default() };
        screen::print_fitted(&report::check::text(&report, detail))?;
    }
    Ok(if report.findings.iter().any(is_seen) { Exit::Problem } else { Exit::Fine })
}
