//! The byte of an IP header that contains the differentiated services code point (RFC 2474) and, in its lowest
//! bits, the congestion marks (RFC 3168): type of service in IPv4, traffic class in IPv6.

/// Highest code point: 6 bits.
pub const MAX_DSCP: u8 = 63;

/// The bits of the congestion marks, which the network sets.
pub const ECN_MASK: u8 = 0b11;

/// The byte with this code point and without a mark.
pub fn traffic_class(dscp: u8) -> u8 {
    dscp << ECN_MASK.count_ones()
}

/// The code point in this byte.
pub fn dscp(traffic_class: u8) -> u8 {
    traffic_class >> ECN_MASK.count_ones()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_holds_a_code_point_whatever_its_marks() {
        assert_eq!(traffic_class(46), 184);
        assert_eq!([184, 184 | ECN_MASK, u8::MAX].map(dscp), [46, 46, MAX_DSCP]);
    }
}
