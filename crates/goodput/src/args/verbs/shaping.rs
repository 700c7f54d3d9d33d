//! What `goodput shaping` takes.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use goodput_engine::{ClassRequest, Credentials, RouterRequest, Target};
use goodput_model::{BitRate, Bytes, Direction, Family, Plan, SocketOptions};
use goodput_shaping::Configured;

use crate::args::options::{AccessArgs, CaptureArgs, CredentialArgs, OutputArgs, datagram_towards};
use crate::args::values::calendar::calendar;
use crate::args::values::class::class;
use crate::args::values::dscp::dscp;
use crate::args::values::local::LocalAddress;
use crate::args::values::number::whole;
use crate::args::values::router::RouterAddress;
use crate::args::values::{percent, rate, size, time};

/// What the longer help adds.
const MORE: &str = "\
How it works: goodput waits a second, so that the shaper's bucket fills. Then it sends datagrams at 4.3 times the rate. \
Their times of arrival show the rate, the depth of the bucket and the queue, and whether datagrams wait (a shaper) or \
are dropped (a policer). If they wait, a second flow of few datagrams beside another 0.3 s of them shows whether the \
queue is fair. Then it measures TCP, which most programs use: a bucket that is too small, segmentation offload \
or a queue of the wrong length can slow TCP down although datagrams get the whole rate. The traffic takes 5 s; longer on a \
path whose queue holds more than a second of its rate.

The report says which bytes the shaper counts: those of IP packets, of Ethernet frames, or all on the wire. A Linux \
qdisc counts frames without their checksum, so 100 Mbit/s leave 95.6 Mbit/s for the payload of TCP.

If this host shapes, the report compares its queueing discipline with the measurement. It computes the smallest \
sufficient bucket from the rate, the delay of the timers and the largest super-packet. If a router \
shapes, name it with --router: goodput then reads its queueing discipline there, from a goodput server or by SSH.

The history keeps each result. The next test of the same target and rate says what has changed.

With --class, goodput measures TCP of each class alone, then TCP of all classes at the same time, then datagrams of all \
classes at the same time. The report says for each class the rate it got, whether it borrows up to its ceil, and whether \
it starves. The exit code is 0 only if each class gets its rate. All of this takes 9 s plus 3 s per class, longer if \
the queue holds over a second.

A far end that is not goodput doesn't report when datagrams arrive. goodput then measures TCP alone, and judges the shaper \
by that.

Examples:
    goodput shaping nas --rate 100mbit
    goodput shaping nas --rate 20mbit --reverse     # the other direction
    goodput shaping nas --rate 1gbit --tolerance 1% --max-burst 125KB
    goodput shaping nas --rate 100mbit --prove     # what costs the rate?
    goodput shaping nas --rate 100mbit --class ef=20mbit --class be=80mbit
    goodput shaping nas --rate 100mbit --router router --router-token-file token
    goodput shaping nas --rate 100mbit --router ssh://root@router
    goodput shaping nas --rate 100mbit --pcap far:there.pcapng
    goodput shaping nas --rate 100mbit --show-timer=hourly

Exit codes: 0 the shaper gives its rate, 1 it does not, 2 could not do it, 3 not permitted, 4 inconclusive.";

/// Largest difference from the rate that passes if none was typed, percent.
pub const DEFAULT_TOLERANCE_PERCENT: f64 = 2.0;

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
    pub router: RouterArgs,
    #[command(flatten)]
    pub capture: CaptureArgs,
    #[command(flatten)]
    pub proof: ProofArgs,
    #[command(flatten)]
    pub schedule: ScheduleArgs,
    #[command(flatten)]
    pub credentials: CredentialArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What the shaper is configured for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Shaper")]
pub struct ShaperArgs {
    /// Rate that the shaper should give
    #[arg(long, value_name = "RATE", value_parser = rate::of_shaper)]
    pub rate: BitRate,
    /// Largest difference from that rate that still passes
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent::tolerance)]
    pub tolerance: f64,
    /// Largest burst that the shaper may let through after a pause
    ///
    /// The shaper sends such a burst at the speed of the line.
    #[arg(long, value_name = "BYTES", value_parser = size::positive)]
    pub max_burst: Option<Bytes>,
    /// Test this class beside the others: give --class once for each
    ///
    /// NAME is what distinguishes its packets: a DSCP (ef, af41, be, 46), source-port:PORT for a port of this host, or
    /// port:PORT for a port of the far host, where a server answers. RATE is what the class should get at least while all
    /// classes send, CEIL what it should get alone [default: the ceil of its class of htb, if goodput can read it].
    /// --rate is that of all classes together.
    #[arg(long = "class", value_name = "NAME=RATE[..CEIL]", value_parser = class,
          conflicts_with_all = ["max_burst", "dscp", "pcap", "prove"])]
    pub classes: Vec<ClassRequest>,
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
    /// Mark packets with this differentiated services code point, like ef
    ///
    /// A shaper with classes may choose the class by its code point.
    #[arg(long, value_name = "DSCP", value_parser = dscp, hide_short_help = true)]
    pub dscp: Option<u8>,
    /// Write to this file when each datagram was sent and came, as JSON
    ///
    /// The times of each datagram are nanoseconds of the clock of the host that sent it, and of the clock of the host to
    /// which it came. They are packed as in a record (docs/record.schema.json, FlowArrivals).
    #[arg(long, value_name = "FILE", conflicts_with = "classes", hide_short_help = true)]
    pub times: Option<PathBuf>,
}

