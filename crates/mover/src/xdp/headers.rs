//! The headers of a datagram: Ethernet (IEEE 802.3), IPv4 (RFC 791) or IPv6 (RFC 8200), and UDP (RFC 768).

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    EtherType, Ethernet2Header, IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6Header, UdpHeader,
};

/// Headers of a datagram over IPv4, bytes.
const V4_BYTES: usize = Ethernet2Header::LEN + Ipv4Header::MIN_LEN + UdpHeader::LEN;
/// Headers of a datagram over IPv6, bytes.
const V6_BYTES: usize = Ethernet2Header::LEN + Ipv6Header::LEN + UdpHeader::LEN;
/// The longest headers, bytes.
pub(super) const MAX_HEADER_BYTES: usize = V6_BYTES;

/// Shortest Ethernet frame without its check sequence, bytes (`ETH_ZLEN`, include/uapi/linux/if_ether.h). Shorter
/// ones are padded here, as a driver would.
const MIN_FRAME_BYTES: usize = 60;

/// Hardware address of an Ethernet device.
pub(super) type Mac = [u8; 6];

/// Whom the datagrams of one flow come from and go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addressing {
    /// The device's own hardware address.
    pub(super) from_mac: Mac,
    /// The next hop's hardware address.
    pub(super) to_mac: Mac,
    /// The flow's own address and port.
    pub(super) from: SocketAddr,
    /// The peer's, of the same IP version.
    pub(super) to: SocketAddr,
    /// Routers that a datagram may pass.
    pub(super) hops: u8,
    /// Type of service or traffic class: DSCP and ECN (RFC 2474, RFC 3168).
    pub(super) class: u8,
}

impl Addressing {
    /// Bytes of the headers above Ethernet, for datagrams to `to`.
    pub(super) fn overhead(to: SocketAddr) -> usize {
        (if to.is_ipv4() { V4_BYTES } else { V6_BYTES }) - Ethernet2Header::LEN
    }

