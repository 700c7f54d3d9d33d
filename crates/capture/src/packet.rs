//! What the headers of a packet say.

use etherparse::{LaxPacketHeaders, TransportHeader};

/// A packet that passed the device, or several that the kernel handles as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The kernel's time of it, nanoseconds since 1970.
    pub at_ns: u64,
    /// Port from which it comes.
    pub from_port: u16,
    /// Port to which it goes.
    pub to_port: u16,
    /// Whether it is TCP, and not UDP.
    pub is_tcp: bool,
    /// Bytes from the IP header on.
    pub bytes: u32,
    /// Bytes of payload of TCP or UDP in them.
    pub payload: u32,
}

impl Packet {
    /// How many of a packet's first bytes, from the IP header on, are headers of IP, TCP and UDP. The rest is payload, which may
    /// be anybody's secret.
    pub fn header_bytes(head: &[u8]) -> usize {
        let Ok(headers) = LaxPacketHeaders::from_ip(head) else { return 0 };
        let net = headers.net.map_or(0, |net| net.header_len());
        let transport = headers.transport.map_or(0, |transport| transport.header_len());
        (net + transport).min(head.len())
    }

    /// Reads the first bytes of a packet of `bytes` in all, from the IP header on. `None` if it is neither TCP nor UDP, or if its
    /// ports are not in there, as in a later fragment.
    pub fn read(head: &[u8], bytes: u32, at_ns: u64) -> Option<Self> {
        let headers = LaxPacketHeaders::from_ip(head).ok()?;
        let (net, transport) = (headers.net?, headers.transport?);
        let (is_tcp, from_port, to_port) = match &transport {
            TransportHeader::Tcp(tcp) => (true, tcp.source_port, tcp.destination_port),
            TransportHeader::Udp(udp) => (false, udp.source_port, udp.destination_port),
            _ => return None,
        };
        let all = net.header_len() + transport.header_len();
        let payload = bytes.saturating_sub(u32::try_from(all).ok()?);
        Some(Self { at_ns, from_port, to_port, is_tcp, bytes, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    fn segment(payload: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(40_000, 7487, 1, 1000)
            .write(&mut bytes, &vec![7; payload])
            .unwrap();
        bytes
    }

    #[test]
    fn a_head_says_what_the_whole_packet_is() {
        let whole = segment(1448);
        let read = Packet::read(&whole[..128], whole.len() as u32, 5).unwrap();
        let expected = Packet {
            at_ns: 5,
            from_port: 40_000,
            to_port: 7487,
            is_tcp: true,
            bytes: 1488,
            payload: 1448,
        };
        assert_eq!(read, expected);
        // A super-packet is longer than its IP header may say (net/ipv4/ip_output.c of BIG TCP writes 0).
        let mut large = segment(0);
        large[2..4].copy_from_slice(&[0, 0]);
        let read = Packet::read(&large, 100_040, 5).unwrap();
        assert_eq!((read.bytes, read.payload), (100_040, 100_000));
    }

    #[test]
    fn headers_end_where_payload_begins() {
        let whole = segment(1448);
        assert_eq!(Packet::header_bytes(&whole[..128]), 40);
        assert_eq!(Packet::header_bytes(&whole[..30]), 20, "half of a TCP header is none");
        assert_eq!(Packet::header_bytes(&[7; 128]), 0, "nothing is known of this");
    }

    #[test]
    fn datagrams_of_ipv6_have_their_own_headers() {
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1, 2);
        builder.write(&mut bytes, &[7; 100]).unwrap();
        let read = Packet::read(&bytes, bytes.len() as u32, 0).unwrap();
        assert_eq!((read.is_tcp, read.bytes, read.payload), (false, 148, 100));
        assert_eq!(Packet::read(&bytes[..44], 148, 0), None, "its ports are cut off");
    }

    #[test]
    fn an_extension_header_of_ipv6_hides_no_port() {
        // Hop-by-hop options, as a super-packet above 64 KiB has them (RFC 2675), before a UDP header.
        let mut bytes = vec![0x60, 0, 0, 0, 0, 16, 0, 64];
        bytes.extend([1; 32]);
        bytes.extend([17, 0, 0xc2, 4, 0, 1, 0x86, 0xa0]);
        bytes.extend([0, 1, 0, 2, 0, 0, 0, 0]);
        let read = Packet::read(&bytes, 100_056, 0).unwrap();
        assert_eq!((read.from_port, read.to_port, read.payload), (1, 2, 100_000));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(head: Vec<u8>, bytes: u32) {
            if let Some(packet) = Packet::read(&head, bytes, 0) {
                prop_assert!(packet.payload <= packet.bytes);
            }
        }

        #[test]
        fn no_cut_or_changed_head_makes_it_panic(at in 0usize..128, to: u8, cut in 0usize..129) {
            let mut head = segment(100);
            head[at] = to;
            let _ = Packet::read(&head[..cut.min(head.len())], 140, 0);
        }
    }
}
