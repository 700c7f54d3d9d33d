//! `cargo xtask bench`: goodput compared with its peers, in two network namespaces joined by a veth pair and on
//! loopback.
//!
//! The contestants take turns in random order within each round, so that a machine that slows down for a while slows
//! all of them; only values of the same round are compared.

pub mod contest;
mod contests;
mod kept;
mod load;
mod machine;
mod measure;
pub mod net;
mod page;
mod peers;
pub mod place;
mod programs;
mod run;
mod schedule;
mod stage;
pub mod stats;
mod steal;
mod version;
mod watch;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use contest::Contest;
use goodput_tools::packages;
use goodput_tools::shell::{cargo, command, root, run as run_command};
use kept::{Kept, ResultLog};
use machine::{Asked, Machine};
use net::Net;
use peers::GivenPeer;
use schedule::Schedule;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Options {
    /// Rounds; in each, every contestant runs once. Below 6 there is no 95 % interval.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Most rounds: a contest goes on while an interval lies on both sides of its goal.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1000))]
    most_rounds: u32,
    /// Another peer, beside Debian's of the same name; netperf (with its netserver beside it) and neper (its
    /// tcp_stream) take part only so.
    #[arg(long, value_name = "NAME=FILE")]
    peer: Vec<String>,
    /// The congestion control of the veth link and the loopback device [default: the host's].
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Seconds of each run.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Only contests whose id begins so; docs/performance.md is not written then.
    #[arg(long, value_name = "CONTEST")]
    only: Vec<String>,
    /// The goodput to measure instead of the build for packages (profile dist) made here.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Keep what each run gave, one JSON line a run, in this file [default: target/bench.jsonl,
    /// with --only nowhere].
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Run nothing: make the page of what an earlier bench kept in this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["program", "keep", "rounds", "most_rounds", "seconds", "peer", "congestion"])]
    from: Option<PathBuf>,
    /// Set when we run again inside our own network namespace.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Measures and writes docs/performance.md.
pub fn run(options: &Options) -> Result<()> {
    let contests = chosen(&options.only)?;
    if let Some(file) = &options.from {
        return publish(options, &contests, &Kept::read(file)?);
    }
    if options.inside {
        return publish(options, &contests, &measure(options, &contests)?);
    }
    given(options)?;
    if let Some(needs) = packages::provide(packages::FOR_BENCH)? {
        bail!("{needs}");
    }
    if options.program.is_none() {
        run_command(&mut cargo(["build", "--profile", "dist", "--quiet", "--package", "goodput"]))?;
    }
    enter_namespace()
}

fn chosen(only: &[String]) -> Result<Vec<&'static Contest>> {
    let begins = |contest: &Contest| only.iter().any(|only| contest.id.starts_with(only));
    let all = contests::ALL.iter().copied();
    let chosen: Vec<_> = all.filter(|contest| only.is_empty() || begins(contest)).collect();
    if chosen.is_empty() {
        let ids: Vec<_> = contests::ALL.iter().map(|contest| contest.id).collect();
        bail!("no contest begins with {}; there are {}", only.join(" or "), ids.join(", "));
    }
    Ok(chosen)
}

/// Continues as the same program, with the same arguments, in its own namespace, which disappears with this process,
/// however it ends.
pub fn enter_namespace() -> Result<()> {
    let mut again = command("unshare");
    if !rustix::process::geteuid().is_root() {
        again.args(["--user", "--map-root-user"]);
    }
    again.current_dir(std::env::current_dir()?);
    again.arg("--net").arg(std::env::current_exe()?);
    again.args(std::env::args_os().skip(1)).arg("--inside");
    Err(again.exec().into())
}

fn measure(options: &Options, contests: &[&'static Contest]) -> Result<Kept> {
    let goodput = goodput(options)?;
    let build = if options.program.is_some() { "given by --program" } else { "profile dist" };
    let given = given(options)?;
    let congestion = options.congestion.as_deref();
    let asked = Asked { seconds: options.seconds, peers: &given, congestion };
    let machine = Machine::read(&goodput, build, &asked)?;
    let keep = match (&options.keep, options.only.is_empty()) {
        (None, true) => Some(root().join("target/bench.jsonl")),
        (keep, _) => keep.clone(),
    };
    let mut keeper = ResultLog::create(keep.as_deref())?;
    let net = Net::new()?;
    congestion.map_or(Ok(()), |name| net.set_congestion(name))?;
    let schedule = Schedule {
        contests,
        rounds: options.rounds,
        most_rounds: options.most_rounds.max(options.rounds),
        seconds: options.seconds,
        given: &given,
    };
    schedule.carry_out(&net, &goodput, machine, &mut keeper)
}

/// The peers given; a wrong one is refused before anything runs.
fn given(options: &Options) -> Result<Vec<GivenPeer>> {
    let parse =
        |text: &String| GivenPeer::parse(text).with_context(|| format!("can't use --peer {text}"));
    let given: Vec<_> = options.peer.iter().map(parse).collect::<Result<_>>()?;
    peers::check_names(&given)?;
    Ok(given)
}

/// The goodput under test, by its full path: servers start in another folder.
fn goodput(options: &Options) -> Result<PathBuf> {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = root().join(chosen.unwrap_or_else(|| "target".into()));
    let program = options.program.clone().unwrap_or_else(|| target.join("dist/goodput"));
    fs::canonicalize(&program).with_context(|| format!("there is no {}", program.display()))
}

/// Writes the page, or prints it if it does not cover all contests.
fn publish(options: &Options, contests: &[&'static Contest], kept: &Kept) -> Result<()> {
    let page = page::page(kept, contests)?;
    if options.only.is_empty() {
        write(&root().join("docs/performance.md"), &page)?;
        print!("\n{}", page::summary(kept, contests)?);
    } else {
        print!("\n{page}");
    }
    Ok(())
}

fn write(path: &Path, page: &str) -> Result<()> {
    fs::write(path, page).with_context(|| format!("write {}", path.display()))
}
