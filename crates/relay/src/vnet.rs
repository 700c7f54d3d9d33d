//! The header that a TUN device with `IFF_VNET_HDR` puts before each packet: how many segments a super-packet stands
//! for, and how many bytes they would take on a wire.
//!
//! Layout: `struct virtio_net_hdr` of include/uapi/linux/virtio_net.h, native byte order for a
//! TUN device: flags u8, gso_type u8, hdr_len u16, gso_size u16, csum_start u16, csum_offset u16.

/// Length of the header, bytes.
pub(super) const HEADER_BYTES: usize = 10;

/// Bytes that Ethernet puts before each packet, as tc(8) counts a packet's length.
pub(super) const ETHERNET_BYTES: u64 = 14;

/// `VIRTIO_NET_HDR_GSO_NONE`.
const GSO_NONE: u8 = 0;

/// Bytes on the wire of a packet as read from the device, starting with its header: the bytes of all its segments, each
/// with its own headers.
pub(super) fn wire_bytes(packet: &[u8]) -> u64 {
    let ip_bytes = packet.len().saturating_sub(HEADER_BYTES) as u64;
    let (extra, headers) = segments_after_the_first(packet).unwrap_or((0, 0));
    ip_bytes + ETHERNET_BYTES + extra * (headers + ETHERNET_BYTES)
}

/// How many further segments a super-packet stands for, and the IP and TCP header bytes that each repeats. `None` for a
/// single packet, or if the headers can't be read.
fn segments_after_the_first(packet: &[u8]) -> Option<(u64, u64)> {
    let header = packet.first_chunk::<HEADER_BYTES>()?;
    let segment_bytes = u64::from(u16::from_ne_bytes([header[4], header[5]]));
    if header[1] == GSO_NONE || segment_bytes == 0 {
        return None;
    }
    let ip = &packet[HEADER_BYTES..];
    let tcp_at = usize::from(u16::from_ne_bytes([header[6], header[7]]));
    // Data offset, RFC 9293 section 3.1: upper four bits of byte 12, in units of four bytes.
    let tcp_bytes = usize::from(ip.get(tcp_at + 12)? >> 4) * 4;
    let headers = (tcp_at + tcp_bytes) as u64;
    let payload = (ip.len() as u64).checked_sub(headers)?;
    Some((payload.div_ceil(segment_bytes).saturating_sub(1), headers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn super_packet(payload: usize, segment_bytes: u16) -> Vec<u8> {
        let mut packet = vec![1, 1, 0, 0];
        packet.extend(segment_bytes.to_ne_bytes());
        packet.extend(20u16.to_ne_bytes());
        packet.extend(16u16.to_ne_bytes());
        let mut ip = vec![0; 52 + payload];
        ip[32] = 8 << 4;
        packet.extend(ip);
        packet
    }

    #[test]
    fn each_segment_brings_its_own_headers() {
        assert_eq!(wire_bytes(&super_packet(1448, 1448)), 1514);
        assert_eq!(wire_bytes(&super_packet(14480, 1448)), 15140);
        assert_eq!(wire_bytes(&super_packet(1449, 1448)), 1514 + 67);
    }

    #[test]
    fn a_plain_packet_is_its_own_length() {
        let mut packet = vec![0; HEADER_BYTES];
        packet.extend([0x45; 100]);
        assert_eq!(wire_bytes(&packet), 114);
    }

    proptest! {
        #[test]
        fn no_header_is_too_strange(packet in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(wire_bytes(&packet) >= ETHERNET_BYTES);
        }
    }
}
