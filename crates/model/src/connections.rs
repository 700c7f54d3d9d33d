//! What the TCP connections of a host did between two readings.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::{AccountPart, Limiter};
use crate::known::Known;
use crate::place::Place;
use crate::sample::Role;
use crate::units::BitRate;

/// The TCP connections of a network namespace, and what they did between two readings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Time of the second reading, RFC 3339, UTC.
    pub at: String,
    /// Time between the two readings, seconds.
    pub seconds: f64,
    /// Connections that both readings found.
    pub connections: Vec<ConnectionActivity>,
}

/// What one connection did between two readings, as seen from this host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionActivity {
    /// Address and port at this host.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub peer: SocketAddr,
    /// The process that has the connection. Only root sees other users' processes.
    pub program: Known<Program>,
    /// Whether the connection moved no payload, and no payload waited in either direction.
    pub idle: bool,
    /// Payload that the peer acknowledged, bits per second.
    pub sent_bits_per_s: BitRate,
    /// Payload that arrived, bits per second.
    pub received_bits_per_s: BitRate,
    /// Whether this host mostly sent or mostly received.
    pub role: Role,
    /// Smoothed round-trip time at the second reading, microseconds.
    pub rtt_us: Known<u64>,
    /// Share of the sent segments that were retransmissions, percent.
    pub retransmitted_percent: Known<f64>,
    /// Name of the congestion control.
    pub congestion: Known<String>,
    /// What limited the connection, the longest first.
    pub limits: Known<Vec<AccountPart>>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Process id.
    pub pid: u32,
    /// Name of the process; the kernel cuts it to 15 bytes.
    pub name: String,
}

/// What the connections that were not idle did over some time, all together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionSummary {
    /// Time of the last reading, RFC 3339, UTC.
    pub at: String,
    /// Time that is summed up, seconds.
    pub seconds: f64,
    /// By what limited them, the longest first.
    pub by_limiter: Vec<ConnectionGroup>,
    /// By peer, the fastest first.
    pub by_peer: Vec<ConnectionGroup>,
}

/// Connections with a limiter or a peer in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionGroup {
    /// The peer that they have in common, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<IpAddr>,
    /// What limited them longest; absent if that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<HeldBy>,
    /// Most of them at one reading.
    pub connections: usize,
    /// Mean of their payload in both directions, all together, bits per second.
    pub bits_per_s: BitRate,
    /// Share of the time of all connections that is theirs, 0 to 1.
    pub share: f64,
}

/// What limited connections, and where it is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct HeldBy {
    /// What limited them.
    pub limiter: Limiter,
    /// Where it is: this host is near.
    pub end: Place,
}

impl ConnectionActivity {
    /// Payload of both directions together, bits per second.
    pub fn rate(&self) -> BitRate {
        BitRate(self.sent_bits_per_s.0 + self.received_bits_per_s.0)
    }

    /// What limited the connection longest, if known.
    pub fn limit(&self) -> Option<&AccountPart> {
        self.limits.value().and_then(|parts| parts.first())
    }
}
