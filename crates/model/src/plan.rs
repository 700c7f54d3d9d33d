//! What one measurement should do: both ends agree on a plan before any payload moves.

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

/// The plan of one measurement, as agreed by both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Transport protocol of the payload.
    pub transport: Transport,
    /// Who sends payload to whom.
    pub direction: Direction,
    /// Number of flows in each direction, at least 1.
    pub flows: u16,
    /// When the measurement ends.
    pub length: Length,
    /// Length of the intervals that are shown and kept, seconds, at least 0.1.
    pub interval_s: f64,
    /// Id of the mover that sends, as `goodput list movers` prints it. This mover receives too, unless
    /// `receive_mover` names another.
    pub mover: String,
    /// Id of the mover that receives; absent: `mover` receives too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_mover: Option<String>,
    /// Bytes of one write or one datagram.
    pub chunk_bytes: Bytes,
    /// Rate of all flows of one direction together, bits per second, held by strict pacing; absent: as fast as
    /// possible.
    pub rate_bits_per_s: Option<BitRate>,
    /// The end whose operator allows no higher rate than `rate_bits_per_s` (`--max-rate` of an agent); absent: who asked for
    /// the measurement chose the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_of: Option<EndName>,
    /// Most bytes that one flow of paced datagrams sends at once, at least one datagram. Absent: one datagram, or
    /// what the rate gives in 20 µs if that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_bytes: Option<Bytes>,
    /// Seconds after payload begins to move that the rates leave out, at most 600. The measurement's length counts
    /// from their end. 0: goodput finds slow start and leaves it out. Counts of bytes and packets in a record are
    /// always of the whole run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omit_s: f64,
    /// Whether to ask the far end for the output that it would have printed; only iperf3 can send it.
    #[serde(default, skip_serializing_if = "is_off")]
    pub peer_output: bool,
    /// Port at which the first flow's connection is accepted; further flows use the ports after it. Only nuttcp
    /// accepts such a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_port: Option<u16>,
    /// Whether to measure round-trip times before the flows begin and while they run.
    #[serde(default, skip_serializing_if = "is_off")]
    pub latency: bool,
    /// Whether the receiver of datagrams keeps each datagram's sending and arrival time.
    #[serde(default, skip_serializing_if = "is_off")]
    pub arrivals: bool,
    /// Whether the near end asks the far end nothing while payload moves, because that would change a slow path. Not proposed to
    /// the far end, and not kept.
    #[serde(skip)]
    pub quiet: bool,
    /// Whether the far end captures the headers of the flows' packets. The measurement goes on without them if the
    /// far end can't capture or does not permit it.
    #[serde(default, skip_serializing_if = "is_off")]
    pub far_capture: bool,
    /// Address of a third host. The facts of the far end are then those of the path towards this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub towards: Option<IpAddr>,
    /// On which CPUs the flows' threads run.
    #[serde(default, skip_serializing_if = "Pins::are_none")]
    pub pin: Pins,
    /// Whether both ends observe their hosts during the run. Off only to measure what observing costs.
    pub observe: bool,
    /// Where payload comes from and goes to; absent: memory at both ends.
    #[serde(default, skip_serializing_if = "Storage::is_memory")]
    pub storage: Storage,
    /// How often each flow fetches the file, if the target is a file and the number of fetches is the length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetches: Option<u32>,
    /// How the file is read or written, if it is on an NFS server.
    #[serde(default, skip_serializing_if = "NfsPlan::is_default")]
    pub nfs: NfsPlan,
    /// How the file is read or written, if it is on a mount.
    #[serde(default, skip_serializing_if = "MountPlan::is_default")]
    pub mount: MountPlan,
    /// Options of the data sockets, set at both ends.
    pub socket: SocketOptions,
}

/// The transport protocol of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A byte stream.
    Tcp,
    /// Datagrams, each with a sequence number.
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

/// Who sends payload to whom, as seen from the near end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The near end sends, the far end receives.
    Send,
    /// The far end sends, the near end receives.
    Reverse,
    /// Both send at the same time, each on flows of its own.
    Both,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Send => "forward",
            Self::Reverse => "reverse",
            Self::Both => "both directions",
        })
    }
}

/// When a measurement ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// After this many seconds.
    Seconds(f64),
    /// After this many payload bytes, counted over all flows of one direction.
    Bytes(Bytes),
    /// When each flow has sent its whole source once, or has made all its fetches.
    Source,
    /// When the mean is known to ± `precision_percent`, but not before `min_s` and not after `max_s`.
    Auto {
        /// Half-width of the 95 % confidence interval of the mean, percent of the mean.
        precision_percent: f64,
        /// Shortest length, seconds.
        min_s: f64,
        /// Longest length, seconds.
        max_s: f64,
    },
}

