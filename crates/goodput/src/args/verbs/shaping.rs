//! What `goodput shaping` takes.

use clap::Args;
use goodput_engine::Target;
use goodput_model::{BitRate, Bytes, Direction, Family, Plan, SocketOptions};
use goodput_shaping::Told;

use crate::args::options::{CredentialArgs, OutputArgs, datagram_towards};
use crate::args::values::calendar::calendar;
use crate::args::values::local::LocalAddress;
use crate::args::values::{percent, rate, size, time};

/// What the longer help adds.
const MORE: &str = "\
How it works: goodput waits a second, so that the shaper's bucket fills. Then it sends datagrams at 4.3 times the rate. \
Their times of arrival show whether they wait (a shaper) or are dropped (a policer), the rate, the depth of the bucket, \
and the queue. Then it measures TCP, which is what users have: a bucket that is too small, segmentation offload, or a \
queue of the wrong length can slow TCP down, though datagrams get the whole rate. The traffic takes 5 s at most.

The report says which bytes the shaper counts: IP packets, Ethernet frames, or all bytes of the wire. A qdisc of Linux \
counts frames without checksum, so 100 Mbit/s leave 95.6 Mbit/s for the payload of TCP.

If this host shapes, the report holds its queueing discipline against what was measured, and computes the smallest \
sufficient bucket from the rate, the lateness of timers and the largest super-packet. A shaper elsewhere is only seen \
from outside: run goodput on its host, or set its bucket there.

The history keeps each result. The next test of the same target and rate says what changed since then.

A far end that is not goodput does not report when datagrams come. Then only TCP is measured.

Examples:
    goodput shaping nas --rate 100mbit
    goodput shaping nas --rate 20mbit --reverse    # what comes from there
    goodput shaping nas --rate 1gbit --tolerance 1% --max-burst 125KB
    goodput shaping nas --rate 100mbit --prove     # what costs the rate?
    goodput shaping nas --rate 100mbit --show-timer=hourly

Exit codes: 0 it gives its rate, 1 it does not, 2 could not do it, 3 not permitted, 4 inconclusive.";

/// `goodput shaping`
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub struct ShapingArgs {
    /// The far end: HOST, HOST:PORT or SCHEME://HOST
    pub target: String,
    #[command(flatten)]
    pub shaper: ShaperArgs,
    #[command(flatten)]
    pub traffic: TrafficArgs,
    #[command(flatten)]
    pub proof: ProofArgs,
    #[command(flatten)]
    pub schedule: ScheduleArgs,
    #[command(flatten)]
    pub credentials: CredentialArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What the shaper was told.
#[derive(Debug, Args)]
#[command(next_help_heading = "Shaper")]
pub struct ShaperArgs {
    /// Rate that the shaper should give
    #[arg(long, value_name = "RATE", value_parser = rate::positive)]
    pub rate: BitRate,
    /// Largest difference from that rate that still passes
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent::difference)]
    pub tolerance: f64,
    /// Largest burst that the shaper may let through at line rate after a pause
    #[arg(long, value_name = "BYTES", value_parser = size::positive)]
    pub max_burst: Option<Bytes>,
}

/// Which traffic it sees.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traffic")]
pub struct TrafficArgs {
    /// Reverse the direction: the far end sends
    #[arg(short = 'R', long)]
    pub reverse: bool,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6", hide_short_help = true)]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long, hide_short_help = true)]
    pub ipv6: bool,
    /// Local address of the connections; %DEVICE also binds them to a device
    #[arg(long, value_name = "ADDRESS[%DEVICE]", hide_short_help = true)]
    pub bind: Option<LocalAddress>,
    /// Congestion control of TCP at both ends
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub congestion: Option<String>,
    /// Mark packets with this differentiated services code point, 0 to 63
    ///
    /// A shaper with classes chooses the class by it.
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(0..64), hide_short_help = true)]
    pub dscp: Option<u8>,
}

/// How to find out which setting is to blame.
#[derive(Debug, Args)]
#[command(next_help_heading = "Proof")]
pub struct ProofArgs {
    /// Compare segmentation offload on and off, and the bucket as it is and as computed
    ///
    /// TCP is measured with all combinations, interleaved and in random order. goodput puts every setting back. It
    /// prints the rate with each combination, which setting matters, and what gives the rate.
    #[arg(long)]
    pub prove: bool,
    /// Stop the comparison after this time at the latest
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = time::seconds, hide_short_help = true)]
    pub max_time: f64,
    /// Seed for the random order of the runs [default: random]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
}

/// When to test again.
#[derive(Debug, Args)]
#[command(next_help_heading = "Schedule")]
pub struct ScheduleArgs {
    /// Print a systemd service and timer that repeat this test, and don't run it
    ///
    /// WHEN is a time as in systemd.time(7), like weekly or "*-*-* 14:05:00" [default: daily]. The service keeps the
    /// results in /var/lib/goodput, and each says what changed since the last one.
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "daily",
          value_parser = calendar, conflicts_with = "no_store")]
    pub show_timer: Option<String>,
}

impl ShaperArgs {
    /// The same for the judgement.
    pub fn told(&self) -> Told {
        Told {
            rate: self.rate,
            tolerance_percent: self.tolerance,
            max_burst: self.max_burst,
            counts: None,
        }
    }
}

impl TrafficArgs {
    /// The plan of the TCP measurement.
    pub fn plan(&self) -> Plan {
        let local = self.bind.as_ref();
        Plan {
            direction: if self.reverse { Direction::Reverse } else { Direction::Send },
            socket: SocketOptions {
                bind: local.map(|local| local.ip),
                device: local.and_then(|local| local.device.clone()),
                family: self.family(),
                congestion: self.congestion.clone(),
                dscp: self.dscp,
                ..SocketOptions::default()
            },
            ..Plan::standard()
        }
    }

    /// Payload of the datagrams of a train: as much as a packet of 1500 bytes has.
    pub fn datagram(&self, target: &Target) -> Bytes {
        datagram_towards(target, self.family())
    }

    fn family(&self) -> Option<Family> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(Family::V4),
            (_, true) => Some(Family::V6),
            _ => None,
        }
    }
}
