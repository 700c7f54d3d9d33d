//! What a capture of a test's packets shows (`--pcap`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end_name::EndName;
use crate::plan::Transport;
use crate::shaping::Gaps;
use crate::units::Bytes;

/// Packets that passed a device of this host, as its kernel timed them: outgoing ones behind the queueing discipline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PacketCapture {
    /// The device.
    pub device: String,
    /// The file that has their headers, pcapng.
    pub file: String,
    /// Packets of TCP and UDP in the file that have ports.
    pub packets: u64,
    /// Packets that are missing there because the machine could not keep up.
    pub dropped: u64,
    /// Packets in the file that are not among those below, because there were too many.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_read: u64,
    /// Why the file ends early, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Packets with payload, of each end and transport that sent any.
    pub payload: Vec<CapturedPayload>,
}

/// Packets with payload of one end. The kernel may handle several as one: a super-packet, which is cut up, or was joined, beyond
/// the place of the capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapturedPayload {
    /// The end that sent them.
    pub sender: EndName,
    /// Their transport protocol.
    pub transport: Transport,
    /// How many.
    pub packets: u64,
    /// The largest, from the IP header on.
    pub largest_bytes: Bytes,
    /// The most frequent sizes, the most frequent first.
    pub sizes: Vec<PacketSize>,
    /// Pauses between them.
    pub gaps: Gaps,
}

/// A size, and how many packets have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PacketSize {
    /// From the IP header on.
    pub bytes: Bytes,
    /// How many.
    pub packets: u64,
}

impl PacketCapture {
    /// Whether every packet of the test is in it.
    pub fn is_whole(&self) -> bool {
        self.dropped == 0 && self.not_read == 0 && self.failure.is_none()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}
