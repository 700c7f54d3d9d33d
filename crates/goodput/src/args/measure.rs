//! Options of a measurement, shared by every verb that makes one, and how they become a plan.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use goodput_engine::Target;
use goodput_model::{BitRate, Bytes, Direction, Family, Length, Plan, SocketOptions, Transport};
use goodput_wire::keys::PublicKey;

use super::local::LocalAddress;
use super::pacing::PacingArgs;
use super::pin::PinArg;
use super::source_ports::SourcePorts;
use super::storage::StorageArgs;
use crate::expect::Expectation;

/// The largest payload that a 1500-byte MTU carries over IPv6 in one piece: 1500 less 40 bytes of IP and
/// 8 of UDP header (RFC 8200, RFC 768).
const DATAGRAM_V6: Bytes = Bytes(1452);

/// What and how to measure.
#[derive(Debug, Clone, Args)]
pub struct MeasureArgs {
    /// Measure UDP
    #[arg(short, long)]
    pub udp: bool,
    /// The far end sends
    #[arg(short = 'R', long, conflicts_with = "both")]
    pub reverse: bool,
    /// Both ends send at the same time
    #[arg(long)]
    pub both: bool,
    /// Flows in each direction
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub flows: u16,
    /// End after this many seconds [default: when the mean is known to ±2 %, 2 to 10 s]
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "bytes")]
    pub time: Option<f64>,
    /// Leave these first seconds out of the rates; --time counts from their end [default: what is found
    /// to be slow start]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "time")]
    pub omit: Option<f64>,
    /// Ask an iperf3 server for what it would have printed; it is printed in its formats, and kept in
    /// the record
    #[arg(long)]
    pub peer_output: bool,
    /// Where the data connections go, and the next ports for more of them; only a nuttcp server can be
    /// told
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub data_port: Option<u16>,
    /// End after this many payload bytes, all flows of a direction together
    #[arg(short = 'n', long, value_name = "BYTES", value_parser = positive_bytes)]
    pub bytes: Option<Bytes>,
    /// Seconds between the shown intervals, at least 0.1; 0 shows none [default: 1]
    #[arg(short, long, value_name = "SECONDS", value_parser = interval)]
    pub interval: Option<f64>,
    #[command(flatten)]
    pub pacing: PacingArgs,
    /// How to move the payload, see `goodput list movers`; `auto` lets each end take what costs it least
    #[arg(long, value_name = "MOVER", default_value = "copy")]
    pub mover: String,
    /// How to receive it, where that is not as --mover says: `discard` shows the network alone
    #[arg(long, value_name = "MOVER")]
    pub receive_mover: Option<String>,
    /// Bytes of a write or a datagram [default: 128K, for UDP 1472, over IPv6 1452]
    #[arg(long, value_name = "BYTES", value_parser = positive_bytes)]
    pub chunk: Option<Bytes>,
    /// CPUs for the flows' threads: none (the scheduler decides), auto (on the memory node of the path's
    /// card and off the CPUs that serve its interrupts, where these are known), or a list, like 2,4-7,
    /// that the flows take in turn. far: before it is for the far end
    #[arg(long, value_name = "[far:]WHERE")]
    pub pin: Vec<PinArg>,
    /// Local address of the connections, and their device
    #[arg(long, value_name = "ADDRESS[%DEVICE]")]
    pub bind: Option<LocalAddress>,
    /// Local port of the first data connection, the next ports for more of them: the same every time,
    /// so that a card's receive queues are hashed to repeatably. One that is taken is left out. spread
    /// chooses ports, from spread:PORT on, by which the flows fall on the receiving card's queues in turn
    #[arg(long, value_name = "PORT|spread[:PORT]")]
    pub source_port: Option<SourcePorts>,
    /// Data connections over MPTCP at both ends; the record tells the subflows of each, or that it fell
    /// back to TCP
    #[arg(long, conflicts_with = "udp")]
    pub mptcp: bool,
    /// Device of the connections
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long)]
    pub ipv6: bool,
    /// Maximum segment size, bytes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(88..=65495))]
    pub mss: Option<u32>,
    /// Send buffer at both ends (switches autotuning off)
    #[arg(long, value_name = "BYTES")]
    pub sndbuf: Option<Bytes>,
    /// Receive buffer at both ends (switches autotuning off)
    #[arg(long, value_name = "BYTES")]
    pub rcvbuf: Option<Bytes>,
    /// Congestion control at both ends
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Set TCP_NODELAY
    #[arg(long)]
    pub nodelay: bool,
    /// Have the kernel send no faster than this, at both ends (SO_MAX_PACING_RATE)
    #[arg(long, value_name = "RATE", conflicts_with_all = ["udp", "rate"])]
    pub max_pacing: Option<BitRate>,
    /// Differentiated services code point, 0 to 63
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(0..64))]
    pub dscp: Option<u8>,
    /// Send no datagram over IPv4 that would have to be fragmented: what is longer than the path's MTU
    /// is an error
    #[arg(long, requires = "udp")]
    pub dont_fragment: bool,
    #[command(flatten)]
    pub credentials: CredentialArgs,
    /// Probe round trips beside the flows: for a second before they begin, and while they run
    #[arg(long)]
    pub latency: bool,
    /// Do not observe while it runs, to see what observing costs; there is no verdict then
    #[arg(long, hide = true)]
    pub no_observe: bool,
    #[command(flatten)]
    pub storage: StorageArgs,
}

