//! What a ceiling is computed from, and what comes of it: each bound with its arithmetic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::plan::{Family, Transport};
use crate::units::BitRate;

/// What a ceiling is computed from. What is absent was not given, so the bounds that need it are not
/// computed; nothing is taken to be zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingInputs {
    /// What carries the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// IP version of the packets that carry the payload, inside any tunnel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// Largest IP packet of the link, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u64>,
    /// Payload of a TCP segment, if it is smaller than what the MTU leaves, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u64>,
    /// TCP options in each segment, bytes; 12 with timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_option_bytes: Option<u64>,
    /// Payload of a UDP datagram, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagram_bytes: Option<u64>,
    /// Connections at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u16>,
    /// Tunnels that the packets are in, the outermost first, as `goodput ceiling --tunnel` takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnels: Vec<String>,
    /// Largest IP packet inside the tunnels, if it is smaller than what they leave, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel_mtu_bytes: Option<u64>,
    /// VLAN tags of each frame (IEEE 802.1Q).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan_tags: Option<u8>,
    /// What the link puts around an IP packet, as `goodput ceiling --framing` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<String>,
    /// Speed of the slowest link, with all that it puts around payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bits_per_s: Option<BitRate>,
    /// Whether only one end of the link sends at a time, so that acknowledgements take their share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_duplex: Option<bool>,
    /// Rate of a shaper that counts Ethernet frames without their checksum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper_bits_per_s: Option<BitRate>,
    /// Payload that one connection may have in flight, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// Round-trip time, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<f64>,
    /// Segments that are lost, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_percent: Option<f64>,
    /// The model of congestion control that counts: the id of its bound, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_model: Option<String>,
    /// Bus of the network card, as `goodput ceiling --bus` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Clock of the bus, Hz, if it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_clock_hz: Option<f64>,
    /// Largest payload of a PCI Express packet, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_payload_bytes: Option<u64>,
    /// Frames that the card's receive ring holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring_frames: Option<u64>,
    /// Bytes that the card's receive buffer holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_bytes: Option<u64>,
    /// Frames that arrive without a pause between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_frames: Option<u64>,
    /// Longest time in which the host takes nothing out of the card's buffer, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_gap_us: Option<f64>,
    /// Packets that a host or device handles at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_per_s: Option<f64>,
    /// Times per second that the card is polled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls_per_s: Option<f64>,
    /// Packets that each poll takes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_packets: Option<u64>,
    /// Payload whose transfer time is asked for, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_bytes: Option<u64>,
}

impl CeilingInputs {
    /// Payload of a UDP datagram at most: what the headers of IPv4 and UDP leave of 65535 bytes (RFC 791, RFC 768).
    pub const MAX_DATAGRAM_BYTES: u64 = 65_507;
}

/// One bound, with the arithmetic that gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingBound {
    /// Kebab-case name, as `goodput list bounds` prints it.
    pub id: String,
    /// What bounds, in a few words.
    pub title: String,
    /// Goodput at best, or what is missing to compute it.
    pub bits_per_s: Known<BitRate>,
    /// Why it is shown but does not count, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// The arithmetic, in order.
    pub lines: Vec<CeilingLine>,
}

/// One step of the arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingLine {
    /// What was computed.
    pub label: String,
    /// The formula with its numbers.
    pub formula: String,
    /// What it gives.
    pub value: f64,
    /// Unit of the value: `bytes`, `bit/s`, `s`, `frames`, `packets/s` or `segments`; empty for a ratio.
    pub unit: String,
}

/// Something that this host was asked for and did not report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingUnread {
    /// What was wanted.
    pub what: String,
    /// Why it is unknown.
    pub because: String,
}

/// The result of `goodput ceiling --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingReport {
    /// Version of this format.
    pub format: u32,
    /// What it is computed from.
    pub inputs: CeilingInputs,
    /// Sources on this host from which inputs were read, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// What this host did not report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<CeilingUnread>,
    /// Every bound that was asked for, the lowest first, those that are unknown last.
    pub bounds: Vec<CeilingBound>,
    /// Id of the lowest bound.
    pub limit: Known<String>,
    /// The lowest bound.
    pub ceiling_bits_per_s: Known<BitRate>,
    /// Time that the payload of `inputs.transfer_bytes` takes at this rate, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_s: Option<f64>,
    /// The goodput that was measured, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_bits_per_s: Option<BitRate>,
    /// What speaks against the arithmetic: a measurement above it.
    pub doubts: Vec<String>,
}

/// A series of measurements against a clock, fitted as time per byte = fixed + clocks / clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingFit {
    /// Version of this format.
    pub format: u32,
    /// The part of the time per byte that no clock shortens, seconds.
    pub fixed_s_per_byte: f64,
    /// Clocks that each byte takes.
    pub clocks_per_byte: f64,
    /// The rate that no clock exceeds.
    pub asymptote_bits_per_s: Known<BitRate>,
    /// The measurements beside what the fit gives for them.
    pub points: Vec<CeilingPoint>,
}

/// One measurement of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingPoint {
    /// Clock, Hz.
    pub clock_hz: f64,
    /// What was measured.
    pub measured_bits_per_s: BitRate,
    /// What the fit gives.
    pub fitted_bits_per_s: Known<BitRate>,
    /// By how much the fit is above the measurement, percent of the measurement.
    pub off_percent: Known<f64>,
}
