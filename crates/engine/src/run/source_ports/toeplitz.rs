//! The Toeplitz hash, with which cards choose the receive queue of a packet (Microsoft, "RSS hashing
//! types" and "Verifying the RSS hash calculation", NDIS documentation).

use std::net::{IpAddr, SocketAddr};

/// The hash of a packet from `source` to `destination` under `key`, of at least 40 bytes; `None` if
/// their IP versions differ.
pub fn of_packet(key: &[u8], source: SocketAddr, destination: SocketAddr) -> Option<u32> {
    let mut input = match (source.ip().to_canonical(), destination.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => [from.octets(), to.octets()].concat(),
        (IpAddr::V6(from), IpAddr::V6(to)) => [from.octets(), to.octets()].concat(),
        _ => return None,
    };
    input.extend([source, destination].map(|end| end.port().to_be_bytes()).concat());
    Some(hash(key, &input))
}

/// XORs, for each set bit of the input, the 32 bits of the key that begin at the bit's position. A key
/// that is too short ends in zeros.
fn hash(key: &[u8], input: &[u8]) -> u32 {
    let byte = |at: usize| key.get(at).copied().unwrap_or(0);
    let mut window = u32::from_be_bytes([0, 1, 2, 3].map(byte));
    let mut hash = 0;
    for (at, bits) in input.iter().enumerate() {
        let next = byte(at + 4);
        for bit in (0..8).rev() {
            if bits >> bit & 1 == 1 {
                hash ^= window;
            }
            window = window << 1 | u32::from(next >> bit & 1);
        }
    }
    hash
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The key of the published test vectors.
    pub const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    fn of(source: &str, destination: &str) -> u32 {
        of_packet(&KEY, source.parse().unwrap(), destination.parse().unwrap()).unwrap()
    }

    /// "Verifying the RSS Hash Calculation", the tables for IPv4 and IPv6, with TCP.
    #[test]
    fn it_is_that_of_the_published_vectors() {
        for (source, destination, hash) in [
            ("66.9.149.187:2794", "161.142.100.80:1766", 0x51cc_c178),
            ("199.92.111.2:14230", "65.69.140.83:4739", 0xc626_b0ea),
            ("24.19.198.95:12898", "12.22.207.184:38024", 0x5c2b_394a),
            ("38.27.205.30:48228", "209.142.163.6:2217", 0xafc7_327f),
            ("153.39.163.191:44251", "202.188.127.2:1303", 0x10e8_28a2),
            ("[3ffe:2501:200:1fff::7]:2794", "[3ffe:2501:200:3::1]:1766", 0x4020_7d3d),
            ("[3ffe:501:8::260:97ff:fe40:efab]:14230", "[ff02::1]:4739", 0xdde5_1bbf),
            (
                "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
                "[fe80::200:f8ff:fe21:67cf]:38024",
                0x02d1_feef,
            ),
        ] {
            assert_eq!(of(source, destination), hash, "{source} {destination}");
        }
    }

    #[test]
    fn addresses_of_two_versions_are_no_packet() {
        let [v4, v6] = ["192.0.2.1:1", "[2001:db8::1]:1"].map(|text| text.parse().unwrap());
        assert_eq!(of_packet(&KEY, v4, v6), None);
        let mapped = "[::ffff:192.0.2.1]:1".parse().unwrap();
        assert_eq!(of_packet(&KEY, mapped, v4), of_packet(&KEY, v4, v4));
    }
}
