//! What `goodput serve` takes.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use goodput_engine::serve::Allowed;
use goodput_model::{BitRate, Bytes};
use goodput_settings::allowlist::Pattern;
use goodput_wire::network::Network;

use crate::args::options::ServedFormatArgs;
use crate::args::values::dscp::dscp;
use crate::args::values::local::LocalAddress;
use crate::args::values::number::whole;
use crate::args::values::path::path;
use crate::args::values::rate::{self, Rate};
use crate::args::values::spoken::ServedProtocol;
use crate::args::values::{address, size, time};

/// `goodput serve`. The groups appear in the help in this order.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub listen: ListenArgs,
    #[command(flatten)]
    pub clients: ClientArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub files: ServedFileArgs,
    #[command(flatten)]
    pub process: ProcessArgs,
    #[command(flatten)]
    pub format: ServedFormatArgs,
}

/// Where it listens, and what it answers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Listening")]
pub struct ListenArgs {
    /// Local address; a link-local one needs its device: fe80::1%eth0 [default: all, IPv6 and IPv4]
    #[arg(long, value_name = "ADDRESS[%DEVICE]")]
    pub bind: Option<LocalAddress>,
    /// Main port, which answers all protocols; 0 lets the system choose one
    #[arg(long, value_name = "PORT", default_value_t = goodput_wire::protocols::goodput::PROTOCOL.port,
          value_parser = whole("a port", 0..=u16::MAX))]
    pub port: u16,
    /// Protocols to answer, each also on its usual or the given port [default: all; on their usual ports only if
    /// --port is not changed]
    #[arg(long, value_name = "NAME[=PORT],…", value_delimiter = ',')]
    pub protocols: Vec<ServedProtocol>,
    /// Fail if a usual port is taken, instead of serving the others
    #[arg(long, hide_short_help = true)]
    pub strict: bool,
    /// Run one measurement at a time
    ///
    /// Other clients are refused as busy, or wait in a queue as long as their protocol allows.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "busy",
          hide_short_help = true)]
    pub exclusive: Option<WhenBusy>,
    /// Exit after the first client that ran a measurement
    #[arg(long, hide_short_help = true)]
    pub one_off: bool,
    /// Serve metrics for Prometheus at this address (OpenMetrics, /metrics)
    ///
    /// They are counts of all clients together, and the last result of each direction, without the client. Everyone who
    /// reaches the address can read them.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address::with_port, hide_short_help = true)]
    pub metrics: Option<SocketAddr>,
    /// End when standard input ends
    ///
    /// For a program that started this one, which then leaves no port open when it is killed.
    #[arg(long, hide = true)]
    pub end_with_input: bool,
    /// End when tests have cost the line so many bytes; print their cost
    ///
    /// For a program that started this one and has a budget.
    #[arg(long, value_name = "BYTES", value_parser = size::positive, hide = true)]
    pub max_cost: Option<Bytes>,
    /// Print this instead of the listening addresses
    #[arg(long, value_name = "TEXT", hide = true)]
    pub announce: Option<String>,
}

/// What happens to a measurement while another one is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhenBusy {
    /// Refuse other clients: the server is busy
    Busy,
    /// Let other clients wait for their turn, except clients that send without asking
    Queue,
}

/// Who may do what.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clients", group = ArgGroup::new("proof").multiple(true))]
pub struct ClientArgs {
    /// Answer only these networks
    ///
    /// If several networks of --allow and --deny contain an address, the longest prefix decides.
    #[arg(long, value_name = "NETWORK/BITS,…", value_delimiter = ',')]
    pub allow: Vec<Network>,
    /// Don't answer these networks; wins over --allow for the same network
    #[arg(long, value_name = "NETWORK/BITS,…", value_delimiter = ',')]
    pub deny: Vec<Network>,
    /// Identify clients by their keys, from this file
    ///
    /// The file has a line NAME ROLE KEY for each client, as `goodput key` prints it. The server reads the file again
    /// when it changes. With this option, the token only lets clients measure.
    #[arg(long, value_name = "FILE", group = "proof")]
    pub authorized_keys: Option<PathBuf>,
    /// Private key that identifies this server to these clients [default: server.key in the state directory, made
    /// on first use]
    #[arg(long, value_name = "FILE", requires = "authorized_keys", hide_short_help = true)]
    pub key: Option<PathBuf>,
    /// File with the token that clients share
    ///
    /// A token has 32 hexadecimal digits, as `openssl rand -hex 16` prints them.
    #[arg(long, value_name = "FILE", env = "GOODPUT_TOKEN_FILE", value_parser = path("GOODPUT_TOKEN_FILE"), group = "proof")]
    pub token_file: Option<PathBuf>,
    /// Refuse clients that prove neither a key nor the token
    ///
    /// This holds for every protocol. Users of --users-file are accepted as well.
    #[arg(long, alias = "require-token", requires = "proof")]
    pub require_credential: bool,
    /// Let trusted clients change these settings while they are connected
    ///
    /// Clients with the token, or with a key of role settings, may read and change these settings, within the bounds of
    /// `goodput list far-settings`. A pattern is a name, like sysctl.net.ipv4.tcp_rmem or offload.*@eth0; * stands for
    /// any characters. The option may be given several times. [default: none]
    #[arg(long, value_name = "PATTERN", requires = "proof", hide_short_help = true)]
    pub allow_settings: Vec<Pattern>,
    /// Capture headers of packets for clients with the token or a key
    ///
    /// A client gets only the headers of its own flows (--pcap far:FILE). A helper process keeps CAP_NET_RAW, which the
    /// server itself gives up. [default: no]
    #[arg(long, requires = "proof", hide_short_help = true)]
    pub allow_capture: bool,
    /// Show the qdisc towards any host to clients with the token or a key
    ///
    /// For a server on a router (shaping --router). Without this option, clients learn only of the path towards
    /// themselves. [default: no]
    #[arg(long, requires = "proof", hide_short_help = true)]
    pub allow_qdiscs: bool,
    /// Require the token or a password, which iperf3 clients can send
    ///
    /// The file has NAME,HASH lines, like iperf3's --authorized-users-path.
    #[arg(long, value_name = "FILE", requires = "rsa_private_key", hide_short_help = true)]
    pub users_file: Option<PathBuf>,
    /// Private key that decrypts these passwords, in PEM, at least 2048 bits
    #[arg(long, value_name = "FILE", requires = "users_file", hide_short_help = true)]
    pub rsa_private_key: Option<PathBuf>,
    /// Accept logins from iperf3 before 3.17, with an older, weaker padding
    ///
    /// Logins with the newer padding are then refused.
    #[arg(long, requires = "users_file", hide_short_help = true)]
    pub pkcs1_padding: bool,
    /// Report nothing about this host to clients
    ///
    /// What the other programs' protocols require is still reported.
    #[arg(long, hide_short_help = true)]
    pub private: bool,
    /// Measure with these servers on behalf of nuttcp clients (`nuttcp A B`)
    ///
    /// A network stands for all its addresses. The server connects to no other hosts.
    #[arg(
        long,
        value_name = "HOST[:PORT]|NETWORK/BITS,…",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub third_party: Vec<Allowed>,
    /// Send UDP payload to iperf2 clients that ask for it
    ///
    /// iperf2 asks for it by -u with -R, -d, -r or --full-duplex. Its protocol proves no address: anyone who can forge an
    /// address can aim this host's traffic at it.
    #[arg(long, hide_short_help = true)]
    pub allow_unproven_udp: bool,
}

