//! What `goodput compare` takes.

use clap::{Args, ValueEnum};
use goodput_model::{Bytes, Response};

use crate::args::options::{MeasureArgs, OutputArgs, SshHostArgs};
use crate::args::values::number::whole;
use crate::args::values::{percent, time};

/// What the longer help adds.
const MORE: &str = "\
goodput runs the arms in blocks, each arm once per block in random order, and puts every setting back, whatever happens.

Examples:
    goodput compare nas socket.congestion=cubic,bbr
    goodput compare nas chunk=4K..4M                # doubles from 4K to 4M
    goodput compare nas far:qdisc.kind@eth0=fq,fq_codel
    goodput compare nas offload.tso@eth0=on,off --response cpu,throughput
    goodput compare nas mover=copy,sendfile --sizes 1K,1M --clients 1,16

Exit codes: 0 fine, 1 an expectation missed, 2 could not do it or was interrupted, 3 not permitted, 4 inconclusive. Ctrl-C \
ends it with what is known; a second Ctrl-C ends it at once.";

/// What `--time` means here.
const RUN_TIME: &str =
    "Length of a run [default: 300ms to 2s, shorter with many arms or little time]";

/// `goodput compare`
#[derive(Debug, Args)]
#[command(after_long_help = MORE, mut_arg("time", |time| time.help(RUN_TIME)))]
pub struct CompareArgs {
    /// The far end: HOST, HOST:PORT or SCHEME://HOST, or a file
    ///
    /// A file is http://HOST/FILE, nfs://HOST/EXPORT/FILE or /mnt/nas/FILE.
    pub target: String,
    /// A setting and its values, like socket.congestion=cubic,bbr
    ///
    /// The first value is the baseline. chunk=4K..4M doubles from 4K to 4M; 4K..4M:6 takes six values in equal steps of
    /// the logarithm. goodput tries all combinations of several settings. `goodput list settings` has the names. far: in
    /// front means a setting of the far end, like far:qdisc.kind@eth0=fq,fq_codel.
    #[arg(required = true, value_name = "SETTING=A,B")]
    pub factors: Vec<String>,
    #[command(flatten)]
    pub comparison: ComparisonArgs,
    #[command(flatten)]
    pub hosts: SshHostArgs,
    #[command(flatten)]
    pub measure: MeasureArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// How several settings become arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Combination {
    /// Every combination; shows which values change what others do
    Factorial,
    /// The baseline, and each other value alone; fewer arms
    OneAtATime,
}

/// How well a difference must be known.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct ComparisonArgs {
    /// Judge arms by these numbers, like throughput, cpu or latency
    ///
    /// The others are interrupts, loss, drops, host-cpu and per-cpu. The first one decides. host-cpu is the CPU time of
    /// the whole host that is changed, per-cpu the goodput for each 100 % of this CPU time. [default: throughput; for
    /// polling also host-cpu, interrupts and per-cpu]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub response: Vec<Response>,
    /// Stop when every difference is known this precisely
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent::difference)]
    pub precision: f64,
    /// Smallest difference that counts
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = percent::difference)]
    pub threshold: f64,
    /// Stop after this time, even if the result is inconclusive
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time::seconds)]
    pub max_time: f64,
    /// How to combine several settings
    #[arg(long, value_enum, default_value = "factorial", hide_short_help = true)]
    pub design: Combination,
    /// Let the arms take turns within one connection, each for this time
    ///
    /// Two turns differ less than two connections do, and need no time to connect. This works for settings of devices that
    /// take effect on running flows, on this host or a host reached by SSH. It judges throughput only. The warm-up still
    /// runs each arm alone.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "500ms",
          value_parser = time::turn, conflicts_with_all = ["response", "sizes", "clients", "bytes"], hide_short_help = true)]
    pub alternate: Option<f64>,
    /// Also run the baseline as an arm that must make no difference
    #[arg(long, hide_short_help = true)]
    pub placebo: bool,
    /// Seed for the random order of the runs [default: random]
    #[arg(long, value_name = "N", value_parser = whole("a seed", 0..=u64::MAX), hide_short_help = true)]
    pub seed: Option<u64>,
    /// Compare with files of each of these sizes
    ///
    /// goodput makes them in memory, or cuts them from --source.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', conflicts_with_all = ["size", "bytes", "time"],
          hide_short_help = true)]
    pub sizes: Vec<Bytes>,
    /// Compare with each of these numbers of clients at the same time
    ///
    /// Each client is one flow.
    #[arg(long, value_name = "N,…", value_delimiter = ',', conflicts_with = "flows",
          value_parser = whole("a number of clients", 1..=u16::MAX), hide_short_help = true)]
    pub clients: Vec<u16>,
}
