//! `cargo xtask crowd`: the throughput of an honest client of a public server, alone and beside a crowd of hostile clients.
//!
//! Everything happens in two network namespaces of our own, joined by a veth pair. In each round the client measures
//! three times, in random order: alone; while the crowd is at another server of the same host; and while the crowd is
//! at the client's own server. Only runs of the same round are compared. In the last two, the crowd takes the same
//! processor time of the machine. The difference between them is therefore what hostile clients take from a client by sharing
//! its server. The difference to "alone" includes the load of the whole machine.

pub mod hostile;
pub mod server;

use std::fs;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rand::seq::SliceRandom;
use serde_json::Value;

use crate::bench::net::{NEAR, Net, address};
use crate::bench::place::Place;
use crate::bench::stats::{Estimate, estimate};
use goodput_tools::shell::{cargo, command, root, run as run_command};
use hostile::{Crowd, NETWORK, Sizes};
use server::Server;

/// Options of `cargo xtask crowd`.
#[derive(clap::Args)]
pub struct Options {
    /// Rounds. Below 6 there is no 95 % interval.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=30))]
    seconds: u32,
    /// Idle connections.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=30_000))]
    idle: u32,
    /// Clients that propose large measurements and send nothing.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(0..=4000))]
    hostile: u32,
    /// Datagrams of the flood, each second.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    datagrams: u32,
    /// Bounds the honest client, so that it does not take all of the machine; 0 leaves it free.
    #[arg(long, default_value = "0", value_name = "RATE")]
    rate: String,
    /// The goodput to measure instead of the release build made here.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Set when we run again inside our own network namespace.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Where the server listens.
pub const SERVER_PORT: u16 = 5999;
/// Where the other server listens.
const OTHER_PORT: u16 = 5998;
/// The protocols of both servers: the ports of other protocols can't be used twice, and every port recognizes their
/// first bytes.
const ONLY_OWN: &[&str] = &["--protocols", "goodput,iperf2=0"];
/// Connections beyond those of the crowd that this process has open.
const OWN_DESCRIPTORS: u64 = 1000;
/// How long the server has to release a crowd that is gone.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// The result of one measurement.
#[derive(Debug, Clone, Copy)]
struct MeasuredClient {
    bits_per_s: f64,
    connect_us: Option<f64>,
    echo_us: Option<f64>,
}

/// Measures and prints the ratios.
pub fn run(options: &Options) -> Result<()> {
    if !options.inside {
        if options.program.is_none() {
            run_command(&mut cargo(["build", "--release", "--quiet", "--package", "goodput"]))?;
        }
        return crate::bench::enter_namespace();
    }
    need_open_files(u64::from(options.idle) + u64::from(options.hostile) + OWN_DESCRIPTORS)?;
    let net = Net::new()?;
    let ip = |words: &str| run_command(command("ip").args(words.split(' ')));
    ip(&format!("route add local {NETWORK} dev lo table local"))?;
    let back = format!("route add {NETWORK} via {NEAR}");
    run_command(net.at_far_end("ip").args(back.split(' ')))?;
    let program = options.program.clone().unwrap_or_else(|| root().join("target/release/goodput"));
    let program =
        fs::canonicalize(&program).with_context(|| format!("there is no {}", program.display()))?;
    let other = Server::start(&net, &program, OTHER_PORT, ONLY_OWN)?;
    let mut server = Server::start(&net, &program, SERVER_PORT, ONLY_OWN)?;
    net.wait_for_listener(Place::Veth, server.child(), SERVER_PORT)?;
    let all = Servers { program: &program, own: &server, other: &other };
    let rounds = (0..options.rounds).map(|_| all.round(options)).collect::<Result<Vec<_>>>()?;
    report(&rounds);
    println!("memory of the server: {} at most", megabytes(server.memory("VmHWM:")));
    Ok(())
}

/// Where the crowd is while the client measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    Alone,
    Elsewhere,
    Beside,
}

/// The client's results in each arm of a round.
struct Round {
    alone: MeasuredClient,
    elsewhere: MeasuredClient,
    beside: MeasuredClient,
}

struct Servers<'a> {
    program: &'a Path,
    own: &'a Server,
    other: &'a Server,
}

