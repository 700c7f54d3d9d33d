//! What `goodput watch` takes.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use goodput_model::Bytes;

use crate::args::options::MeasureArgs;
use crate::args::values::budget::budget;
use crate::args::values::{address, time};

/// What the longer help adds.
const MORE: &str = "\
Schedule: each target has one test in every --every, at a random time within its part of it. Tests of one watch never \
run at once, and neither do tests of two watches on this host, whoever runs them. Watches on different hosts meet at a \
target only by chance, and not at all at a server with --exclusive. The schedule needs no wall clock, so a clock that steps and daylight saving time don't disturb it.

Budget: the tests of all targets share it. goodput makes them as small as it takes, and counts the bytes of their IP \
packets in both directions. When the budget of the last 24 hours is used up, goodput says so and does not test. The \
default costs a line of 100 Mbit/s less than 0.5 % of its capacity.

Changes: goodput compares the ranks of the newest tests with those before, without the path's daily rhythm. So it \
needs no threshold, and two days of tests to begin with. It finds a lasting drop of 10 % within eight tests on a path \
whose tests differ by less than 4 %. Then it compares the records before and since: limit, kernel, settings, route, \
MTU, round trip, loss and windows. A target that does not answer is a gap, not a rate of 0.

History: each test is a result like any other (`goodput history`). Only tests that are made in \
the same way are compared; goodput says once if they are made in another way than those before.

--notify: goodput runs the program, without a shell, when a path changed (shifted: its round trip or loss), when a target \
stopped answering, and when it answers again. The environment has GOODPUT_EVENT (changed, shifted, gone, back), \
GOODPUT_TARGET and GOODPUT_TEXT; standard input has all facts as JSON. Far ends choose some of these words, so don't \
let a shell evaluate them.

Examples:
    goodput watch nas
    goodput watch nas backup --every 1h --budget 2GB/day
    goodput watch nas --reverse --flows 4 --notify /usr/local/bin/tell-me
    goodput watch nas --once     # for cron or a timer

Exit codes: 0 fine, 1 a path changed (--once), 2 a target has no whole result (--once), 3 not permitted.";

/// `goodput watch`
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub struct WatchArgs {
    /// The far ends: HOST, HOST:PORT or SCHEME://HOST
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub schedule: WatchScheduleArgs,
    #[command(flatten)]
    pub output: WatchOutputArgs,
    #[command(flatten)]
    pub measure: MeasureArgs,
}

/// When to test, and at what cost.
#[derive(Debug, Args)]
#[command(next_help_heading = "Schedule")]
pub struct WatchScheduleArgs {
    /// Time between two tests of a target
    #[arg(long, value_name = "TIME", value_parser = time::every, default_value = "15m")]
    pub every: f64,
    /// Test each target once, then end
    #[arg(long)]
    pub once: bool,
    /// Most bytes that all tests together may cost in 24 hours
    #[arg(long, value_name = "BYTES/day", value_parser = budget, default_value = "5GB/day")]
    pub budget: Bytes,
    /// End a test after this time, even before its share is moved
    #[arg(long, value_name = "TIME", value_parser = time::seconds, default_value = "10s", conflicts_with = "time",
          hide_short_help = true)]
    pub max_time: f64,
    /// Take turns only with watches of this host that name the same line
    ///
    /// For a host with several lines: tests over different ones may run at once.
    #[arg(long, value_name = "NAME", env = "GOODPUT_LINE", hide_short_help = true)]
    pub line: Option<String>,
    /// Delete results of watches that are older than this, like 90d [default: keep all]
    #[arg(long, value_name = "AGE", value_parser = time::age)]
    pub keep: Option<f64>,
    /// Delete days of deleted results that are older than this
    ///
    /// At least the age of --keep. [default: 1830d, or --keep if that is longer]
    #[arg(long, value_name = "AGE", value_parser = time::age, requires = "keep", hide_short_help = true)]
    pub keep_days: Option<f64>,
}

/// Who hears of it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct WatchOutputArgs {
    /// Run this program when a path changed
    ///
    /// It gets the facts in its environment and as JSON on standard input. goodput ends it after a minute.
    #[arg(long, value_name = "PROGRAM")]
    pub notify: Option<PathBuf>,
    /// Print one JSON event per line
    #[arg(long)]
    pub json: bool,
    /// Serve metrics for Prometheus at this address (OpenMetrics, /metrics)
    ///
    /// Everyone who reaches the address can read them.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address::with_port, conflicts_with = "once")]
    pub metrics: Option<SocketAddr>,
}