/// What lets this end in at the far one.
#[derive(Debug, Clone, Args)]
pub struct CredentialArgs {
    /// File with the token of the far end, to change its settings
    #[arg(long, value_name = "FILE", env = "GOODPUT_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// File of your private key, as `goodput key` makes it. The usual one, if there is one, is shown only to
    /// servers that you know already, and to those that refuse whoever shows nothing
    #[arg(long, value_name = "FILE", env = "GOODPUT_KEY_FILE")]
    pub key: Option<PathBuf>,
    /// Public key that the server must have, x25519:… [default: the one that it had at the first visit]
    #[arg(long, value_name = "KEY")]
    pub server_key: Option<PublicKey>,
    /// Name to log in with at an iperf3 server; the password comes from --password-file, from
    /// $IPERF3_PASSWORD or from the terminal
    #[arg(long, value_name = "NAME", requires = "rsa_public_key")]
    pub username: Option<String>,
    /// File whose first line is the password
    #[arg(long, value_name = "FILE", requires = "username")]
    pub password_file: Option<PathBuf>,
    /// Public key of the iperf3 server, in PEM
    #[arg(long, value_name = "FILE", requires = "username")]
    pub rsa_public_key: Option<PathBuf>,
    /// Encrypt the password as iperf3 before 3.17 does
    #[arg(long, requires = "username")]
    pub pkcs1_padding: bool,
}

/// What to do with the result.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Print one JSON record and nothing else
    #[arg(long, conflicts_with = "json_stream")]
    pub json: bool,
    /// Print one JSON event a line while it runs, the record last
    #[arg(long)]
    pub json_stream: bool,
    /// Also write the JSON record to this file
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Do not keep the result in the history
    #[arg(long)]
    pub no_store: bool,
    /// Exit with 1 unless this holds: >=RATE, <=RATE, limit=RULE, limit!=RULE
    #[arg(long, value_name = "WHAT")]
    pub expect: Vec<Expectation>,
}

impl MeasureArgs {
    /// The plan. `length` is used where neither a time nor a number of bytes was given.
    pub fn plan(&self, length: Length) -> Plan {
        self.plan_with(length, self.transport().standard_chunk())
    }

    /// The same towards `target`: where nobody names a chunk, datagrams leave in one piece over the IP
    /// version that it is reached by. Blocks while the resolver answers; what it can't tell is told when
    /// the target is connected to.
    pub fn plan_towards(&self, target: &Target, length: Length) -> Plan {
        let family = self.socket_options().family;
        let over_v6 = || {
            target.addresses(family).is_ok_and(|all| all.first().is_some_and(SocketAddr::is_ipv6))
        };
        match self.transport() {
            Transport::Udp if over_v6() => self.plan_with(length, DATAGRAM_V6),
            _ => self.plan(length),
        }
    }

    fn transport(&self) -> Transport {
        if self.udp { Transport::Udp } else { Transport::Tcp }
    }

    fn plan_with(&self, length: Length, standard_chunk: Bytes) -> Plan {
        let storage = self.storage.storage();
        let transport = self.transport();
        let chunk = self.chunk.unwrap_or(standard_chunk);
        Plan {
            transport,
            direction: self.direction(),
            flows: self.flows,
            length: match (self.time, self.bytes) {
                (Some(seconds), _) => Length::Seconds(seconds),
                (_, Some(bytes)) => Length::Bytes(bytes),
                _ if storage.source.is_some() => Length::Source,
                _ => length,
            },
            interval_s: self.interval.filter(|seconds| *seconds > 0.0).unwrap_or(1.0),
            mover: self.mover.clone(),
            receive_mover: self.receive_mover.clone(),
            chunk_bytes: chunk,
            rate_bits_per_s: self.pacing.rate(self.flows),
            burst_bytes: self.pacing.burst(self.flows, chunk),
            omit_s: self.omit.unwrap_or(0.0),
            peer_output: self.peer_output,
            data_port: self.data_port,
            latency: self.latency,
            pin: super::pin::pins(&self.pin),
            observe: !self.no_observe,
            storage,
            socket: self.socket_options(),
        }
    }

    fn direction(&self) -> Direction {
        match (self.reverse, self.both) {
            (true, _) => Direction::Reverse,
            (_, true) => Direction::Both,
            _ => Direction::Send,
        }
    }

    fn socket_options(&self) -> SocketOptions {
        SocketOptions {
            bind: self.bind.as_ref().map(|local| local.ip),
            device: self
                .device
                .clone()
                .or(self.bind.as_ref().and_then(|local| local.device.clone())),
            family: match (self.ipv4, self.ipv6) {
                (true, _) => Some(Family::V4),
                (_, true) => Some(Family::V6),
                _ => None,
            },
            source_port: self.source_port.and_then(|ports| ports.first),
            spread_ports: self.source_port.is_some_and(|ports| ports.spread),
            mptcp: self.mptcp,
            mss_bytes: self.mss,
            sndbuf_bytes: self.sndbuf,
            rcvbuf_bytes: self.rcvbuf,
            congestion: self.congestion.clone(),
            nodelay: self.nodelay,
            cork: self.storage.cork,
            max_pacing_bits_per_s: self.max_pacing.filter(|rate| rate.0 > 0.0),
            dscp: self.dscp,
            dont_fragment: self.dont_fragment,
        }
    }
}

/// Seconds above zero.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(seconds),
        _ => Err("write a number of seconds above 0, like 10 or 2.5".into()),
    }
}

pub(super) fn interval(text: &str) -> Result<f64, String> {
    if text.parse() == Ok(0.0) {
        return Ok(0.0);
    }
    seconds(text).and_then(|s| {
        if s >= 0.1 { Ok(s) } else { Err("the shortest interval is 0.1 seconds".into()) }
    })
}

pub(super) fn positive_bytes(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        Ok(Bytes(0)) => Err("it must be at least one byte".into()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}
