//! The payload of a packet, and the bytes that the packet takes on the way.

use goodput_model::{CeilingInputs, Family, Missing, Transport};

use crate::inputs::{count, given};
use crate::lines::{Lines, number};
use crate::tunnels;

/// Preamble, header, frame check sequence and inter-frame gap of an Ethernet frame, bytes
/// (IEEE 802.3).
pub const WIRE_EXTRA_BYTES: f64 = crate::framings::ETHERNET.bytes;
/// Header of an Ethernet frame, bytes: what a card reads and writes, and a queueing discipline counts, beside
/// the IP packet.
pub const ETHERNET_HEADER_BYTES: f64 = goodput_model::ETHERNET_HEADER_BYTES as f64;
/// Timestamps in each segment, with their padding, bytes (RFC 7323 appendix A).
pub const TIMESTAMPS_BYTES: u64 = 12;

/// Longest IPv4 packet, bytes: its length has 16 bits (RFC 791 section 3.1).
const MAX_IPV4_PACKET_BYTES: f64 = 65_535.0;
/// Header of a TCP segment without options, bytes (RFC 9293).
const TCP_HEADER_BYTES: f64 = 20.0;
/// Most bytes of options in a segment: its header has at most 60 (RFC 9293).
const MAX_TCP_OPTIONS_BYTES: u64 = 40;
/// Header of a datagram, bytes (RFC 768).
const UDP_HEADER_BYTES: f64 = 8.0;

/// One segment or datagram as the path carries it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packet {
    /// Payload, bytes.
    pub payload: f64,
    /// IP packets that carry it on the link, headers and tunnels included, bytes.
    pub ip: f64,
    /// Number of these packets.
    pub frames: f64,
}

impl Packet {
    /// The largest packets that these inputs allow.
    pub fn of(inputs: &CeilingInputs) -> Result<Self, Missing> {
        Self::worked_out(inputs, &mut Lines::default())
    }

    /// The same, with its arithmetic.
    pub fn worked_out(inputs: &CeilingInputs, lines: &mut Lines) -> Result<Self, Missing> {
        let mut tunnels = through(inputs, lines)?;
        let family = inputs.family.ok_or_else(|| Missing::because("no IP version was given"))?;
        let ip = match family {
            Family::V4 => Header { bytes: 20.0, name: "IPv4" },
            Family::V6 => Header { bytes: 40.0, name: "IPv6" },
        };
        // IPv6 does not count its own header (RFC 8200 section 3); the loopback device carries more.
        let longest = MAX_IPV4_PACKET_BYTES + if family == Family::V6 { ip.bytes } else { 0.0 };
        tunnels.room = tunnels.room.map(|room| room.min(longest));
        match inputs.transport {
            Some(Transport::Tcp) => segment(inputs, &ip, &tunnels, lines),
            Some(Transport::Udp) => datagram(inputs, &ip, &tunnels, lines),
            None => Err(Missing::because("no transport protocol was given")),
        }
    }

    /// Payload as a share of what is counted, if `extra` bytes are counted with each IP packet.
    pub fn share(&self, extra: f64) -> f64 {
        self.payload / self.counted(extra)
    }

    /// All bytes that are counted for it, if `extra` bytes are counted with each IP packet.
    pub fn counted(&self, extra: f64) -> f64 {
        self.ip + self.frames * extra
    }

    /// Length of one frame as a queueing discipline counts it, bytes.
    pub fn counted_frame(&self) -> f64 {
        self.ip / self.frames + ETHERNET_HEADER_BYTES
    }
}

/// An IP header.
struct Header {
    bytes: f64,
    name: &'static str,
}

/// What the tunnels leave.
struct Inside {
    /// Largest packet inside them, if the MTU is known, bytes.
    room: Option<f64>,
    /// What they add to each packet, bytes.
    bytes: f64,
}

