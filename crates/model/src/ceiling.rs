//! What a ceiling is computed from, and what comes of it: each bound with its arithmetic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::plan::{Family, Transport};
use crate::units::BitRate;

/// Inputs of the ceiling. An absent input is unknown, not zero, and the bounds that need it are not
/// computed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingInputs {
    /// Transport protocol of the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// IP version of the packets that carry the payload, inside any tunnel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// Largest IP packet of the link, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u64>,
    /// Payload of a TCP segment, bytes, if it is smaller than the MTU allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u64>,
    /// TCP options in each segment, bytes; 12 with timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_option_bytes: Option<u64>,
    /// Payload of a UDP datagram, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagram_bytes: Option<u64>,
    /// Number of connections at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u16>,
    /// Tunnels around the packets, the outermost first, as `goodput ceiling --tunnel` takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnels: Vec<String>,
    /// Largest IP packet inside the tunnels, bytes, if it is smaller than the tunnels allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel_mtu_bytes: Option<u64>,
    /// VLAN tags of each frame (IEEE 802.1Q).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan_tags: Option<u8>,
    /// Framing of the link around an IP packet, as `goodput ceiling --framing` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<String>,
    /// Speed of the slowest link, bits per second, all headers included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bits_per_s: Option<BitRate>,
    /// Whether only one end of the link sends at a time, so that acknowledgements take their share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_duplex: Option<bool>,
    /// Rate of a shaper, bits per second of Ethernet frames without checksum.
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
    /// Model of congestion control under loss: the id of its bound, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_model: Option<String>,
    /// Bus of the network card, as `goodput ceiling --bus` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Clock of the bus, Hz, if it differs from the standard.
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
    /// Longest time in which the host reads nothing from the card's buffer, microseconds.
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
    /// Payload whose transfer time is to be computed, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_bytes: Option<u64>,
}

impl CeilingInputs {
    /// Largest payload of a UDP datagram: 65535 bytes without the headers of IPv4 and UDP (RFC 791, RFC 768).
    pub const MAX_DATAGRAM_BYTES: u64 = 65_507;
}

/// One bound, with the arithmetic that gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingBound {
    /// Kebab-case name, as `goodput list bounds` prints it.
    pub id: String,
    /// The limiting quantity, in a few words.
    pub title: String,
    /// Highest goodput, bits per second, or which input is missing.
    pub bits_per_s: Known<BitRate>,
    /// Why the bound is shown but does not count, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// The arithmetic, in order.
    pub lines: Vec<CeilingLine>,
}

/// One step of the arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingLine {
    /// The quantity that this step computes.
    pub label: String,
    /// The formula with its numbers.
    pub formula: String,
    /// Result of the formula, in `unit`.
    pub value: f64,
    /// Unit of the value: `bytes`, `bit/s`, `s`, `frames`, `packets/s` or `segments`; empty for a ratio.
    pub unit: String,
}

/// An input that this host did not report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingUnread {
    /// The input.
    pub what: String,
    /// Why it is unknown.
    pub because: String,
}

/// The result of `goodput ceiling --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingReport {
    /// Version of this format.
    pub format: u32,
    /// Inputs of the computation.
    pub inputs: CeilingInputs,
    /// Sources on this host from which inputs were read, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Inputs that this host did not report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<CeilingUnread>,
    /// Every requested bound, the lowest first, unknown ones last.
    pub bounds: Vec<CeilingBound>,
    /// Id of the lowest bound.
    pub limit: Known<String>,
    /// The lowest bound, bits per second.
    pub ceiling_bits_per_s: Known<BitRate>,
    /// Transfer time of `inputs.transfer_bytes` at this rate, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_s: Option<f64>,
    /// Measured goodput, bits per second, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_bits_per_s: Option<BitRate>,
    /// Doubts about the computation: a measurement above the ceiling.
    pub doubts: Vec<String>,
}

/// A series of measurements against a clock, fitted as time per byte = fixed + clocks / clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingFit {
    /// Version of this format.
    pub format: u32,
    /// Time per byte that does not depend on the clock, seconds.
    pub fixed_s_per_byte: f64,
    /// Clocks that each byte takes.
    pub clocks_per_byte: f64,
    /// Highest rate at any clock, bits per second.
    pub asymptote_bits_per_s: Known<BitRate>,
    /// The measurements, with the fit's values.
    pub points: Vec<CeilingPoint>,
}

/// One measurement of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingPoint {
    /// Clock, Hz.
    pub clock_hz: f64,
    /// Measured rate, bits per second.
    pub measured_bits_per_s: BitRate,
    /// Rate according to the fit, bits per second.
    pub fitted_bits_per_s: Known<BitRate>,
    /// By how much the fit is above the measurement, percent of the measurement.
    pub off_percent: Known<f64>,
}
