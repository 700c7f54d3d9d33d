//! `cargo xtask bench`: goodput beside iperf3, in two network namespaces joined by a veth pair.
//!
//! The contestants take turns in random order within each round, so that a machine that gets
//! slower for a while slows all of them; what is compared is always of one round.

mod contest;
mod net;
mod report;
mod stats;

use std::fs;
use std::os::unix::process::CommandExt;

use anyhow::{Result, bail};
use rand::seq::SliceRandom;

use crate::packages;
use crate::shell::{cargo, command, root, run as run_command};
use contest::{CONTESTANTS, Run};
use net::Net;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Options {
    /// Rounds; in each, every contestant runs once. Below 6 there is no 95 % interval.
    #[arg(long, default_value_t = 12)]
    rounds: u32,
    /// Seconds of each run.
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Set when we run again inside our own network namespace.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Measures and writes docs/performance.md.
pub fn run(options: &Options) -> Result<()> {
    if options.inside {
        return measure(options);
    }
    if packages::provide(packages::FOR_BENCH)?.failed > 0 {
        bail!("can't do without these packages");
    }
    run_command(&mut cargo(["build", "--release", "--quiet", "--package", "goodput"]))?;
    enter_namespace(options)
}

/// Goes on as the same program in a namespace of its own, which ends with us, however we end.
fn enter_namespace(options: &Options) -> Result<()> {
    let mut again = command("unshare");
    if !rustix::process::geteuid().is_root() {
        again.args(["--user", "--map-root-user"]);
    }
    again.arg("--net").arg(std::env::current_exe()?).args(["bench", "--inside"]);
    again.args(["--rounds", &options.rounds.to_string()]);
    again.args(["--seconds", &options.seconds.to_string()]);
    Err(again.exec().into())
}

fn measure(options: &Options) -> Result<()> {
    let load = fs::read_to_string("/proc/loadavg")?;
    let net = Net::new()?;
    let mut rounds = Vec::new();
    for number in 1..=options.rounds {
        println!("round {number} of {}", options.rounds);
        rounds.push(round(&net, options.seconds)?);
    }
    let page = report::page(&rounds, options.seconds, &load)?;
    print!("\n{page}");
    fs::write(root().join("docs/performance.md"), page)?;
    Ok(())
}

/// Runs every contestant once, in random order; the results in the order of the contestants.
fn round(net: &Net, seconds: u32) -> Result<Vec<Run>> {
    let mut order: Vec<usize> = (0..CONTESTANTS.len()).collect();
    order.shuffle(&mut rand::rng());
    let mut runs = Vec::new();
    for index in order {
        let contestant = &CONTESTANTS[index];
        let run = contest::run(contestant, net, seconds)?;
        println!("  {:<32} {:>6.2} Gbit/s", contestant.name, run.bits_per_s / 1e9);
        runs.push((index, run));
    }
    runs.sort_by_key(|(index, _)| *index);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}