fn through(inputs: &CeilingInputs, lines: &mut Lines) -> Result<Inside, Missing> {
    let mut room = match inputs.mtu_bytes {
        Some(mtu) => Some(count(Some(mtu), "MTU")?),
        None => None,
    };
    let mut bytes = 0.0;
    for name in &inputs.tunnels {
        let tunnel = tunnels::find(name)?;
        bytes += tunnel.bytes();
        if let Some(outer) = room {
            let inner = outer - tunnel.bytes();
            if inner <= 0.0 {
                let needs = number(tunnel.bytes());
                return Err(Missing::because(format!(
                    "{} bytes have no room for the {needs} bytes of {name}",
                    number(outer)
                )));
            }
            let formula =
                format!("{} - {} ({})", number(outer), number(tunnel.bytes()), tunnel.parts());
            room = Some(lines.add(&format!("in {name}"), formula, inner, "bytes"));
        }
    }
    let limited = inputs.tunnel_mtu_bytes.filter(|_| !inputs.tunnels.is_empty());
    let Some(inner) = limited else { return Ok(Inside { room, bytes }) };
    let inner = count(Some(inner), "MTU of the tunnel")?;
    if room.is_some_and(|room| inner > room) {
        return Err(Missing::because(format!(
            "packets of {} bytes take {} in the tunnel, more than the link's MTU, and are cut in two",
            number(inner),
            number(inner + bytes)
        )));
    }
    Ok(Inside { room: Some(inner), bytes })
}

fn segment(
    inputs: &CeilingInputs,
    ip: &Header,
    inside: &Inside,
    lines: &mut Lines,
) -> Result<Packet, Missing> {
    let options = inputs.tcp_option_bytes;
    let options = options.ok_or_else(|| Missing::because("no TCP options were given"))?;
    if options > MAX_TCP_OPTIONS_BYTES {
        return Err(Missing::because(format!(
            "a segment has no room for {options} bytes of options"
        )));
    }
    let headers = ip.bytes + TCP_HEADER_BYTES + options as f64;
    let most = inside.room.map(|room| room - headers);
    if let Some(room) = inside.room.filter(|room| *room <= headers) {
        let (room, headers) = (number(room), number(headers));
        return Err(Missing::because(format!(
            "{room} bytes have no room for {headers} bytes of headers"
        )));
    }
    let asked = inputs.mss_bytes.map(|mss| count(Some(mss), "segment size")).transpose()?;
    let payload = match (asked, most) {
        (Some(asked), Some(most)) => asked.min(most),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return Err(Missing::because("no MTU was given")),
    };
    let packet = payload + headers;
    let parts = [
        format!("{} ({})", number(ip.bytes), ip.name),
        "20 (TCP)".into(),
        format!("{options} (options)"),
    ];
    let left = format!("{} - {}", number(inside.room.unwrap_or(packet)), parts.join(" - "));
    // The smaller of the two counts: say so if they differ.
    match asked.filter(|asked| most.is_some_and(|most| most != *asked)) {
        Some(asked) => {
            let formula = format!("min({} (MSS), {left})", number(asked));
            lines.add("payload", formula, payload, "bytes");
            let formula = format!("{} + {}", number(payload), parts.join(" + "));
            lines.add("IP packet", formula, packet, "bytes");
        }
        None => {
            lines.add("payload", left, payload, "bytes");
        }
    }
    Ok(Packet { payload, ip: packet + inside.bytes, frames: 1.0 })
}

