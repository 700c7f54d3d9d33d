//! What `goodput fleet` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::values::number::whole;
use crate::args::values::{percent, time, when};

const MATRIX_EXAMPLES: &str = "\
Examples:
    goodput fleet matrix                            # of all hosts
    goodput fleet matrix --mesh mesh.toml --cells";

const AGENT_EXAMPLE: &str = "\
Example:
    goodput fleet agent --nats tls://bus --creds b.creds --name berlin";

const RUN_EXAMPLES: &str = "\
Examples:
    goodput fleet run mesh.toml --nats nats://bus.example
    goodput fleet run mesh.toml --nats nats://bus.example --once

Exit codes: 0 each test has a record, 1 some have none, 2 the mesh could not be tested.";

/// `goodput fleet`
#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// Carry out the tests of one site that come over NATS
    ///
    /// The agent announces its site, and waits for tasks. No port stands open: for each test that another site calls for,
    /// it starts a server with one key and ends it afterwards. Whoever may write to the NATS account can have tests made.
    #[command(after_help = AGENT_EXAMPLE)]
    Agent(FleetAgentArgs),
    /// Have the agents of a mesh test its pairs, round by round
    ///
    /// The mesh is tested as often as its file says. NATS keeps what is done and what is not, so that another run goes on
    /// where one was ended or killed. Only one runs at a time; others wait. The history of this host keeps the records.
    #[command(after_help = RUN_EXAMPLES)]
    Run(FleetRunArgs),
    /// Plan the rounds in which a mesh is tested, and what they cost
    ///
    /// No host and no declared uplink is in two tests at once. goodput reads the file and sends nothing. docs/fleet.md
    /// describes the file.
    Plan(FleetPlanArgs),
    /// Show each pair of a mesh, and what explains the slow ones
    ///
    /// goodput reads the history, with the results that `goodput history import` took from other hosts. For each pair it
    /// shows the week up to the newest test. It tells slow senders, slow receivers and slow paths apart.
    #[command(after_help = MATRIX_EXAMPLES)]
    Matrix(FleetMatrixArgs),
}

/// How NATS is reached.
#[derive(Debug, Args)]
pub struct NatsArgs {
    /// NATS server with JetStream, like tls://bus.example:4222
    #[arg(long, value_name = "URL")]
    pub nats: String,
    /// File with the credentials of a NATS user, as nsc makes it
    #[arg(long, value_name = "FILE")]
    pub creds: Option<PathBuf>,
}

/// `goodput fleet agent`
#[derive(Debug, Args)]
pub struct FleetAgentArgs {
    #[command(flatten)]
    pub nats: NatsArgs,
    /// Name of this site, as in the mesh file
    #[arg(long, value_name = "SITE")]
    pub name: String,
    /// Longest test to take part in
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time::seconds)]
    pub max_duration: f64,
}

/// `goodput fleet run`
#[derive(Debug, Args)]
pub struct FleetRunArgs {
    /// Mesh file: sites, uplinks, pairs, budgets and windows (TOML)
    #[arg(value_name = "MESH.toml")]
    pub mesh: PathBuf,
    #[command(flatten)]
    pub nats: NatsArgs,
    /// Test the mesh once, whatever its file says
    #[arg(long)]
    pub once: bool,
}

/// `goodput fleet plan`
#[derive(Debug, Args)]
pub struct FleetPlanArgs {
    /// Mesh file: sites, uplinks, pairs, budgets and windows (TOML)
    #[arg(value_name = "MESH.toml")]
    pub mesh: PathBuf,
    /// Number of rounds to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole("a number of rounds", 0..=u32::MAX))]
    pub rounds: u32,
    /// Print the whole plan as JSON
    #[arg(long)]
    pub json: bool,
}

/// `goodput fleet matrix`
#[derive(Debug, Args)]
pub struct FleetMatrixArgs {
    /// Mesh file whose sites are the rows and columns [default: all hosts]
    #[arg(long, value_name = "MESH.toml")]
    pub mesh: Option<PathBuf>,
    /// Only results since this time (UTC), like 2026-11-24, or an age: 7d
    #[arg(long, value_name = "WHEN", default_value = "30d", value_parser = when::since)]
    pub since: String,
    /// How much slower than typical a slow pair is, at least
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent::tolerance)]
    pub slow: f64,
    /// Describe each pair, not only the slow ones
    #[arg(long)]
    pub cells: bool,
    /// Print the matrix and what explains it as JSON
    #[arg(long)]
    pub json: bool,
}
