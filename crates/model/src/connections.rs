//! What the TCP connections of a host did between two looks.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::AccountPart;
use crate::known::Known;
use crate::sample::Role;
use crate::units::BitRate;

/// The TCP connections of a network namespace, between two looks at them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Time of the second look, RFC 3339, UTC.
    pub at: String,
    /// Time since the first look, seconds.
    pub seconds: f64,
    /// Connections that are in both looks.
    pub connections: Vec<ConnectionActivity>,
}

/// What one connection did between two looks, as seen from this host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionActivity {
    /// Address and port at this host.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub peer: SocketAddr,
    /// The process that holds it. Other users' processes are visible to root only.
    pub program: Known<Program>,
    /// Whether it moved no payload, and none waited in either direction.
    pub idle: bool,
    /// Payload that the peer acknowledged, bits per second.
    pub sent_bits_per_s: BitRate,
    /// Payload that arrived, bits per second.
    pub received_bits_per_s: BitRate,
    /// Whether it mostly sent or mostly received.
    pub role: Role,
    /// Smoothed round trip time at the second look, microseconds.
    pub rtt_us: Known<u64>,
    /// Retransmitted share of the segments that it sent, percent.
    pub retransmitted_percent: Known<f64>,
    /// Congestion control.
    pub congestion: Known<String>,
    /// What limited it, the longest first.
    pub limits: Known<Vec<AccountPart>>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Process id.
    pub pid: u32,
    /// Name, which the kernel cuts to 15 bytes.
    pub name: String,
}

impl ConnectionActivity {
    /// Payload in both directions, bits per second.
    pub fn rate(&self) -> BitRate {
        BitRate(self.sent_bits_per_s.0 + self.received_bits_per_s.0)
    }

    /// What limited it longest, if that is known.
    pub fn limit(&self) -> Option<&AccountPart> {
        self.limits.value().and_then(|parts| parts.first())
    }
}