fn datagram(
    inputs: &CeilingInputs,
    ip: &Header,
    inside: &Inside,
    lines: &mut Lines,
) -> Result<Packet, Missing> {
    let room = inside.room.ok_or_else(|| Missing::because("no MTU was given"))?;
    let whole = room - ip.bytes - UDP_HEADER_BYTES;
    let payload = match inputs.datagram_bytes {
        Some(bytes) if bytes > CeilingInputs::MAX_DATAGRAM_BYTES => {
            let most = CeilingInputs::MAX_DATAGRAM_BYTES;
            return Err(Missing::because(format!("a datagram carries 1 to {most} bytes")));
        }
        Some(bytes) => count(Some(bytes), "size of a datagram")?,
        None => given(Some(whole), "room for a datagram")?,
    };
    // Fragments but the last carry multiples of 8 bytes (RFC 791 section 3.2).
    let fragment = ((room - ip.bytes) / 8.0).floor() * 8.0;
    let frames = match payload {
        payload if payload <= whole => 1.0,
        _ => ((payload + UDP_HEADER_BYTES) / given(Some(fragment), "room in a fragment")?).ceil(),
    };
    let each = ip.bytes + inside.bytes;
    let packet = Packet { payload, ip: payload + UDP_HEADER_BYTES + frames * each, frames };
    let (payload, each, frames) = (number(payload), number(each), number(frames));
    let formula = format!("{payload} + 8 (UDP) + {frames} × {each} (headers)");
    lines.add("IP packets", formula, packet.ip, "bytes");
    Ok(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TCP with timestamps over IPv4 and an MTU of 1500.
    fn tcp() -> CeilingInputs {
        CeilingInputs {
            transport: Some(Transport::Tcp),
            family: Some(Family::V4),
            mtu_bytes: Some(1500),
            tcp_option_bytes: Some(TIMESTAMPS_BYTES),
            ..CeilingInputs::default()
        }
    }

    /// Shares worked out from IEEE 802.3 and the headers' RFCs.
    #[test]
    fn the_published_table_is_met() {
        for (mtu, family, options, vlan, published) in [
            (576, Family::V4, 0, 0.0, 0.8730),
            (1500, Family::V4, 0, 0.0, 0.9493),
            (1500, Family::V4, 12, 0.0, 0.9415),
            (1500, Family::V6, 12, 0.0, 0.9285),
            (1500, Family::V4, 12, 4.0, 0.9390),
            (9000, Family::V4, 12, 0.0, 0.9900),
        ] {
            let inputs = CeilingInputs {
                family: Some(family),
                mtu_bytes: Some(mtu),
                tcp_option_bytes: Some(options),
                ..tcp()
            };
            let got = Packet::of(&inputs).unwrap().share(WIRE_EXTRA_BYTES + vlan);
            assert!((got - published).abs() < 1e-4, "{mtu} {got} {published}");
        }
    }

    /// Inner MTU and share of payload for each tunnel over an MTU of 1500.
    #[test]
    fn tunnels_take_what_their_documents_say() {
        for (tunnel, inner, share) in [
            ("ipip", 1480.0, 0.9285),
            ("gre", 1476.0, 0.9259),
            ("gre-key", 1472.0, 0.9233),
            ("pppoe", 1492.0, 0.9363),
            ("vxlan", 1450.0, 0.9090),
            ("vxlan6", 1430.0, 0.8960),
            ("geneve", 1450.0, 0.9090),
            ("wireguard", 1440.0, 0.9025),
            ("wireguard6", 1420.0, 0.8895),
            ("gtp-u", 1464.0, 0.9181),
        ] {
            let packet =
                Packet::of(&CeilingInputs { tunnels: vec![tunnel.into()], ..tcp() }).unwrap();
            assert_eq!(packet.payload + 52.0, inner, "{tunnel}");
            let got = packet.share(WIRE_EXTRA_BYTES);
            assert!((got - share).abs() < 1e-4, "{tunnel} {got}");
        }
    }

    #[test]
    fn tunnels_add_up_and_a_smaller_mtu_inside_counts() {
        let both = |mtu| CeilingInputs {
            tunnels: vec!["pppoe".into(), "wireguard".into()],
            tunnel_mtu_bytes: mtu,
            ..tcp()
        };
        assert_eq!(Packet::of(&both(None)).unwrap().payload, 1500.0 - 8.0 - 60.0 - 52.0);
        let smaller = Packet::of(&both(Some(1420))).unwrap();
        assert_eq!((smaller.payload, smaller.ip), (1368.0, 1488.0));
        let why = Packet::of(&both(Some(1433))).unwrap_err().to_string();
        assert!(why.contains("cut in two"), "{why}");
    }

    #[test]
    fn a_segment_size_needs_no_mtu_and_never_exceeds_it() {
        let mss = |mss, mtu| CeilingInputs { mss_bytes: Some(mss), mtu_bytes: mtu, ..tcp() };
        assert_eq!(Packet::of(&mss(988, None)).unwrap().ip, 1040.0);
        assert_eq!(Packet::of(&mss(9000, Some(1500))).unwrap().payload, 1448.0);
    }

    #[test]
    fn a_segment_size_that_differs_from_what_the_mtu_leaves_is_shown_beside_it() {
        let first = |mss| {
            let mut lines = Lines::default();
            Packet::worked_out(&CeilingInputs { mss_bytes: mss, ..tcp() }, &mut lines).unwrap();
            lines.into_vec().into_iter().map(|line| (line.formula, line.value)).collect::<Vec<_>>()
        };
        let left = "1500 - 20 (IPv4) - 20 (TCP) - 12 (options)";
        assert_eq!(first(None), [(left.into(), 1448.0)]);
        assert_eq!(first(Some(1448)), first(None));
        for (mss, payload) in [(9000, 1448), (988, 988)] {
            let both = (format!("min({mss} (MSS), {left})"), f64::from(payload));
            let sum = format!("{payload} + 20 (IPv4) + 20 (TCP) + 12 (options)");
            assert_eq!(first(Some(mss)), [both, (sum, f64::from(payload) + 52.0)]);
        }
    }

    /// The NFS requests of 8 KiB that the Ethernet HOWTO warns of are six frames.
    #[test]
    fn a_large_datagram_is_fragmented() {
        let inputs = |bytes| CeilingInputs {
            transport: Some(Transport::Udp),
            datagram_bytes: bytes,
            ..tcp()
        };
        let packet = Packet::of(&inputs(Some(8192))).unwrap();
        assert_eq!((packet.frames, packet.ip), (6.0, 8192.0 + 8.0 + 6.0 * 20.0));
        assert_eq!(Packet::of(&inputs(None)).unwrap().payload, 1472.0);
    }

    #[test]
    fn a_packet_is_no_longer_than_its_header_can_say() {
        let datagram = |family| CeilingInputs {
            transport: Some(Transport::Udp),
            family: Some(family),
            mtu_bytes: Some(65_536),
            ..tcp()
        };
        assert_eq!(Packet::of(&datagram(Family::V4)).unwrap().payload, 65_507.0);
        assert_eq!(Packet::of(&datagram(Family::V6)).unwrap().payload, 65_488.0);
        let sized = |bytes| CeilingInputs { datagram_bytes: Some(bytes), ..datagram(Family::V4) };
        assert!(Packet::of(&sized(65_507)).is_ok());
        let why = Packet::of(&sized(65_508)).unwrap_err().to_string();
        assert!(why.contains("1 to 65507 bytes"), "{why}");
    }

    #[test]
    fn what_can_t_be_is_said() {
        let why = |inputs| Packet::of(&inputs).unwrap_err().to_string();
        let small = CeilingInputs { mtu_bytes: Some(40), ..tcp() };
        assert_eq!(why(small), "40 bytes have no room for 52 bytes of headers");
        assert_eq!(why(CeilingInputs::default()), "no IP version was given");
        let options = CeilingInputs { tcp_option_bytes: Some(44), ..tcp() };
        assert!(why(options).contains("44 bytes of options"));
        let mut deep = tcp();
        deep.tunnels = vec!["vxlan".into(); 40];
        assert!(why(deep).contains("no room for the 50 bytes of vxlan"));
    }
}
