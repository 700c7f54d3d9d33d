//! The options of each verb.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use clap_complete::Shell;
use goodput_model::{BitRate, Bytes, SettingRef};

use goodput_engine::AttachTo;
use goodput_engine::serve::Allowed;
use goodput_settings::others::Pattern;
use goodput_wire::network::Network;

use super::find_rate::FindRateArgs;
use super::format::{FormatArgs, ServedFormatArgs};
use super::local::LocalAddress;
use super::measure::{MeasureArgs, OutputArgs, seconds};
use super::spoken::Spoken;
use crate::formats::Format;

/// `goodput serve`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("proof").multiple(true))]
pub struct ServeArgs {
    /// Local address, a link-local one with its device: fe80::1%eth0 [default: all, IPv6 and IPv4]
    #[arg(long, value_name = "ADDRESS[%DEVICE]")]
    pub bind: Option<LocalAddress>,
    /// Goodput's own port, where all protocols are answered; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = goodput_wire::protocols::goodput::PROTOCOL.port)]
    pub port: u16,
    /// What to answer, each also on its usual port, or on the one named [default: all; on their usual
    /// ports only where --port is not changed]
    #[arg(long, value_name = "NAME[=PORT],…", value_delimiter = ',')]
    pub protocols: Vec<Spoken>,
    /// Fail where a usual port is taken, instead of serving the others
    #[arg(long)]
    pub strict: bool,
    /// One measurement at a time, over all protocols: others are told that the server is busy, or
    /// wait in a queue for as long as their protocol lets them
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "busy")]
    pub exclusive: Option<Others>,
    /// Leave after the first client that made a measurement
    #[arg(long)]
    pub one_off: bool,
    #[command(flatten)]
    pub format: ServedFormatArgs,
    /// Say this, in place of where it listens, once it does
    #[arg(long, value_name = "TEXT", hide = true)]
    pub announce: Option<String>,
    /// File with the token that clients may share: 32 hexadecimal digits, as `openssl rand -hex 16`
    /// prints them
    #[arg(long, value_name = "FILE", env = "GOODPUT_TOKEN_FILE", group = "proof")]
    pub token_file: Option<PathBuf>,
    /// Know these clients by keys of their own: a file with a line NAME ROLE KEY for each, as `goodput key`
    /// prints it. It is read again when it changes. With it the token only lets clients measure
    #[arg(long, value_name = "FILE", group = "proof")]
    pub authorized_keys: Option<PathBuf>,
    /// Private key by which these clients know this server [default: server.key in the state directory, made
    /// on first use]
    #[arg(long, value_name = "FILE", requires = "authorized_keys")]
    pub key: Option<PathBuf>,
    /// Let clients with the token, or with a key of role settings, read and change these settings of this
    /// host while they are connected, within the bounds that `goodput list far-settings` prints: names like
    /// sysctl.net.ipv4.tcp_rmem or offload.*@eth0, where * stands for any characters. May be given
    /// several times [default: none]
    #[arg(long, value_name = "PATTERN", requires = "proof")]
    pub allow_settings: Vec<Pattern>,
    /// Refuse clients that prove neither the token nor a key, whatever their protocol; users of --users-file
    /// are let in as well
    #[arg(long, alias = "require-token", requires = "proof")]
    pub require_credential: bool,
    /// Refuse clients that prove neither a name with its password (iperf3's can) nor the token: a file
    /// with NAME,HASH lines, like iperf3's --authorized-users-path
    #[arg(long, value_name = "FILE", requires = "rsa_private_key")]
    pub users_file: Option<PathBuf>,
    /// Private key of 2048 bits or more, in PEM, for which these clients encrypt their passwords
    #[arg(long, value_name = "FILE", requires = "users_file")]
    pub rsa_private_key: Option<PathBuf>,
    /// Expect passwords from iperf3 before 3.17, which pads them in an older, weaker way. Logins padded
    /// the newer way are refused then
    #[arg(long, requires = "users_file")]
    pub pkcs1_padding: bool,
    /// Tell clients nothing of this host: not its facts, nor what it counts, beyond what the other
    /// programs' protocols can't do without
    #[arg(long)]
    pub private: bool,
    /// Send files of this directory, and of those beneath it, to clients that ask for them (--reverse
    /// --source)
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// Let clients make and replace files in this directory (--sink); give it a disk of its own
    #[arg(long, value_name = "DIR")]
    pub sinks: Option<PathBuf>,
    /// Largest file that a flow makes there
    #[arg(long, value_name = "BYTES", default_value = "1G")]
    pub max_sink: Bytes,
    /// Most that all files there take together, with what is there already; one that is replaced or
    /// removed makes room
    #[arg(long, value_name = "BYTES", default_value = "10G")]
    pub max_sink_total: Bytes,
    /// Talk to these addresses only. Of several networks that hold an address, the one with the most bits
    /// decides, here and in --deny
    #[arg(long, value_name = "NETWORK/BITS,…", value_delimiter = ',')]
    pub allow: Vec<Network>,
    /// Don't talk to these addresses; decides over --allow where both name the same network
    #[arg(long, value_name = "NETWORK/BITS,…", value_delimiter = ',')]
    pub deny: Vec<Network>,
    /// Most that one client gets of everything that all share: measurements, memory, descriptors, threads
    /// and --max-total-rate. A client is an IPv4 address or an IPv6 network of 64 bits. The networks
    /// around it (IPv4: 24 bits; IPv6: 56 and 48) get more, yet not all; and all whose flows have not come
    /// get half
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub client_share: u8,
    /// Measurements at the same time
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub max_clients: u32,
    /// Connections of one address that have not proven themselves as flows, at the same time
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: u32,
    /// Longest measurement, seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub max_duration: f64,
    /// Highest rate this host sends or receives for one client, each direction. All measurements of the client
    /// share it
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<BitRate>,
    /// Highest rate of all measurements together, each direction. They share it
    #[arg(long, value_name = "RATE")]
    pub max_total_rate: Option<BitRate>,
    /// End a measurement whose payload is slower than this for 30 s; 0 ends none. Of one that asks for a
    /// lower rate, half of that is expected
    #[arg(long, value_name = "RATE", default_value = "1kbit")]
    pub min_progress: BitRate,
    /// Flows of one measurement, both directions together
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_flows: u16,
    /// Largest chunk: each flow keeps one in memory
    #[arg(long, value_name = "BYTES", default_value = "16M")]
    pub max_chunk: Bytes,
    /// Largest socket buffer a client may ask for, 1G at most
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = buffer)]
    pub max_buffer: Bytes,
    /// Highest DSCP a client may ask for. Networks keep 48 and above for their own control
    #[arg(long, value_name = "DSCP", default_value_t = 47, value_parser = clap::value_parser!(u8).range(..=63))]
    pub max_dscp: u8,
    /// Let nuttcp clients have this host measure with these servers in their stead (`nuttcp A B`); a
    /// network stands for all its addresses, and a name for itself. Nobody else is connected to
    #[arg(long, value_name = "HOST[:PORT]|NETWORK/BITS,…", value_delimiter = ',')]
    pub third_party: Vec<Allowed>,
    /// Who answers if root starts the server: it becomes this user before it answers anybody, and gives
    /// up all capabilities [default: goodput, if there is such a user, else nobody]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Stay who you are, with every file and system call: for debugging
    #[arg(long, conflicts_with = "user")]
    pub no_sandbox: bool,
    /// Send UDP payload to iperf2 clients that ask for it (-u with -R, -d, -r or --full-duplex).
    /// Their protocol proves no address: anyone who can forge an address can aim this host's traffic
    /// at it
    #[arg(long)]
    pub allow_unproven_udp: bool,
}