impl Length {
    /// The longest that payload may move, seconds, if time ends it.
    #[must_use]
    pub fn longest_s(self) -> Option<f64> {
        match self {
            Self::Seconds(seconds) => Some(seconds),
            Self::Auto { max_s, .. } => Some(max_s),
            Self::Bytes(_) | Self::Source => None,
        }
    }
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

/// Options of the data sockets. If an option is absent, the kernel chooses, autotuning included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketOptions {
    /// Local address of the near end's data connections.
    pub bind: Option<IpAddr>,
    /// Network device to which the near end binds its sockets (`SO_BINDTODEVICE`).
    pub device: Option<String>,
    /// IP version, if the target's name has addresses of both.
    pub family: Option<Family>,
    /// Local port of the near end's first data connection. Each further connection uses the next free port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Whether goodput chooses the near end's local ports, `source_port` and above, so that the receiving card's
    /// hash spreads the flows over its queues in turn.
    #[serde(skip_serializing_if = "is_off")]
    pub spread_ports: bool,
    /// Whether the data connections use MPTCP (RFC 8684), if both kernels have it.
    #[serde(skip_serializing_if = "is_off")]
    pub mptcp: bool,
    /// Maximum segment size, bytes (`TCP_MAXSEG`).
    pub mss_bytes: Option<u32>,
    /// Requested size of the send buffer, bytes (`SO_SNDBUF`). The kernel doubles it for its bookkeeping
    /// (socket(7)).
    pub sndbuf_bytes: Option<Bytes>,
    /// Requested size of the receive buffer, bytes (`SO_RCVBUF`). The kernel doubles it for its bookkeeping
    /// (socket(7)).
    pub rcvbuf_bytes: Option<Bytes>,
    /// Congestion control (`TCP_CONGESTION`), set before connecting and on the listener.
    pub congestion: Option<String>,
    /// Whether small segments are sent at once (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Whether partial segments are held back (`TCP_CORK`) until a transfer of the source ends, or the whole flow
    /// if the source is memory. The kernel holds them for at most 200 ms (tcp(7)).
    pub cork: bool,
    /// Rate to which the kernel limits each data socket (`SO_MAX_PACING_RATE`, socket(7)), bits per second of what
    /// TCP hands down. The plan's own rate replaces it.
    pub max_pacing_bits_per_s: Option<BitRate>,
    /// Whether the receiver acknowledges at once (`TCP_QUICKACK`, tcp(7)). On: it requests an acknowledgement after
    /// each read. Off: acknowledgements are delayed from the beginning. The kernel may change this later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quickack: Option<bool>,
    /// A writer waits while more than this number of bytes is unsent (`TCP_NOTSENT_LOWAT`, tcp(7)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent_lowat_bytes: Option<Bytes>,
    /// Time for which a waiting call polls the device itself, microseconds (`SO_BUSY_POLL`, socket(7)); 0: it does
    /// not poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_poll_us: Option<u32>,
    /// Priority of every packet within this host (`SO_PRIORITY`, socket(7)). The code point (`dscp`) sets a
    /// priority too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: Option<u8>,
    /// Whether datagrams over IPv4 carry the "don't fragment" bit. The kernel then refuses datagrams that are
    /// longer than the path's MTU (`IP_PMTUDISC_DO`, ip(7)).
    #[serde(skip_serializing_if = "is_off")]
    pub dont_fragment: bool,
}

/// One flow of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowPlan {
    /// Number of the flow within the measurement, from 0.
    pub id: u16,
    /// The end that sends payload on this flow.
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
    /// Bytes of one write or datagram if the user gives none. TCP: as in iperf3. UDP: the largest payload that an
    /// MTU of 1500 bytes carries over IPv4 without fragments (1500 - 20 - 8).
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
    /// Share of a rate to keep, such as one that `rate_limit_of` allows, from which the goodput stands at it: a receiver
    /// misses the first and the last piece, and timers come late.
    pub const MIN_SHARE_OF_KEPT_RATE: f64 = 0.9;

    /// Value of [`Self::mover`] if another program moves the payload and goodput only watches (`--attach`).
    pub const WATCHING: &'static str = "none";

    /// Value of [`Self::mover`] that leaves the choice to each end.
    pub const AUTO: &'static str = "auto";

    /// The mover if none is named. Datagrams that no rate spaces leave as fast as they can, so each end takes what is
    /// fastest there. A stream is copied, as by most programs, and paced datagrams are sent and read one by one.
    pub fn usual_mover(&self) -> &'static str {
        match (self.transport, self.rate_bits_per_s) {
            (Transport::Udp, None) => Self::AUTO,
            _ => "copy",
        }
    }

    /// Whether another program moves the payload and goodput only watches.
    pub fn only_watches(&self) -> bool {
        self.mover == Self::WATCHING
    }

    /// Which results can be compared with this one: `TCP forward`, `UDP both directions`.
    pub fn traffic(&self) -> String {
        format!("{} {}", self.transport, self.direction)
    }

    /// The defaults: one TCP flow that sends until the mean is known to ±2 %.
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
            rate_limit_of: None,
            burst_bytes: None,
            omit_s: 0.0,
            peer_output: false,
            data_port: None,
            latency: false,
            arrivals: false,
            quiet: false,
            far_capture: false,
            towards: None,
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

    /// Whether an end sends nothing but payload while it moves: both do if they keep the times of datagrams, which anything else on
    /// the path would change.
    #[must_use]
    pub fn keeps_quiet(&self) -> bool {
        self.arrivals || self.quiet
    }

    /// The rate of one flow, if the plan has a rate.
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
