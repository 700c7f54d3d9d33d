//! What one measurement is to do: a plan that both ends agree on before any payload moves.

use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end_name::EndName;
use crate::mount::MountPlan;
use crate::nfs::NfsPlan;
use crate::placement::Pins;
use crate::storage::Storage;
use crate::units::{BitRate, Bytes};

/// One measurement, as agreed by both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// TCP or UDP.
    pub transport: Transport,
    /// Who sends payload to whom.
    pub direction: Direction,
    /// Flows in each direction; at least 1.
    pub flows: u16,
    /// When the measurement ends.
    pub length: Length,
    /// Seconds between the intervals that are shown and kept; at least 0.1.
    pub interval_s: f64,
    /// Id of the mover that sends, as `goodput list movers` prints it; it receives too, unless
    /// `receive_mover` names another.
    pub mover: String,
    /// Id of the mover that receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_mover: Option<String>,
    /// Bytes of one write or one datagram.
    pub chunk_bytes: Bytes,
    /// Strict pacing, over all flows of one direction together. `None`: as fast as it goes.
    pub rate_bits_per_s: Option<BitRate>,
    /// Bytes of one flow that leave at once at most, if datagrams are paced, at least one datagram.
    /// `None`: one datagram, or what the rate gives in 20 us if that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_bytes: Option<Bytes>,
    /// Seconds after payload begins to move that the rates leave out, at most 600; the length counts from
    /// their end. 0: what the measurement itself finds to be slow start. Counts of bytes and packets in
    /// a record are those of the whole run even so.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omit_s: f64,
    /// Whether the far end is asked for what it would have printed, which only iperf3 can be.
    #[serde(default, skip_serializing_if = "is_off")]
    pub peer_output: bool,
    /// Port at which the first flow meets the end that awaits it, the others next to it, which only nuttcp
    /// can be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_port: Option<u16>,
    /// Whether round trips are measured beside the flows, before they begin and while they run.
    #[serde(default, skip_serializing_if = "is_off")]
    pub latency: bool,
    /// Whether the receiver of datagrams keeps when each was sent and came.
    #[serde(default, skip_serializing_if = "is_off")]
    pub arrivals: bool,
    /// On which CPUs the flows' threads run.
    #[serde(default, skip_serializing_if = "Pins::are_none")]
    pub pin: Pins,
    /// Whether both ends observe while it runs. Off only to measure what observing costs.
    pub observe: bool,
    /// Where payload comes from and goes to, if that is not memory.
    #[serde(default, skip_serializing_if = "Storage::is_memory")]
    pub storage: Storage,
    /// How often each flow fetches the file, if the target is one and that is to be the length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetches: Option<u32>,
    /// How the file is read, if the target is one of an NFS server.
    #[serde(default, skip_serializing_if = "NfsPlan::is_default")]
    pub nfs: NfsPlan,
    /// How the file is read or written, if the target is one on a mount.
    #[serde(default, skip_serializing_if = "MountPlan::is_default")]
    pub mount: MountPlan,
    /// Socket options, set at both ends.
    pub socket: SocketOptions,
}

/// The transport protocol of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A byte stream.
    Tcp,
    /// Datagrams with a sequence number each.
    Udp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// Who sends payload to whom, seen from the near end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Near sends, far receives.
    Send,
    /// Far sends, near receives.
    Reverse,
    /// Both at once, each direction with its own flows.
    Both,
}

/// When a measurement ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// After this many seconds.
    Seconds(f64),
    /// After this many payload bytes, over all flows of one direction together.
    Bytes(Bytes),
    /// When each flow has sent its source once, from beginning to end, or has made all its fetches.
    Source,
    /// When the mean is known to ± `precision_percent`, within the bounds.
    Auto {
        /// Half-width of the 95 % interval of the mean, as a share of it.
        precision_percent: f64,
        /// Never shorter than this.
        min_s: f64,
        /// Never longer than this.
        max_s: f64,
    },
}