/// A socket buffer: the kernel takes no larger ones (`sk_setsockopt`, net/core/sock.c, holds it to half of
/// what an `int` holds).
fn buffer(text: &str) -> Result<Bytes, String> {
    let bytes = text.parse::<Bytes>().map_err(|why| why.to_string())?;
    if bytes.0 <= 1 << 30 {
        Ok(bytes)
    } else {
        Err("the kernel gives a socket no more than 1G".into())
    }
}

/// What happens to a measurement while another one is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Others {
    /// It is told that the server is busy
    Busy,
    /// It waits for its turn; where payload comes unasked, it is told that the server is busy
    Queue,
}

/// What makes no sense where goodput moves nothing.
const ATTACH_EXCLUDES: [&str; 31] = [
    "latency",
    "target",
    "udp",
    "reverse",
    "both",
    "flows",
    "bytes",
    "rate",
    "burst",
    "mover",
    "pin",
    "chunk",
    "bind",
    "source_port",
    "mptcp",
    "device",
    "ipv4",
    "ipv6",
    "mss",
    "sndbuf",
    "rcvbuf",
    "congestion",
    "nodelay",
    "max_pacing",
    "dscp",
    "dont_fragment",
    "source",
    "size",
    "sink",
    "header",
    "cork",
];

/// What the longer help of `goodput test` adds.
const TEST_HELP: &str = "\
Attached (--attach), goodput moves nothing: it watches another program's TCP connections from this end, \
by what the kernel shows of them to anybody, and ends early where the transfer does. It needs no root \
for programs of the same user; without it, others' CPU time and limits stay unknown. UDP and other \
network namespaces can't be seen. Of several transfers at once, name one by a port of its own.