/// Which router shapes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Router")]
pub struct RouterArgs {
    /// Explain by the qdisc of this router on the way
    ///
    /// goodput reads the qdisc of the device through which the router sends to the receiver, with its classes and
    /// counters. It asks the goodput server at HOST, which must run with --allow-qdiscs and know this client's token or
    /// key. With ssh:// it logs in instead: the router runs Linux and needs no goodput, only a login with a key and its
    /// own programs ip and tc. goodput changes nothing there.
    #[arg(long, value_name = "[ssh://[USER@]]HOST[:PORT]")]
    pub router: Option<RouterAddress>,
    /// Read the token for the router's goodput server from this file [default: --token-file]
    #[arg(long, value_name = "FILE", requires = "router", hide_short_help = true)]
    pub router_token_file: Option<PathBuf>,
    #[command(flatten)]
    pub access: AccessArgs,
}

/// How to find out which setting is to blame.
#[derive(Debug, Args)]
#[command(next_help_heading = "Proof")]
pub struct ProofArgs {
    /// Prove what costs the rate: segmentation offload, the bucket, or both
    ///
    /// goodput measures TCP with segmentation offload on and off, and with the present and the computed bucket (and limit,
    /// if that is too short): all combinations, interleaved in random order. It prints the rate of each, which setting matters, and which
    /// combination gives the rate. It puts every setting back.
    #[arg(long)]
    pub prove: bool,
    /// Stop the comparison after this time at the latest
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = time::seconds, requires = "prove", hide_short_help = true)]
    pub max_time: f64,
    /// Seed for the random order of the runs [default: random]
    #[arg(long, value_name = "N", value_parser = whole("a seed", 0..=u64::MAX), requires = "prove", hide_short_help = true)]
    pub seed: Option<u64>,
}

/// When to test again.
#[derive(Debug, Args)]
#[command(next_help_heading = "Schedule")]
pub struct ScheduleArgs {
    /// Print a systemd service and timer that repeat this test
    ///
    /// goodput then runs no test. WHEN is a time as in systemd.time(7), like weekly or "*-*-* 14:05:00" [default: daily].
    /// The service keeps the results in /var/lib/goodput. Each result says what has changed since the last one.
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "daily",
          value_parser = calendar, conflicts_with = "no_store")]
    pub show_timer: Option<String>,
}

impl ShaperArgs {
    /// The classes, if any.
    ///
    /// # Errors
    /// If there is only one, or two have the same mark.
    pub fn classes(&self) -> Result<Vec<ClassRequest>> {
        if let [only] = &self.classes[..] {
            let name = &only.asked.name;
            bail!("--class {name} is alone; give --class for each class that sends beside it");
        }
        for (place, class) in self.classes.iter().enumerate() {
            let (name, rate) = (&class.asked.name, class.asked.rate);
            if rate.0 > self.rate.0 {
                bail!("--class {name}={rate} exceeds the --rate of all classes, {}", self.rate);
            }
            let same = self.classes[..place].iter().find(|other| other.mark == class.mark);
            if let Some(other) = same {
                let (one, two) = (&other.asked.name, &class.asked.name);
                bail!(
                    "--class {one} and --class {two} have the same packets; give them different marks"
                );
            }
        }
        Ok(self.classes.clone())
    }

    /// The same for the judgement.
    pub fn configured(&self) -> Configured {
        Configured {
            rate: self.rate,
            tolerance_percent: self.tolerance,
            max_burst: self.max_burst,
            counts: None,
        }
    }
}

impl ShapingArgs {
    /// Fails if settings were to be compared where goodput changes none.
    ///
    /// # Errors
    /// If a router was named, with what to do instead.
    pub fn check_proof(&self) -> Result<()> {
        match &self.router.router {
            Some(_) if self.proof.prove => bail!(
                "--prove changes settings, and goodput changes nothing at a router: run it with --prove on the router itself, or \
                 leave out --prove or --router"
            ),
            _ => Ok(()),
        }
    }
}

impl RouterArgs {
    /// The same for the test. `known` finds the credentials for a goodput server.
    ///
    /// # Errors
    /// If the server's name or the credentials can't be read.
    pub fn request(
        &self,
        known: impl FnOnce(&Target) -> Result<Credentials>,
    ) -> Result<Option<RouterRequest>> {
        Ok(match &self.router {
            None => None,
            Some(RouterAddress::Ssh(address)) => {
                Some(RouterRequest::Ssh(address.clone(), self.access.access()))
            }
            Some(RouterAddress::Goodput(text)) => {
                let target: Target = text.parse()?;
                let credentials = known(&target)?;
                Some(RouterRequest::Goodput(Box::new((target, credentials))))
            }
        })
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