/// IP version of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Options of the data sockets. `None` leaves the kernel's own choice, autotuning included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketOptions {
    /// Local address of the near end's data connections.
    pub bind: Option<IpAddr>,
    /// Device the near end binds to (`SO_BINDTODEVICE`).
    pub device: Option<String>,
    /// IP version, if the target's name has both.
    pub family: Option<Family>,
    /// Local port of the near end's first data connection; each further one has the next that is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Whether the local ports of the near end, from `source_port` on, are chosen by the receiving cards'
    /// hashes, so that the flows fall on their receive queues in turn.
    #[serde(skip_serializing_if = "is_off")]
    pub spread_ports: bool,
    /// Whether the data connections are MPTCP (RFC 8684), as far as both kernels have it.
    #[serde(skip_serializing_if = "is_off")]
    pub mptcp: bool,
    /// `TCP_MAXSEG`, bytes.
    pub mss_bytes: Option<u32>,
    /// `SO_SNDBUF` as asked for; the kernel doubles it for its bookkeeping (socket(7)).
    pub sndbuf_bytes: Option<Bytes>,
    /// `SO_RCVBUF` as asked for; the kernel doubles it for its bookkeeping (socket(7)).
    pub rcvbuf_bytes: Option<Bytes>,
    /// `TCP_CONGESTION`, set before connect and on the listener.
    pub congestion: Option<String>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_CORK` from before each transfer of the source, or the whole flow if it is memory, to
    /// its end: no partial segment leaves before that, or for 200 ms (tcp(7)).
    pub cork: bool,
    /// `SO_MAX_PACING_RATE` of each data socket (socket(7)), in bits per second of what TCP hands
    /// down. A rate that the plan itself holds replaces it.
    pub max_pacing_bits_per_s: Option<BitRate>,
    /// `TCP_QUICKACK` (tcp(7)): on, the receiver asks for an acknowledgement after each read; off, its
    /// acknowledgements are delayed from the beginning. The kernel changes it on its own later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quickack: Option<bool>,
    /// `TCP_NOTSENT_LOWAT`, bytes: a writer waits while more than these are unsent (tcp(7)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent_lowat_bytes: Option<Bytes>,
    /// `SO_BUSY_POLL`, microseconds that a waiting call polls the device itself (socket(7)). 0: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_poll_us: Option<u32>,
    /// `SO_PRIORITY` of every packet within this host (socket(7)); the code point sets one as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: Option<u8>,
    /// Whether datagrams over IPv4 have the "don't fragment" bit, and the kernel refuses them if
    /// they are longer than the path's MTU (`IP_PMTUDISC_DO`, ip(7)).
    #[serde(skip_serializing_if = "is_off")]
    pub dont_fragment: bool,
}

/// One flow of a plan: its number and who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowPlan {
    /// Number of the flow within the measurement, from 0.
    pub id: u16,
    /// The end that sends payload on it.
    pub sender: EndName,
}

impl Direction {
    /// The ends that send, the near one first.
    pub fn senders(self) -> &'static [EndName] {
        match self {
            Self::Send => &[EndName::Near],
            Self::Reverse => &[EndName::Far],
            Self::Both => &[EndName::Near, EndName::Far],
        }
    }
}

impl Transport {
    /// Chunk if the user names none: as iperf3 for TCP; for UDP the largest payload that a
    /// 1500-byte MTU carries over IPv4 in one piece (1500 - 20 - 8).
    pub fn standard_chunk(self) -> Bytes {
        match self {
            Self::Tcp => Bytes(128 * 1024),
            Self::Udp => Bytes(1472),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_off(flag: &bool) -> bool {
    !flag
}

impl Plan {
    /// [`Self::mover`] if another program moves the payload and goodput only watches (`--attach`).
    pub const WATCHING: &'static str = "none";

    /// Whether goodput only watches what another program moves.
    pub fn only_watches(&self) -> bool {
        self.mover == Self::WATCHING
    }

    /// Sensible values for everything: one TCP flow, sent, until the mean is known to ±2 %.
    pub fn standard() -> Self {
        Self {
            transport: Transport::Tcp,
            direction: Direction::Send,
            flows: 1,
            length: Length::Auto { precision_percent: 2.0, min_s: 2.0, max_s: 10.0 },
            interval_s: 1.0,
            mover: "copy".into(),
            receive_mover: None,
            chunk_bytes: Transport::Tcp.standard_chunk(),
            rate_bits_per_s: None,
            burst_bytes: None,
            omit_s: 0.0,
            peer_output: false,
            data_port: None,
            latency: false,
            arrivals: false,
            pin: Pins::default(),
            observe: true,
            storage: Storage::default(),
            fetches: None,
            nfs: NfsPlan::default(),
            mount: MountPlan::default(),
            socket: SocketOptions::default(),
        }
    }

    /// Every flow of the plan, near senders first.
    pub fn flow_plans(&self) -> Vec<FlowPlan> {
        let each = self
            .direction
            .senders()
            .iter()
            .flat_map(|sender| (0..self.flows).map(move |_| *sender));
        each.enumerate().map(|(id, sender)| FlowPlan { id: id as u16, sender }).collect()
    }

    /// The rate of one flow, if the plan paces.
    pub fn rate_per_flow(&self) -> Option<BitRate> {
        self.rate_bits_per_s.map(|rate| BitRate(rate.0 / f64::from(self.flows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_their_own_flows() {
        let plan = Plan { direction: Direction::Both, flows: 2, ..Plan::standard() };
        let senders: Vec<_> = plan.flow_plans().iter().map(|f| (f.id, f.sender)).collect();
        use EndName::{Far, Near};
        assert_eq!(senders, [(0, Near), (1, Near), (2, Far), (3, Far)]);
    }
}
