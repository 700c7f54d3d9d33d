//! `goodput check`: this host's settings and counters, before trouble comes.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use goodput_diagnose::check::is_seen;

use super::measured;
use crate::args::CheckArgs;
use crate::exit::Exit;
use crate::report;

/// Looks, reports, and tells whether anything was seen to harm.
pub fn run(args: &CheckArgs) -> Result<Exit> {
    let watch = args.watch.map(Duration::from_secs_f64);
    let report = goodput_engine::check(&args.devices, watch, &measured::now())?;
    let mut out = anstream::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        write!(out, "{}", report::check::text(&report, args.undecided))?;
    }
    Ok(if report.findings.iter().any(is_seen) { Exit::Problem } else { Exit::Fine })
}
