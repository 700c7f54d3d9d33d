//! What `goodput tune` takes.

use clap::Args;
use goodput_model::Purpose;

use crate::args::options::{MeasureArgs, OutputArgs, SshHostArgs};
use crate::args::values::number::whole;
use crate::args::values::{percent, time};

/// What the longer help adds.
const MORE: &str = "\
How it works: goodput measures once. Then it tries what the findings and `goodput check` propose, one change at a \
time: interleaved runs with and without the change, on top of what has helped so far. A change that is proven to gain \
enough stays for the next trials. In the end, goodput compares all of these changes together with the start. Only what \
this last comparison supports counts as proven. goodput puts everything back, whatever happens. With --keep, it tries \
only what can be kept, then sets the proven changes again on the hosts they are of, and saves them there in files of its \
own.

Examples:
    goodput tune nas                                # try, prove, put back
    goodput tune nas --dry-run                      # print what it would try
    goodput tune nas --for latency --max-time 10m
    goodput tune nas --keep                         # keep what is proven

goodput changes settings of the far end if the server there allows it (its option --allow-settings '*') and knows this \
client by its token (--token-file) or its key. What is not permitted is printed as commands for the administrator there.

Exit codes: 0 the search came to its end, 2 could not do it or was interrupted, 3 not permitted, 4 nothing is proven \
because too few runs could judge. Ctrl-C ends it with what is known; a second Ctrl-C ends it at once.";

/// What `--time` means here.
const RUN_TIME: &str = "Length of a run [default: 1s, more if slow start takes long]";

/// `goodput tune`
#[derive(Debug, Args)]
#[command(after_long_help = MORE, mut_arg("time", |time| time.help(RUN_TIME)))]
pub struct TuneArgs {
    /// The far end: HOST, HOST:PORT or SCHEME://HOST, or a file to fetch
    pub target: String,
    #[command(flatten)]
    pub tuning: TuningArgs,
    #[command(flatten)]
    pub hosts: SshHostArgs,
    #[command(flatten)]
    pub measure: MeasureArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is to be gained, and how far it goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tuning")]
pub struct TuningArgs {
    /// What to gain: throughput, latency, cpu or balanced
    ///
    /// balanced accepts a gain in any of the three if neither of the others gets worse.
    #[arg(long = "for", value_name = "PURPOSE", default_value_t = Purpose::Throughput)]
    pub purpose: Purpose,
    /// Smallest gain for which a change is kept
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = percent::difference)]
    pub min_gain: f64,
    /// Stop after this time at the latest
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = time::seconds)]
    pub max_time: f64,
    /// Measure once, then print what goodput would try
    #[arg(long)]
    pub dry_run: bool,
    /// Keep the proven changes on this host, now and after a reboot
    ///
    /// Whether they can be kept is tried first. After Ctrl-C nothing is kept. `goodput settings undo --saved` removes the
    /// files.
    #[arg(long, conflicts_with = "dry_run")]
    pub keep: bool,
    /// Seed for the random order of the runs [default: random]
    #[arg(long, value_name = "N", value_parser = whole("a seed", 0..=u64::MAX), hide_short_help = true)]
    pub seed: Option<u64>,
}