    /// The headers of datagrams of `size` bytes, at most 65,000.
    pub(super) fn headers(&self, size: usize) -> Headers {
        let length = (UdpHeader::LEN + size) as u16;
        let (source_port, destination_port) = (self.from.port(), self.to.port());
        let udp = UdpHeader { source_port, destination_port, length, checksum: 0 };
        let ether_type = if self.to.is_ipv4() { EtherType::IPV4 } else { EtherType::IPV6 };
        let ethernet =
            Ethernet2Header { source: self.from_mac, destination: self.to_mac, ether_type };
        let mut bytes = ethernet.to_bytes().to_vec();
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                bytes.extend(&self.v4(length, from.octets(), to.octets()).to_bytes());
            }
            (from, to) => bytes.extend(self.v6(length, octets(from), octets(to)).to_bytes()),
        }
        bytes.extend(udp.to_bytes());
        Headers { bytes, udp, ends: (self.from.ip(), self.to.ip()), size }
    }

    /// A datagram that no router may cut has no need of an identification (RFC 6864, section 4).
    fn v4(&self, length: u16, source: [u8; 4], destination: [u8; 4]) -> Ipv4Header {
        let mut header = Ipv4Header {
            dscp: IpDscp::try_new(self.class >> 2).unwrap_or_default(),
            ecn: IpEcn::try_new(self.class & 3).unwrap_or_default(),
            total_len: Ipv4Header::MIN_LEN as u16 + length,
            dont_fragment: true,
            time_to_live: self.hops,
            protocol: IpNumber::UDP,
            source,
            destination,
            ..Ipv4Header::default()
        };
        header.header_checksum = header.calc_header_checksum();
        header
    }

    fn v6(&self, length: u16, source: [u8; 16], destination: [u8; 16]) -> Ipv6Header {
        Ipv6Header {
            traffic_class: self.class,
            payload_length: length,
            next_header: IpNumber::UDP,
            hop_limit: self.hops,
            source,
            destination,
            ..Ipv6Header::default()
        }
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The headers of all datagrams of one size; only the checksum of UDP differs.
#[derive(Debug)]
pub(super) struct Headers {
    bytes: Vec<u8>,
    udp: UdpHeader,
    ends: (IpAddr, IpAddr),
    size: usize,
}

impl Headers {
    /// Where the datagram begins in its frame.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of the datagrams that they are for.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Writes the headers before the datagram that `frame` holds; returns the length of the frame.
    pub(super) fn seal(&self, frame: &mut [u8]) -> usize {
        let (head, rest) = frame.split_at_mut(self.bytes.len());
        head.copy_from_slice(&self.bytes);
        let checksum = self.checksum(&rest[..self.size]).to_be_bytes();
        head[self.bytes.len() - checksum.len()..].copy_from_slice(&checksum);
        let len = self.bytes.len() + self.size;
        if len < MIN_FRAME_BYTES {
            frame[len..MIN_FRAME_BYTES].fill(0);
        }
        len.max(MIN_FRAME_BYTES)
    }

    /// UDP's checksum. IPv4 could do without (RFC 768), but a fault on the path would then count as payload; IPv6 can't
    /// (RFC 8200, section 8.1).
    fn checksum(&self, datagram: &[u8]) -> u16 {
        let sum = match self.ends {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                self.udp.calc_checksum_ipv4_raw(from.octets(), to.octets(), datagram)
            }
            (from, to) => self.udp.calc_checksum_ipv6_raw(octets(from), octets(to), datagram),
        };
        sum.expect("a frame is shorter than 64 KiB")
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{NetHeaders, PacketHeaders, TransportHeader};
    use proptest::prelude::*;

    use super::*;

    fn addressing(from: &str, to: &str) -> Addressing {
        Addressing {
            from_mac: [2, 0, 0, 0, 0, 1],
            to_mac: [2, 0, 0, 0, 0, 2],
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            hops: 63,
            class: 0xb9,
        }
    }

    /// The sum of 16-bit words with the carry added (RFC 1071), which is 0xffff over what holds its own checksum.
    fn folded(parts: &[&[u8]]) -> u32 {
        let all: Vec<u8> = parts.concat();
        let words =
            all.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    fn frame(of: &Addressing, datagram: &[u8]) -> Vec<u8> {
        let headers = of.headers(datagram.len());
        let mut frame = vec![0xee; 4096];
        frame[headers.len()..][..datagram.len()].copy_from_slice(datagram);
        let len = headers.seal(&mut frame);
        frame.truncate(len);
        frame
    }

    #[test]
    fn short_frames_are_padded_with_zeros() {
        let of = addressing("192.0.2.1:4000", "192.0.2.2:5000");
        let short = frame(&of, &[7; 5]);
        assert_eq!((short.len(), &short[47..]), (60, &[0; 13][..]));
        assert_eq!(frame(&of, &[7; 1472]).len(), 1514);
    }

    proptest! {
        #[test]
        fn a_parser_finds_what_was_written_and_the_sums_are_right(
            datagram in proptest::collection::vec(any::<u8>(), 5..1500), v6: bool,
        ) {
            let of = if v6 {
                addressing("[2001:db8::1]:4000", "[2001:db8::2]:5000")
            } else {
                addressing("192.0.2.1:4000", "192.0.2.2:5000")
            };
            let frame = frame(&of, &datagram);
            let found = PacketHeaders::from_ethernet_slice(&frame).unwrap();
            let Some(TransportHeader::Udp(udp)) = &found.transport else { panic!("no UDP") };
            prop_assert_eq!((udp.source_port, udp.destination_port), (4000, 5000));
            prop_assert_eq!(found.payload.slice(), &datagram[..]);
            prop_assert_ne!(udp.checksum, 0);
            let length = udp.length.to_be_bytes();
            let (pseudo, segment) = match &found.net {
                Some(NetHeaders::Ipv4(ip, _)) => {
                    prop_assert_eq!(folded(&[&frame[14..34]]), 0xffff);
                    prop_assert_eq!((ip.time_to_live, ip.dscp.value(), ip.ecn.value()), (63, 46, 1));
                    prop_assert!(ip.dont_fragment);
                    ([&ip.source[..], &ip.destination[..], &[0, 17], &length].concat(), 34)
                }
                Some(NetHeaders::Ipv6(ip, _)) => {
                    prop_assert_eq!((ip.hop_limit, ip.traffic_class), (63, 0xb9));
                    ([&ip.source[..], &ip.destination[..], &[0, 17], &length].concat(), 54)
                }
                _ => panic!("no IP"),
            };
            let end = segment + usize::from(udp.length);
            prop_assert_eq!(folded(&[&pseudo, &frame[segment..end]]), 0xffff);
        }
    }
}
