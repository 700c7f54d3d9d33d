//! Options of a measurement, shared by every verb that makes one, and how they become a plan. One file a
//! group: an option has its field, its help and its place in the plan there.

mod capture;
mod ceiling;
mod direction;
mod files;
mod find_rate;
mod format;
mod hosts;
mod length;
mod load;
mod nfs;
mod observing;
mod output;
mod peer;
mod sockets;
mod words;

use std::net::SocketAddr;

use clap::Args;
use goodput_engine::Target;
use goodput_model::{Bytes, Family, Length, MountPlan, Plan, SocketOptions, Transport};

pub use capture::CaptureArgs;
pub use ceiling::{CeilingInputArgs, asks_for_something, with_defaults};
pub use direction::DirectionArgs;
pub use files::StorageArgs;
pub use find_rate::FindRateArgs;
pub use format::{FormatArgs, ServedFormatArgs, parser as format_parser};
pub use hosts::{AccessArgs, SshHostArgs};
pub use length::LengthArgs;
pub use load::LoadArgs;
pub use nfs::NfsArgs;
pub use observing::ObservingArgs;
pub use output::OutputArgs;
pub use peer::{CredentialArgs, FileServerArgs, PeerArgs, ProxyArgs};
pub use sockets::SocketArgs;
pub use words::Words;

/// The largest payload that a 1500-byte MTU carries over IPv6 in one piece: 1500 less 40 bytes of IP and
/// 8 of UDP header (RFC 8200, RFC 768).
const DATAGRAM_V6: Bytes = Bytes(1452);

/// What and how to measure. The groups appear in the help in this order.
#[derive(Debug, Clone, Args)]
pub struct MeasureArgs {
    #[command(flatten)]
    pub direction: DirectionArgs,
    #[command(flatten)]
    pub length: LengthArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub sockets: SocketArgs,
    #[command(flatten)]
    pub files: StorageArgs,
    #[command(flatten)]
    pub peer: PeerArgs,
    #[command(flatten)]
    pub nfs: NfsArgs,
    #[command(flatten)]
    pub observing: ObservingArgs,
}

impl MeasureArgs {
    /// The plan. `length` is used if neither a time nor a number of bytes was given.
    pub fn plan(&self, length: Length) -> Plan {
        self.plan_with(length, self.direction.transport().standard_chunk())
    }

    /// The same towards `target`: unless a chunk is given, datagrams leave in one piece over the IP
    /// version that the target is reached by.
    pub fn plan_towards(&self, target: &Target, length: Length) -> Plan {
        let plan = match self.direction.transport() {
            Transport::Udp => {
                self.plan_with(length, datagram_towards(target, self.direction.family()))
            }
            Transport::Tcp if target.mounted.is_some() => {
                self.plan_with(length, MountPlan::STANDARD_CHUNK)
            }
            _ => self.plan(length),
        };
        Plan { direction: target.direction(plan.direction), ..plan }
    }

    fn plan_with(&self, length: Length, standard_chunk: Bytes) -> Plan {
        let Self { direction, load, .. } = self;
        let storage = self.files.storage();
        let length = if storage.source.is_some() { Length::Source } else { length };
        let chunk = load.chunk.unwrap_or(standard_chunk);
        let plan = Plan {
            transport: direction.transport(),
            direction: direction.direction(),
            flows: direction.flows,
            length: self.length.length().unwrap_or(length),
            interval_s: self.observing.interval_s(),
            mover: String::new(),
            receive_mover: load.receive_mover.clone(),
            chunk_bytes: chunk,
            rate_bits_per_s: load.rate(direction.flows),
            rate_limit_of: None,
            burst_bytes: load.burst(direction.flows, chunk),
            omit_s: self.length.omit.unwrap_or(0.0),
            peer_output: self.peer.peer_output,
            data_port: self.peer.data_port,
            latency: self.observing.latency,
            arrivals: false,
            quiet: false,
            far_capture: false,
            towards: None,
            pin: load.pins(),
            observe: !self.observing.no_observe,
            storage,
            fetches: self.length.fetches,
            nfs: self.nfs.plan(),
            mount: self.nfs.mount(),
            socket: SocketOptions { family: direction.family(), ..self.sockets.options() },
        };
        let mover = load.mover.clone().unwrap_or_else(|| plan.usual_mover().into());
        Plan { mover, ..plan }
    }

    /// The options that measure the same once more; of a `file`, if it was measured at a file server or on a mount. What a
    /// comparison chooses is left out: the length, and what is observed.
    pub fn words(plan: &Plan, file: bool) -> Words {
        DirectionArgs::words(plan, file)
            .and(LoadArgs::words(plan, file))
            .and(SocketArgs::words(&plan.socket))
            .and(StorageArgs::words(&plan.storage))
            .and(PeerArgs::words(plan, file))
            .and(NfsArgs::words(&plan.nfs, plan.mount))
    }
}

/// The largest payload of a datagram that reaches `target` in one piece over a path of 1500 bytes. Blocks while the resolver
/// answers; if it can't, the connection will say so.
pub fn datagram_towards(target: &Target, family: Option<Family>) -> Bytes {
    let addresses = target.addresses(family);
    let over_v6 = addresses.is_ok_and(|all| all.first().is_some_and(SocketAddr::is_ipv6));
    if over_v6 { DATAGRAM_V6 } else { Transport::Udp.standard_chunk() }
}
