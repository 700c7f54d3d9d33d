//! What `goodput fleet` takes.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use goodput_fleet::SLOW_PERCENT;
use goodput_model::{BitRate, Bytes};
use goodput_remote::Address;

use crate::args::options::AccessArgs;
use crate::args::values::budget::budget;
use crate::args::values::number::whole;
use crate::args::values::{address, login, percent, rate, time, when};

const MATRIX_EXAMPLES: &str = "\
Examples:
    goodput fleet matrix                            # of all hosts
    goodput fleet matrix --mesh mesh.toml --cells";

const AGENT_EXAMPLES: &str = "\
Examples:
    goodput fleet agent --nats tls://bus --nkey a.site/login.nk --name a
    goodput fleet agent --nats nats://bus --name b --budget 20GB/day";

const KEYS_EXAMPLE: &str = "\
Example:
    goodput fleet keys mesh.toml -o keys";

const TEST_EXAMPLE: &str = "\
Example:
    goodput fleet test berlin paris --nats nats://bus.example

Exit codes: 0 there is a record, 1 there is none, 2 the test could not be asked for, or its record not saved.";

const RUN_EXAMPLES: &str = "\
Examples:
    goodput fleet run mesh.toml --nats nats://bus.example
    goodput fleet run mesh.toml --nats nats://bus.example --once

Exit codes: 0 each test has a record, 1 some have none, 2 the mesh could not be tested. One that tests the mesh again
and again ends with 0 if it is asked to.";

/// `goodput fleet`
#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// Carry out the tests of one site that come over NATS
    ///
    /// The agent announces its site, and waits for tasks. No port stands open: for each test that another site calls for,
    /// it starts a server with one key and ends it afterwards. It changes no settings. Without --trust, whoever may write to
    /// the NATS account can have tests made.
    #[command(after_help = AGENT_EXAMPLES)]
    Agent(FleetAgentArgs),
    /// Have the agents of a mesh test its pairs, round by round
    ///
    /// The mesh is tested as often as its file says. NATS keeps what is done and what is not, so that another run goes on
    /// where one was ended or killed. Only one runs at a time; others wait. The history of this host keeps the records.
    #[command(after_help = RUN_EXAMPLES)]
    Run(FleetRunArgs),
    /// Have two sites of a mesh test at once
    ///
    /// The test comes before all that the coordinator has not begun yet. If no coordinator runs, this command is one for
    /// this test. Ctrl-C takes it back, unless it has begun. The history of this host keeps the record.
    #[command(after_help = TEST_EXAMPLE)]
    Test(FleetTestArgs),
    /// Make the keys of a fleet, and NATS' configuration for them
    ///
    /// Each site and the coordinator get a key (nkey) with which they log in, and may use only the subjects that they need.
    /// The coordinator gets one more, with which it signs tasks. Keys that exist stay. Run it again when the mesh changes.
    #[command(after_help = KEYS_EXAMPLE)]
    Keys(FleetKeysArgs),
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
    ///
    /// Of a cluster, several servers with commas between them.
    #[arg(long, value_name = "URL")]
    pub nats: String,
    /// File with the credentials of a NATS user, as nsc makes it
    #[arg(long, value_name = "FILE")]
    pub creds: Option<PathBuf>,
    /// File with the seed of an nkey, as `goodput fleet keys` makes it
    #[arg(long, value_name = "FILE", conflicts_with = "creds")]
    pub nkey: Option<PathBuf>,
    /// Certificates (PEM) that may have signed the server's; requires TLS [default: those of this host]
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
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
    /// Highest rate of a test; `fleet run` keeps to it [default: any]
    ///
    /// A test that reaches it is limited by `server-limit`, and the matrix shows it as capped.
    #[arg(long, value_name = "RATE", value_parser = rate::positive)]
    pub max_rate: Option<BitRate>,
    /// Bytes that tests may cost in any 24 hours, both directions together [default: any]
    #[arg(long, value_name = "BYTES/day", value_parser = budget)]
    pub budget: Option<Bytes>,
    /// Sites to test with [default: all]
    #[arg(long, value_name = "SITE", num_args = 1.., value_delimiter = ',')]
    pub accept: Vec<String>,
    /// Hosts without an agent to log in to for a test [default: none]
    ///
    /// Those that the mesh file has as `ssh`, written alike. The agent starts a server there for each test, and ends it.
    #[arg(long, value_name = "[USER@]HOST[:PORT]", num_args = 1.., value_delimiter = ',', value_parser = login::login)]
    pub ssh: Vec<Address>,
    #[command(flatten)]
    pub access: AccessArgs,
    /// Refuse tasks that this key, or the one in this file, has not signed [default: coordinator.pub
    /// beside --nkey or --creds, if there is one]
    #[arg(long, value_name = "KEY|FILE")]
    pub trust: Option<String>,
}

/// `goodput fleet run`
#[derive(Debug, Args)]
pub struct FleetRunArgs {
    /// Mesh file: sites, uplinks, pairs, budgets and windows (TOML)
    #[arg(value_name = "MESH.toml")]
    pub mesh: PathBuf,
    #[command(flatten)]
    pub nats: NatsArgs,
    #[command(flatten)]
    pub signing: SigningArgs,
    /// Test the mesh once, whatever its file says
    #[arg(long)]
    pub once: bool,
    /// Stay when all is tested that is to be tested once
    ///
    /// For service managers that start again whatever ends: the mesh is then tested again only if its file has changed.
    /// Tests in between go on.
    #[arg(long)]
    pub stay: bool,
    /// Serve metrics of the fleet for Prometheus at this address
    ///
    /// Everyone who reaches the address can read them.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address::with_port)]
    pub metrics: Option<SocketAddr>,
}

/// How tasks are signed.
#[derive(Debug, Args)]
pub struct SigningArgs {
    /// File with the key that signs tasks [default: sign.nk beside --nkey or --creds, if there is one]
    #[arg(long, value_name = "FILE")]
    pub sign: Option<PathBuf>,
}

/// `goodput fleet test`
#[derive(Debug, Args)]
pub struct FleetTestArgs {
    /// Site that sends
    #[arg(value_name = "SENDER")]
    pub sender: String,
    /// Site that receives
    #[arg(value_name = "RECEIVER")]
    pub receiver: String,
    #[command(flatten)]
    pub nats: NatsArgs,
    #[command(flatten)]
    pub signing: SigningArgs,
    /// Mesh file with the sites [default: that of the newest `fleet run`]
    #[arg(long, value_name = "MESH.toml")]
    pub mesh: Option<PathBuf>,
    /// Length of the test [default: that of the mesh]
    #[arg(long, value_name = "TIME", value_parser = time::seconds)]
    pub duration: Option<f64>,
}

/// `goodput fleet keys`
#[derive(Debug, Args)]
pub struct FleetKeysArgs {
    /// Mesh file: sites, uplinks, pairs, budgets and windows (TOML)
    #[arg(value_name = "MESH.toml")]
    pub mesh: PathBuf,
    /// Directory for the keys
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
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
    #[arg(long, value_name = "PERCENT", default_value_t = SLOW_PERCENT, value_parser = percent::tolerance)]
    pub slow: f64,
    /// Describe each pair, not only the slow ones
    #[arg(long)]
    pub cells: bool,
    /// Print the matrix and what explains it as JSON
    #[arg(long)]
    pub json: bool,
}
