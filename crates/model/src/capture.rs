//! What a capture of a test's packets shows (`--pcap`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end_name::EndName;
use crate::plan::Transport;
use crate::shaping::Gaps;
use crate::units::Bytes;

/// Packets that passed a device of one host, with its kernel's timestamps; outgoing packets after the queueing discipline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PacketCapture {
    /// Name of the network device at which the packets were captured.
    pub device: String,
    /// Path of the pcapng file with the packets' headers.
    pub file: String,
    /// Number of TCP and UDP packets in the file that have ports.
    pub packets: u64,
    /// Packets missing from the file because the capturing host could not keep up.
    pub dropped: u64,
    /// Packets in the file that were not analyzed, because there were too many.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_read: u64,
    /// Packets missing from the file because the far host keeps a limited number of them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_kept: u64,
    /// Why the file ends early, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Packets with payload, by sender and transport.
    pub payload: Vec<CapturedPayload>,
}

/// Packets with payload from one end. The kernel may handle several as one super-packet, which it splits after the
/// capture or joined before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapturedPayload {
    /// The end that sent these packets.
    pub sender: EndName,
    /// Transport protocol of these packets.
    pub transport: Transport,
    /// Number of packets.
    pub packets: u64,
    /// Size of the largest packet, IP header included.
    pub largest_bytes: Bytes,
    /// The most frequent packet sizes, the most frequent first.
    pub sizes: Vec<PacketSize>,
    /// Pauses between these packets.
    pub gaps: Gaps,
}

/// A packet size, and the number of packets of this size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PacketSize {
    /// Size of a packet, IP header included.
    pub bytes: Bytes,
    /// Number of packets of this size.
    pub packets: u64,
}

impl PacketCapture {
    /// Whether every packet of the test is in it.
    pub fn is_whole(&self) -> bool {
        self.dropped == 0 && self.not_read == 0 && self.not_kept == 0 && self.failure.is_none()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}