/// What clients get at most.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Longest measurement
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time::seconds)]
    pub max_duration: f64,
    /// Highest rate of one client in each direction
    ///
    /// All measurements of a client share this rate. 0 means unlimited.
    #[arg(long, value_name = "RATE", default_value = "unlimited", value_parser = rate::limit)]
    pub max_rate: Rate,
    /// Highest rate of all clients together in each direction
    #[arg(long, value_name = "RATE", default_value = "unlimited", value_parser = rate::limit)]
    pub max_total_rate: Rate,
    /// Most measurements at the same time
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = whole("a number of measurements", 1..=65536_u32))]
    pub max_clients: u32,
    /// Largest share of the server that one client may take
    ///
    /// Clients share measurements, memory, descriptors, threads and --max-total-rate. A client is an IPv4 address or an
    /// IPv6 network of 64 bits. The larger networks around it (24 bits of IPv4, 56 and 48 bits of IPv6) may take more, but
    /// not everything. Measurements that still wait for their flows may take half of the server together.
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = whole("a share in percent", 1..=100_u8),
          hide_short_help = true)]
    pub client_share: u8,
    /// Most connections of one address that belong to no measurement yet
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = whole("a number of connections", 1..=u32::MAX),
          hide_short_help = true)]
    pub max_connections: u32,
    /// End a measurement that is slower than this for 30 s; 0 ends none
    ///
    /// A measurement that requests a lower rate must reach half of that rate.
    #[arg(long, value_name = "RATE", default_value = "1kbit", hide_short_help = true)]
    pub min_progress: BitRate,
    /// Most flows of one measurement, both directions together
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = whole("a number of flows", 1..=u16::MAX),
          hide_short_help = true)]
    pub max_flows: u16,
    /// Largest chunk; each flow keeps one in memory
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = size::positive, hide_short_help = true)]
    pub max_chunk: Bytes,
    /// Largest socket buffer that a client may ask for, at most 1G
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = size::socket_buffer,
          hide_short_help = true)]
    pub max_buffer: Bytes,
    /// Highest DSCP that a client may ask for
    ///
    /// Networks keep 48 and above for their own control.
    #[arg(long, value_name = "DSCP", default_value_t = 47, value_parser = dscp,
          hide_short_help = true)]
    pub max_dscp: u8,
}

/// Files that clients may read and write.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub struct ServedFileArgs {
    /// Send files from this directory to clients (--reverse --source)
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// Let clients write and replace files in this directory (--sink)
    ///
    /// Give it a disk of its own.
    #[arg(long, value_name = "DIR")]
    pub sinks: Option<PathBuf>,
    /// Largest file that a flow may write to --sinks
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = size::positive, hide_short_help = true)]
    pub max_sink: Bytes,
    /// Largest total of all files in --sinks, old ones included
    #[arg(long, value_name = "BYTES", default_value = "10G", value_parser = size::positive, hide_short_help = true)]
    pub max_sink_total: Bytes,
}

/// What the server's process may do.
#[derive(Debug, Args)]
#[command(next_help_heading = "Process")]
pub struct ProcessArgs {
    /// User that the server becomes when root starts it [default: goodput, or nobody if there is no such user]
    ///
    /// It also gives up all capabilities.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub user: Option<String>,
    /// Keep the user, all files and all system calls: for debugging
    #[arg(long, conflicts_with = "user", hide_short_help = true)]
    pub no_sandbox: bool,
}
