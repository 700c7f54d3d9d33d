//! What `goodput test` takes.

use clap::Args;
use goodput_engine::AttachTo;

use crate::args::options::{
    AccessArgs, CaptureArgs, FindRateArgs, FormatArgs, MeasureArgs, OutputArgs,
};

/// What the longer help adds.
const MORE: &str = "\
Attach: with --attach, goodput sends nothing. It watches another program's TCP connections from this end, by the \
kernel's counters, and ends when the transfer ends. Your own programs need no root. For other users' programs, CPU time \
and limits are missing without root. UDP and other network namespaces can't be seen. If a program has several \
transfers, choose one by its port.

Probes: goodput runs probes when the kernel's counters can't tell the two likeliest causes apart. A probe is a run of \
2.5 s with one thing changed. Examples: segmentation offload off, half the window, four times the flows. The record \
keeps each probe with its numbers. `goodput list probes` has all of them.

Files: `goodput test files HOST` measures each disk alone, the network alone and all together, interleaved and \
repeated. The report says which part is slowest, with an interval, and what a faster part would gain. --cold keeps the \
source out of the page cache, --direct or --fsync the sink.

Examples:
    goodput test nas                                # send to nas
    goodput test nas --reverse --flows 4 --time 30s
    goodput test nas --udp --rate 500mbit
    goodput test ssh://nas                          # start a server there
    goodput test files nas --source big.iso --sink copy.iso
    goodput test nfs://nas/export/big.iso           # fetch a file
    goodput test --attach port:443                  # watch another program

Exit codes: 0 fine, 1 a problem found or an expectation missed, 2 could not do it, 3 not permitted, \
4 inconclusive.";

/// `goodput test`
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub struct TestArgs {
    /// The far end: HOST, HOST:PORT or SCHEME://HOST, a file, or `files`
    ///
    /// For ssh://[USER@]HOST[:PORT], goodput starts a server there by SSH and ends it after the measurement: goodput, or else
    /// iperf3. No server has to stand open, but its port must be reachable (--far-port).
    ///
    /// A file is http://HOST/FILE, nfs://HOST/EXPORT/FILE or /mnt/nas/FILE. goodput speaks HTTP/1.1 with web servers and
    /// NFS version 3 with NFS servers. `files HOST` measures disk and network alone and together, and says which one limits;
    /// name the files with --source FILE, --sink FILE or both.
    #[arg(required_unless_present = "attach")]
    pub target: Option<String>,
    /// The far end of `goodput test files`
    #[arg(value_name = "HOST", conflicts_with_all = ["attach", "find_rate", "probe", "host_limits", "CaptureArgs", "FormatArgs"], hide_short_help = true)]
    pub host: Option<String>,
    #[command(flatten)]
    pub measure: MeasureArgs,
    #[command(flatten)]
    pub access: AccessArgs,
    #[command(flatten)]
    pub explain: ExplainArgs,
    #[command(flatten)]
    pub capture: CaptureArgs,
    #[command(flatten)]
    pub find_rate: FindRateArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// What is explained, and how far it goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Observing")]
pub struct ExplainArgs {
    /// Watch another program's TCP transfer instead of sending
    ///
    /// Give its process id or one of its ports. Write pid:N or port:N if a number could be both.
    #[arg(long, value_name = "PID|PORT",
          conflicts_with_all = ["target", "DirectionArgs", "LoadArgs", "SocketArgs", "StorageArgs", "PeerArgs",
                                "CaptureArgs", "username", "server_key", "bytes", "fetches", "omit", "latency"])]
    pub attach: Option<AttachTo>,
    /// Run short probes if the two likeliest causes look alike
    ///
    /// A probe changes one thing, to tell the two causes apart. It may change a setting of this host while it runs, and
    /// puts it back.
    #[arg(long, conflicts_with_all = ["attach", "both", "udp", "no_observe"])]
    pub probe: bool,
    /// Also show what copying alone would allow on this host
    ///
    /// Before the test, goodput measures for 0.6 s what one CPU could carry if it did only one thing: copy memory, pass
    /// references to pages, or make empty system calls. The report compares the goodput with the limit of this end's
    /// mover. It also shows where the CPU time of this end's threads went. This profile needs root, CAP_PERFMON, or a
    /// sysctl kernel.perf_event_paranoid of at most 1.
    #[arg(long, conflicts_with_all = ["attach", "find_rate", "no_observe"], hide_short_help = true)]
    pub host_limits: bool,
    /// Also show which rules could not decide, and why
    #[arg(long, hide_short_help = true)]
    pub undecided: bool,
}
