//! Congestion marks in IP headers (RFC 3168): a router that would drop a packet marks it instead, if both ends of its
//! flow have agreed to this.

/// The two bits of the traffic class, and their value "congestion experienced".
const ECN_BITS: u8 = 0b11;

/// Marks an IP packet, which starts with its IP header. False if its flow does not support marks.
pub(super) fn mark(packet: &mut [u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= 20 => mark_v4(packet),
        Some(6) if packet.len() >= 40 => mark_v6(packet),
        _ => false,
    }
}

fn mark_v4(packet: &mut [u8]) -> bool {
    let old = packet[1];
    if old & ECN_BITS == 0 {
        return false;
    }
    packet[1] = old | ECN_BITS;
    // RFC 1624, equation 3: HC' = ~(~HC + ~m + m'), in one's complement.
    let was = u16::from_be_bytes([packet[0], old]);
    let is = u16::from_be_bytes([packet[0], packet[1]]);
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let sum = u32::from(!checksum) + u32::from(!was) + u32::from(is);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    true
}

/// Version 4 bits, traffic class 8, flow label 20; no checksum (RFC 8200 section 3).
fn mark_v6(packet: &mut [u8]) -> bool {
    let capable = packet[1] >> 4 & ECN_BITS != 0;
    if capable {
        packet[1] |= ECN_BITS << 4;
    }
    capable
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One's complement sum of the header; all ones if the checksum is right (RFC 791).
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    proptest! {
        #[test]
        fn the_checksum_stays_right(mut header: [u8; 20], class in 1u8..4) {
            header[0] = 0x45;
            header[1] = header[1] & !3 | class;
            header[10..12].fill(0);
            let checksum = !sum(&header);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            prop_assert!(mark(&mut header));
            prop_assert_eq!(header[1] & 3, 3);
            prop_assert_eq!(sum(&header), 0xffff);
        }

        #[test]
        fn no_packet_is_too_strange(mut packet in proptest::collection::vec(any::<u8>(), 0..60)) {
            mark(&mut packet);
        }
    }

    #[test]
    fn who_does_not_understand_marks_gets_none() {
        let mut v4 = [0; 20];
        v4[0] = 0x45;
        assert!(!mark(&mut v4));
        let mut v6 = [0; 40];
        v6[0] = 0x60;
        assert!(!mark(&mut v6));
        v6[1] = 0x20;
        assert!(mark(&mut v6));
        assert_eq!(v6[..2], [0x60, 0x30]);
    }
}
