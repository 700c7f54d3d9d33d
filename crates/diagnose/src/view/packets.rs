//! How large the packets were that a host handed to its device and got from it.

use goodput_model::Missing;

use super::{Side, positive};
use crate::names;

/// Part of a full segment that packets have on average in a stream that the window or the next
/// pause of its writer does not keep cutting short. Acknowledgements of our own are among them.
const MIN_FULL_PACKET_SHARE: f64 = 0.7;
/// A packet this much longer than the device's largest is several in one. Less may be headers that
/// the device's count includes.
const MIN_JOINED_PACKETS_LENGTH_RATIO: f64 = 1.5;

impl Side<'_> {
    /// Mean length of a packet handed to the device between the snapshots, bytes.
    pub fn sent_packet_bytes(&self) -> Result<f64, Missing> {
        self.mean_length(names::LINK_TX_BYTES, names::LINK_TX_PACKETS)
    }

    /// Mean length of a packet that the device handed over between the snapshots, bytes. Before GRO,
    /// which comes after the device.
    pub fn arrived_packet_bytes(&self) -> Result<f64, Missing> {
        self.mean_length(names::LINK_RX_BYTES, names::LINK_RX_PACKETS)
    }

    /// Whether packets of that mean length go one by one, none being several segments in one.
    pub fn are_single(&self, packet_bytes: f64) -> Result<bool, Missing> {
        Ok(packet_bytes
            < MIN_JOINED_PACKETS_LENGTH_RATIO * positive(self.count(names::LINK_MTU)?, "the MTU")?)
    }

    /// Whether packets of that mean length carry full segments, rather than small writes.
    pub fn are_full(packet_bytes: f64, segment_bytes: f64) -> bool {
        packet_bytes >= MIN_FULL_PACKET_SHARE * segment_bytes
    }

    fn mean_length(&self, bytes: &str, packets: &str) -> Result<f64, Missing> {
        let packets = positive(self.grown(packets)? as f64, "the number of packets")?;
        Ok(self.grown(bytes)? as f64 / packets)
    }
}