Probes (--probe) follow where the best two causes look alike to the kernel's counters. Each is one run \
of 2.5 s that changes one thing: segmentation offload off, half the window, pacing at 80 % of the rate, \
small segments, four times the flows, another congestion control, UDP above the rate, or the direction \
turned round. The record keeps each with its numbers.";

/// `goodput test`
#[derive(Debug, Args)]
#[command(after_long_help = TEST_HELP)]
pub struct TestArgs {
    /// Who is at the other end: HOST, HOST:PORT or SCHEME://HOST
    #[arg(required_unless_present = "attach")]
    pub target: Option<String>,
    /// Watch a TCP transfer of another program instead, with no traffic of our own: its process id, or
    /// the port of either end; pid:N or port:N where a number is both
    #[arg(long, value_name = "PID|PORT", conflicts_with_all = ATTACH_EXCLUDES)]
    pub attach: Option<AttachTo>,
    #[command(flatten)]
    pub measure: MeasureArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub find_rate: FindRateArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Where the best two causes look alike, run the short probes that split them, then give the
    /// verdict; a probe may change a setting of this host for its run, and puts it back
    #[arg(long, conflicts_with_all = ["attach", "both", "udp", "no_observe"])]
    pub probe: bool,
    /// Also show which rules could not decide, and why
    #[arg(long)]
    pub undecided: bool,
}

/// `goodput compare`
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Who is at the other end: HOST, HOST:PORT or SCHEME://HOST
    pub target: String,
    /// [far:]NAME[@SCOPE]=A,B,…: the first value is the baseline; several settings are combined
    #[arg(required = true, value_name = "SETTING=A,B")]
    pub factors: Vec<String>,
    /// Compare for each of these sizes: of a file in memory, or of the beginning of --source
    #[arg(long, help_heading = "Files", value_name = "BYTES,…", value_delimiter = ',', conflicts_with_all = ["size", "bytes", "time"])]
    pub sizes: Vec<Bytes>,
    /// Compare for each of these numbers of clients at once, a flow each
    #[arg(long, help_heading = "Files", value_name = "N,…", value_delimiter = ',', conflicts_with = "flows",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub clients: Vec<u16>,
    #[command(flatten)]
    pub measure: MeasureArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Stop when every difference is known to this, percent
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = seconds)]
    pub precision: f64,
    /// Smallest difference that counts, percent
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = seconds)]
    pub threshold: f64,
    /// Stop after this many seconds at the latest
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub max_time: f64,
    /// Number that the order of the runs comes from [default: random]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// `goodput check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Network devices [default: all hardware that is up, and what the default routes use]
    #[arg(value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Watch the counters and the CPUs' wake-ups for so long; without it only what stands still is
    /// told
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub watch: Option<f64>,
    /// Print the JSON report
    #[arg(long)]
    pub json: bool,
    /// Also show which checks could not tell, and why
    #[arg(long)]
    pub undecided: bool,
}

/// `goodput settings`
#[derive(Debug, Subcommand)]
pub enum Settings {
    /// What can be changed
    List,
    /// Print the effective value
    Get {
        /// NAME[@SCOPE]
        setting: SettingRef,
    },
    /// Change a setting of this host until the next boot
    Set {
        /// NAME[@SCOPE]=VALUE
        #[arg(value_name = "SETTING=VALUE")]
        assignment: String,
    },
    /// Print the files that make values survive a reboot; writes none of them
    Save {
        /// [far:]NAME[@SCOPE]=VALUE
        #[arg(required = true, value_name = "SETTING=VALUE")]
        assignments: Vec<String>,
    },
    /// Put back what an interrupted run left changed
    Undo {
        /// Also give up changes in network namespaces that no longer exist
        #[arg(long)]
        forget: bool,
        /// The same, also if goodput can't see from here whether they exist
        ///
        /// From inside a container, or without root, processes that keep a network namespace alive
        /// can be out of sight.
        #[arg(long)]
        forget_unseen: bool,
    },
    /// Wait for the parent's end and put back what it left (started by goodput itself)
    #[command(hide = true)]
    Guard {
        /// The journal to watch over
        journal: PathBuf,
    },
    /// Change settings for the clients of a server (started by goodput itself)
    #[command(hide = true)]
    Helper {
        /// Where its journals are
        state_dir: PathBuf,
        /// What `serve --allow-settings` names
        allowed: Vec<Pattern>,
    },
}

