//! The sizes of packets that a host handed to its device and received from it.

use goodput_model::Missing;

use super::{Side, positive};
use crate::names;

/// Mean share of a full segment that packets carry, if neither the window nor the writer's next
/// pause keeps cutting the stream short. Our own acknowledgements are included.
const MIN_FULL_PACKET_SHARE: f64 = 0.7;
/// A packet this many times longer than the device's largest is several in one. Less may be headers that
/// the device's count includes.
const MIN_JOINED_PACKETS_LENGTH_RATIO: f64 = 1.5;

impl Side<'_> {
    /// Mean length of a packet handed to the device between the snapshots, bytes.
    pub fn sent_packet_bytes(&self) -> Result<f64, Missing> {
        self.mean_length(names::LINK_TX_BYTES, names::LINK_TX_PACKETS)
    }

    /// Mean length of a packet that the device handed over between the snapshots, bytes. This is before GRO,
    /// which comes after the device.
    pub fn arrived_packet_bytes(&self) -> Result<f64, Missing> {
        self.mean_length(names::LINK_RX_BYTES, names::LINK_RX_PACKETS)
    }

    /// Whether packets of this mean length are single packets, not several segments in one.
    pub fn are_single(&self, packet_bytes: f64) -> Result<bool, Missing> {
        Ok(packet_bytes
            < MIN_JOINED_PACKETS_LENGTH_RATIO * positive(self.count(names::LINK_MTU)?, "the MTU")?)
    }

    /// Whether packets of this mean length carry full segments, rather than small writes.
    pub fn are_full(packet_bytes: f64, segment_bytes: f64) -> bool {
        packet_bytes >= MIN_FULL_PACKET_SHARE * segment_bytes
    }

    fn mean_length(&self, bytes: &str, packets: &str) -> Result<f64, Missing> {
        let packets = positive(self.grown(packets)? as f64, "the number of packets")?;
        Ok(self.grown(bytes)? as f64 / packets)
    }
}
