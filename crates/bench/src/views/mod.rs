//! `cargo xtask views`: what it costs to look: a page of a long test, the list of a long history, every connection of a
//! host, a test on the whole terminal.
//!
//! Everything happens in network namespaces of our own. Each figure has a bound; the command fails if one is exceeded, so
//! run it on a quiet machine.

mod list;
mod live;
mod report;
mod terminal;
mod top;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::bench::net::Net;
use crate::bench::place::Place;
use crate::crowd::server::Server;
use crate::crowd::{SERVER_PORT, need_open_files};
use goodput_tools::shell::{cargo, root, run as run_command};

/// Options of `cargo xtask views`.
#[derive(clap::Args)]
pub struct Options {
    /// Look only at these; all if none is named.
    #[arg(value_enum)]
    only: Vec<View>,
    /// Minutes of the test of 64 flows that the page shows.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=60))]
    minutes: u32,
    /// Results in the history.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    results: u32,
    /// TCP sockets of the host, half of them senders.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..=50_000))]
    sockets: u32,
    /// Pairs of tests, with the view and without. Below 6 there is no 95 % interval.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds of each of these tests, and of the look at `top`.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=60))]
    seconds: u32,
    /// The goodput to look with instead of the build for packages (profile dist) made here; `examples/long_history` is
    /// beside it.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Set when we run again inside our own network namespace.
    #[arg(long, hide = true)]
    inside: bool,
}

/// A way to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum View {
    /// The page of a long test with many flows.
    Report,
    /// The pages of a long history.
    List,
    /// Every connection of a host.
    Top,
    /// A test on the whole terminal.
    Live,
}

const ALL: [View; 4] = [View::Report, View::List, View::Top, View::Live];

/// A measured figure.
struct Figure {
    /// What was measured, with its unit.
    what: String,
    value: f64,
    bound: Bound,
}

/// What a figure should be.
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Figure {
    fn at_most(what: impl Into<String>, value: f64, bound: f64) -> Self {
        Self { what: what.into(), value, bound: Bound::AtMost(bound) }
    }

    fn holds(&self) -> bool {
        match self.bound {
            Bound::AtMost(bound) => self.value <= bound,
            Bound::AtLeast(bound) => self.value >= bound,
        }
    }

    fn print(&self) {
        let Self { what, value, bound } = self;
        let bound = match bound {
            Bound::AtMost(bound) => format!("at most {bound}"),
            Bound::AtLeast(bound) => format!("at least {bound}"),
        };
        let verdict = if self.holds() { "holds" } else { "does not hold" };
        println!("{what}: {value:.3} ({bound}: {verdict})");
    }
}

/// What every view needs.
struct Stage<'a> {
    options: &'a Options,
    program: PathBuf,
    /// For files that are gone afterwards.
    folder: tempfile::TempDir,
    net: Net,
}

impl Stage<'_> {
    /// A server that answers until it is dropped, and lets a test last as long as the longest one here.
    fn serve(&self) -> Result<Server> {
        let longest = format!("{}m", self.options.minutes);
        let more = ["--max-duration", &longest];
        let mut server = Server::start(&self.net, &self.program, SERVER_PORT, &more)?;
        self.net.wait_for_listener(Place::Veth, server.child(), SERVER_PORT)?;
        Ok(server)
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Looks in all ways, and judges each figure.
pub fn run(options: &Options) -> Result<()> {
    if !options.inside {
        if options.program.is_none() {
            let build = ["build", "--profile", "dist", "--quiet", "--package"];
            run_command(cargo(build).arg("goodput"))?;
            run_command(cargo(build).args(["goodput-store", "--example", "long_history"]))?;
        }
        return crate::bench::enter_namespace();
    }
    need_open_files(u64::from(options.sockets) + 1000)?;
    let program = options.program.clone().unwrap_or_else(|| root().join("target/dist/goodput"));
    let program =
        fs::canonicalize(&program).with_context(|| format!("there is no {}", program.display()))?;
    let stage = Stage { options, program, folder: tempfile::tempdir()?, net: Net::new()? };
    let mut exceeded = Vec::new();
    for view in
        ALL.into_iter().filter(|view| options.only.is_empty() || options.only.contains(view))
    {
        let figures = match view {
            View::Report => report::figures(&stage)?,
            View::List => list::figures(&stage)?,
            View::Top => top::figures(&stage)?,
            View::Live => live::figures(&stage)?,
        };
        figures.iter().for_each(Figure::print);
        exceeded.extend(figures.into_iter().filter(|figure| !figure.holds()));
    }
    if exceeded.is_empty() {
        return Ok(());
    }
    let what: Vec<_> = exceeded.into_iter().map(|figure| figure.what).collect();
    bail!("beyond the bound on this machine: {}", what.join("; "))
}