/// `goodput lab`
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// The scenarios that come with goodput, and whether they can run here
    List {
        /// Print one JSON line for each case
        #[arg(long)]
        json: bool,
    },
    /// Run scenarios and compare what comes out with what is expected
    Run {
        /// Names or files, with the case where one has several, like path-loss/mild/far; all that
        /// come with goodput where none is given
        scenarios: Vec<String>,
        /// Run every case of each, not only the one in the middle
        #[arg(long)]
        full: bool,
        /// Print one JSON line for each run: case, what was expected, what came, and the record
        #[arg(long)]
        json: bool,
    },
    /// Compare values of a setting in the hosts of a scenario
    Compare {
        /// Name or file, with the case where it has several
        scenario: String,
        /// [far:]NAME[@SCOPE]=A,B: the first value is the baseline
        #[arg(value_name = "SETTING=A,B")]
        factor: String,
        /// Print one JSON line: case, what was compared, and the record
        #[arg(long)]
        json: bool,
    },
    /// Keep a scenario's hosts up until Ctrl-C, and say how to get into them
    Up {
        /// Name or file, with the case where it has several
        scenario: String,
    },
    /// Print a scenario, as a start for your own
    Show {
        /// Name or file, with the case to see one filled in
        scenario: String,
    },
}

/// `goodput history`
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Nothing: list the latest; one number: show that result; two: compare them
    #[arg(num_args = 0..=2, value_name = "NUMBER")]
    pub ids: Vec<i64>,
    /// How many to list
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub last: u32,
    /// Print the JSON record of the one result asked for
    #[arg(long, requires = "ids")]
    pub json: bool,
    /// Print the one result asked for as another program would, see `goodput list formats`
    #[arg(long, value_name = "FORMAT", requires = "ids", conflicts_with = "json",
          value_parser = super::format::parser())]
    pub format: Option<&'static Format>,
}

/// What the longer help of `goodput key` adds.
const KEY_HELP: &str = "\
The line has a name, a role and the public key. The role is measure, or settings for a client that may also \
change what --allow-settings names. Whoever runs the server may add options to the line: max-rate=RATE, \
max-duration=TIME, max-measurements=N and from=NETWORK,… A key is withdrawn by removing its line.";

/// `goodput key`
#[derive(Debug, Args)]
#[command(after_long_help = KEY_HELP)]
pub struct KeyArgs {
    /// File of the private key [default: goodput/key in $XDG_CONFIG_HOME or ~/.config]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Name of the key, by which the server's log calls you [default: user@host]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Role to ask for; whoever runs the server decides
    #[arg(long, value_enum, default_value_t = AskedRole::Measure, value_name = "ROLE")]
    pub role: AskedRole,
    /// Make a new key even if there is one; servers do not know it yet
    #[arg(long)]
    pub replace: bool,
}

/// The role that a public line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AskedRole {
    /// Measure
    Measure,
    /// Measure, and change settings
    Settings,
}

impl AskedRole {
    /// As the file of authorized keys has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Measure => "measure",
            Self::Settings => "settings",
        }
    }
}

/// What `goodput list` can list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Causes the diagnosis can name
    Rules,
    /// What is checked of a host without traffic
    Checks,
    /// What can be changed
    Settings,
    /// What a server's clients may change there, as far as `serve --allow-settings` names it
    FarSettings,
    /// Ways to move payload
    Movers,
    /// Protocols spoken with peers
    Protocols,
    /// Outputs of other programs, for `--format`
    Formats,
    /// Scenarios of the lab
    Scenarios,
}

/// `goodput as`
#[derive(Debug, Args)]
pub struct AsArgs {
    /// Print the command of goodput that it comes to, and run nothing
    #[arg(long)]
    pub show: bool,
    /// The program, as `goodput shim list` shows it, and its own options
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub line: Vec<String>,
}

/// `goodput shim`
#[derive(Debug, Subcommand)]
pub enum ShimWork {
    /// Make links to goodput under the old names
    Install {
        /// Directory for the links
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// The programs, or what each option of one becomes
    List {
        /// The program
        program: Option<String>,
    },
}

/// `goodput generate`
#[derive(Debug, Subcommand)]
pub enum Generate {
    /// Shell completions, to standard output
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Man pages, one file a verb
    Man {
        /// Directory to write to
        directory: PathBuf,
    },
    /// The JSON Schema of a record, to standard output
    Schema,
    /// All reference documents
    Reference {
        /// Directory to write to
        directory: PathBuf,
    },
}
