//! `cargo xtask crowd`: what an honest client of a public server gets alone, and beside a crowd of strangers.
//!
//! All of it happens in two network namespaces of our own, joined by a veth pair. In each round the client
//! measures once alone and once beside the crowd, in random order, and what is compared is always of one round.
//! The crowd takes processor time on the same machine: what it costs the client is partly that.

mod strangers;

use std::fs;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rand::RngExt;
use serde_json::Value;

use crate::bench::contest::Place;
use crate::bench::net::{NEAR, Net, address, wait_for};
use crate::bench::stats::{Estimate, estimate};
use crate::shell::{cargo, command, root, run as run_command};
use strangers::{Crowd, NETWORK, Sizes};

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
const PORT: u16 = 5999;
/// Connections beyond those of the crowd that this process has open.
const OWN_FILES: u64 = 1000;
/// How long the server has to let go of a crowd that is gone.
const SETTLE: Duration = Duration::from_secs(1);

/// What one measurement gave.
#[derive(Debug, Clone, Copy)]
struct Got {
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
    raise_open_files(u64::from(options.idle) + u64::from(options.hostile) + OWN_FILES)?;
    let net = Net::new()?;
    let ip = |words: &str| run_command(command("ip").args(words.split(' ')));
    ip(&format!("route add local {NETWORK} dev lo table local"))?;
    let back = format!("route add {NETWORK} via {NEAR}");
    run_command(net.at_far_end("ip").args(back.split(' ')))?;
    let program = options.program.clone().unwrap_or_else(|| root().join("target/release/goodput"));
    let program =
        fs::canonicalize(&program).with_context(|| format!("there is no {}", program.display()))?;
    let mut server = Server::start(&net, &program)?;
    net.wait_for_listener(Place::Veth, &mut server.0, PORT)?;
    let rounds = (0..options.rounds).map(|_| round(options, &program, &server));
    let rounds = rounds.collect::<Result<Vec<_>>>()?;
    report(&rounds);
    println!("memory of the server: {} at most", megabytes(server.memory("VmHWM:")));
    Ok(())
}

/// One measurement alone and one beside the crowd.
fn round(options: &Options, program: &Path, server: &Server) -> Result<(Got, Got)> {
    let alone = || measure(options, program);
    let beside = || -> Result<Got> {
        let sizes = Sizes {
            idle: options.idle as usize,
            hostile: options.hostile as usize,
            datagrams_per_s: options.datagrams,
        };
        let before = server.memory("VmRSS:");
        let crowd = Crowd::come(SocketAddrV4::new(address(Place::Veth).parse()?, PORT), sizes)?;
        sleep(SETTLE);
        let got = measure(options, program)?;
        let (accepted, datagrams) =
            (crowd.accepted.load(Ordering::Relaxed), crowd.datagrams.load(Ordering::Relaxed));
        println!(
            "  the crowd: {accepted} proposals were accepted, {datagrams} datagrams sent; the server has {}, \
             before {}",
            megabytes(server.memory("VmRSS:")),
            megabytes(before)
        );
        drop(crowd);
        sleep(SETTLE);
        Ok(got)
    };
    let (alone, crowded) = if rand::rng().random::<bool>() {
        (alone()?, beside()?)
    } else {
        let crowded = beside()?;
        (alone()?, crowded)
    };
    println!("alone {alone:?}\nbeside {crowded:?}");
    Ok((alone, crowded))
}

fn measure(options: &Options, program: &Path) -> Result<Got> {
    let target = format!("{}:{PORT}", address(Place::Veth));
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
    Ok(Got { bits_per_s, connect_us: median("tcp_connect"), echo_us: median("udp_echo") })
}

fn report(rounds: &[(Got, Got)]) {
    let ratio = |of: &dyn Fn(&Got) -> Option<f64>| {
        let one = |(alone, beside): &(Got, Got)| Some(of(beside)? / of(alone)?);
        estimate(rounds.iter().filter_map(one))
    };
    println!("\nbeside the crowd, as a share of alone (median, interval of 95 %):");
    for (what, estimate) in [
        ("goodput", ratio(&|got| Some(got.bits_per_s))),
        ("time of a connection under load", ratio(&|got| got.connect_us)),
        ("time of an echo under load", ratio(&|got| got.echo_us)),
    ] {
        println!("{what}: {}", shown(estimate));
    }
}

fn shown(estimate: Option<Estimate>) -> String {
    match estimate {
        None => "not known".into(),
        Some(Estimate { median, interval: None }) => {
            format!("{median:.3}, too few rounds for an interval")
        }
        Some(Estimate { median, interval: Some((low, high)) }) => {
            format!("{median:.3} [{low:.3}, {high:.3}]")
        }
    }
}

/// Lets this process, and the server that it starts, open so many files.
fn raise_open_files(files: u64) -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    if maximum.is_some_and(|maximum| maximum < files) {
        bail!("this takes {files} open files; raise the hard limit (ulimit -Hn), or use --idle");
    }
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).context("open more files")
}

fn megabytes(bytes: Option<f64>) -> String {
    bytes.map_or("an unknown amount".into(), |bytes| format!("{:.1} MB", bytes / 1e6))
}

/// The server; it ends with us.
struct Server(Child);

impl Server {
    fn start(net: &Net, program: &Path) -> Result<Self> {
        let mut server = net.at_server(Place::Veth, &program.to_string_lossy());
        server.args(["serve", "--bind", address(Place::Veth), "--port", &PORT.to_string()]);
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(server.spawn().context("can't start the server")?))
    }

    /// A line of proc_pid_status(5), bytes.
    fn memory(&self, line: &str) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).ok()?;
        let found = status.lines().find_map(|text| text.strip_prefix(line))?;
        Some(found.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where this fails it has ended before.
        let _ = self.0.kill();
        let _ = wait_for("the server to end", || Ok(self.0.try_wait()?.is_some()));
    }
}
