//! `cargo xtask soak`: one server, random clients of every protocol and a crowd of hostile clients, for a while; and whether
//! the server's memory, descriptors or threads grow.
//!
//! Everything happens in network namespaces of our own. Clients come and go in cycles. At the end of each cycle nobody
//! is there, and the server's remaining resources are read: growth from one such moment to the next is a leak.

mod clients;
mod trend;

use std::fs;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::net::{NEAR, Net, address};
use crate::bench::place::Place;
use crate::crowd::hostile::{Crowd, NETWORK, Sizes};
use crate::crowd::server::Server;
use crate::crowd::{SERVER_PORT, need_open_files};
use clients::Clients;
use goodput_tools::shell::{cargo, command, root, run as run_command};
use trend::Trend;

/// Options of `cargo xtask soak`.
#[derive(clap::Args)]
pub struct Options {
    /// How long, minutes.
    #[arg(default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// Honest clients at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=64))]
    clients: u32,
    /// The goodput to soak instead of the release build made here.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Set when we run again inside our own network namespace.
    #[arg(long, hide = true)]
    inside: bool,
}

/// How long clients come in each cycle.
const CYCLE_TIME: Duration = Duration::from_secs(20);
/// How long the server has to release them: longer than its event loops keep an idle thread, 10 s (tokio's
/// `thread_keep_alive`).
const SETTLE_TIME: Duration = Duration::from_secs(12);
/// The crowd of each cycle. The flood is slower than a CPU can send, so that others get to run.
const SIZES: Sizes = Sizes { idle: 300, hostile: 30, datagrams_per_s: 1000 };
/// Files that this process has open.
const OWN_DESCRIPTORS: u64 = 4000;
/// How far a server may differ from one quiet moment to the next only because of the allocator's pages, as a share of
/// its resources.
const NOISE_SHARE: f64 = 0.05;

/// The server's resources while nobody is there.
#[derive(Debug, Clone, Copy)]
struct Quiet {
    minutes: f64,
    memory_bytes: f64,
    descriptors: f64,
    threads: f64,
}

/// Lets clients come and go, and judges what remains.
pub fn run(options: &Options) -> Result<()> {
    if !options.inside {
        if options.program.is_none() {
            run_command(&mut cargo(["build", "--release", "--quiet", "--package", "goodput"]))?;
        }
        return crate::bench::enter_namespace();
    }
    need_open_files(OWN_DESCRIPTORS)?;
    let net = Net::new()?;
    run_command(command("ip").args(["route", "add", "local", NETWORK, "dev", "lo"]))?;
    run_command(net.at_far_end("ip").args(["route", "add", NETWORK, "via", NEAR]))?;
    let program = options.program.clone().unwrap_or_else(|| root().join("target/release/goodput"));
    let program =
        fs::canonicalize(&program).with_context(|| format!("there is no {}", program.display()))?;
    let protocols = ["--protocols", "goodput,iperf2,iperf3,nuttcp,ttcp"];
    let mut server = Server::start(&net, &program, SERVER_PORT, &protocols)?;
    net.wait_for_listener(Place::Veth, server.child(), SERVER_PORT)?;
    let began = Instant::now();
    let until = began + Duration::from_secs(options.minutes * 60);
    let mut quiet = Vec::new();
    println!("minute  memory  descriptors  threads  measured  failed  killed");
    while Instant::now() < until {
        let crowd =
            Crowd::come(SocketAddrV4::new(address(Place::Veth).parse()?, SERVER_PORT), SIZES)?;
        let came = Clients { program: &program, workers: options.clients }.come(CYCLE_TIME);
        drop(crowd);
        sleep(SETTLE_TIME);
        if let Some(status) = server.child().try_wait()? {
            bail!("the server ended with {status}");
        }
        let now = look(&server, began)?;
        let megabytes = now.memory_bytes / 1e6;
        println!(
            "{:6.1}  {megabytes:5.1}M  {:11}  {:7}  {:8}  {:6}  {:6}",
            now.minutes, now.descriptors, now.threads, came.measured, came.failed, came.killed
        );
        quiet.push(now);
    }
    judge(&quiet)
}

fn look(server: &Server, began: Instant) -> Result<Quiet> {
    let count = |what: &str| -> Result<f64> {
        let folder = format!("/proc/{}/{what}", server.id());
        Ok(fs::read_dir(&folder).with_context(|| format!("read {folder}"))?.count() as f64)
    };
    Ok(Quiet {
        minutes: began.elapsed().as_secs_f64() / 60.0,
        memory_bytes: server.memory("VmRSS:").context("the server's memory can't be read")?,
        descriptors: count("fd")?,
        threads: count("task")?,
    })
}

/// Fails if anything grows. The first third does not count: the allocator keeps memory that it once needed.
fn judge(quiet: &[Quiet]) -> Result<()> {
    let settled = &quiet[quiet.len() / 3..];
    let minutes: Vec<_> = settled.iter().map(|quiet| quiet.minutes).collect();
    let mut grows = Vec::new();
    for (what, of) in [
        ("memory, bytes", (|quiet| quiet.memory_bytes) as fn(&Quiet) -> f64),
        ("descriptors", |quiet| quiet.descriptors),
        ("threads", |quiet| quiet.threads),
    ] {
        let values: Vec<_> = settled.iter().map(of).collect();
        let Some(trend) = Trend::of(&minutes, &values) else {
            bail!("{} quiet moments are too few to judge; let it run for longer", settled.len());
        };
        println!(
            "{what}: median {:.0}, {:+.1} an hour, p = {:.3}",
            trend.median,
            trend.slope * 60.0,
            trend.p
        );
        if trend.grows_by_more_than(NOISE_SHARE) {
            grows.push(what);
        }
    }
    if grows.is_empty() {
        return Ok(());
    }
    bail!("grows while nobody is there: {}", grows.join("; "))
}