impl Servers<'_> {
    fn round(&self, options: &Options) -> Result<Round> {
        let mut order = [Arm::Alone, Arm::Elsewhere, Arm::Beside];
        order.shuffle(&mut rand::rng());
        let mut got = [None; 3];
        for arm in order {
            let one = self.arm(options, arm)?;
            println!("{arm:?}: {one:?}");
            got[arm as usize] = Some(one);
        }
        let [Some(alone), Some(elsewhere), Some(beside)] = got else { bail!("an arm is missing") };
        Ok(Round { alone, elsewhere, beside })
    }

    fn arm(&self, options: &Options, arm: Arm) -> Result<MeasuredClient> {
        let (port, server) = match arm {
            Arm::Alone => return measure(options, self.program),
            Arm::Elsewhere => (OTHER_PORT, self.other),
            Arm::Beside => (SERVER_PORT, self.own),
        };
        let sizes = Sizes {
            idle: options.idle as usize,
            hostile: options.hostile as usize,
            datagrams_per_s: options.datagrams,
        };
        let before = server.memory("VmRSS:");
        let crowd = Crowd::come(SocketAddrV4::new(address(Place::Veth).parse()?, port), sizes)?;
        sleep(SETTLE_TIME);
        let got = measure(options, self.program)?;
        let (accepted, datagrams) =
            (crowd.accepted.load(Ordering::Relaxed), crowd.datagrams.load(Ordering::Relaxed));
        println!(
            "  the crowd: {accepted} proposals were accepted, {datagrams} datagrams sent; its server has {}, \
             before {}",
            megabytes(server.memory("VmRSS:")),
            megabytes(before)
        );
        drop(crowd);
        sleep(SETTLE_TIME);
        Ok(got)
    }
}

fn measure(options: &Options, program: &Path) -> Result<MeasuredClient> {
    let target = format!("{}:{SERVER_PORT}", address(Place::Veth));
    let seconds = options.seconds.to_string();
    let mut client = Net::at_client(Place::Veth, &program.to_string_lossy());
    client.args(["test", &target, "--json", "--no-store", "--latency", "-t", &seconds]);
    if options.rate != "0" {
        client.args(["--rate", &options.rate]);
    }
    let output = client.output().context("can't start the client")?;
    let record: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("the honest client was not served: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let bits_per_s = record["result"]["goodput_bits_per_s"].as_f64().context("no goodput")?;
    let median = |way: &str| record["latency"][way]["loaded"]["p50_us"].as_f64();
    Ok(MeasuredClient {
        bits_per_s,
        connect_us: median("tcp_connect"),
        echo_us: median("udp_echo"),
    })
}

fn report(rounds: &[Round]) {
    println!("\nmedian, interval of 95 %:");
    for (than, before) in [
        (
            "with the crowd at another server",
            (|round| round.elsewhere) as fn(&Round) -> MeasuredClient,
        ),
        ("alone", |round| round.alone),
    ] {
        let ratio = |of: &dyn Fn(&MeasuredClient) -> Option<f64>| {
            let one = |round: &Round| Some(of(&round.beside)? / of(&before(round))?);
            estimate(rounds.iter().filter_map(one))
        };
        println!("beside the crowd, as a share of {than}:");
        for (what, estimate) in [
            ("goodput", ratio(&|got| Some(got.bits_per_s))),
            ("time of a connection under load", ratio(&|got| got.connect_us)),
            ("time of an echo under load", ratio(&|got| got.echo_us)),
        ] {
            println!("  {what}: {}", shown(estimate));
        }
    }
}

fn shown(estimate: Option<Estimate>) -> String {
    match estimate {
        None => "unknown".into(),
        Some(Estimate { median, interval: None }) => {
            format!("{median:.3}, too few rounds for an interval")
        }
        Some(Estimate { median, interval: Some((low, high)) }) => {
            format!("{median:.3} [{low:.3}, {high:.3}]")
        }
    }
}

/// Lets this process, and the server that it starts, open as many files as they may; an error if that is less than
/// `files`.
pub fn need_open_files(files: u64) -> Result<()> {
    let most = goodput_mover::raise_open_files().context("open more files")?;
    if most.is_some_and(|most| most < files) {
        bail!("this takes {files} open files; raise the hard limit (ulimit -Hn), or use --idle");
    }
    Ok(())
}

fn megabytes(bytes: Option<f64>) -> String {
    bytes.map_or("an unknown amount".into(), |bytes| format!("{:.1} MB", bytes / 1e6))
}
