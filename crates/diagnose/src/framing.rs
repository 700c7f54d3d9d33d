//! What of a frame is payload, and who counts which part of it.

use goodput_model::{Family, Missing, Transport};

use crate::names::LINK_MTU;
use crate::view::{View, positive};

/// Preamble, header, frame check sequence and inter-frame gap of an Ethernet frame, bytes
/// (IEEE 802.3).
pub const WIRE_EXTRA: f64 = 38.0;
/// What tbf and htb count beside the IP packet: the Ethernet header, bytes (net/sched/sch_tbf.c,
/// `qdisc_pkt_len`; with segmentation offload the headers of each segment too).
pub const QDISC_EXTRA: f64 = 14.0;
/// What a policer on IP length counts beside the IP packet.
pub const IP_EXTRA: f64 = 0.0;

const VLAN_TAG: f64 = 4.0;
const TCP_HEADER: f64 = 20.0;
const TIMESTAMPS: f64 = 12.0;
const UDP_HEADER: f64 = 8.0;
/// `TCPI_OPT_TIMESTAMPS` (include/uapi/linux/tcp.h).
const OPTION_TIMESTAMPS: u64 = 1;

/// Payload of full-sized TCP segments as a share of what they take on Ethernet: IP packets of
/// `mtu` bytes, with or without TCP timestamps, with `vlan_tags` tags. 0 where nothing fits.
pub fn framing_efficiency(mtu: u32, ipv6: bool, timestamps: bool, vlan_tags: u32) -> f64 {
    let options = if timestamps { TIMESTAMPS } else { 0.0 };
    let payload = f64::from(mtu) - ip_header(ipv6) - TCP_HEADER - options;
    payload.max(0.0) / (f64::from(mtu) + WIRE_EXTRA + VLAN_TAG * f64::from(vlan_tags))
}

/// One segment or datagram as the path carries it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packet {
    /// Payload, bytes.
    pub payload: f64,
    /// IP packets that carry it, headers included, bytes.
    pub ip: f64,
    /// Number of these packets.
    pub frames: f64,
}

impl Packet {
    /// The largest packets that the measured flows send.
    pub fn of(view: &View) -> Result<Self, Missing> {
        match view.plan().transport {
            Transport::Tcp => Self::segment(view),
            Transport::Udp => Self::datagram(view),
        }
    }

    /// Payload as a share of what is counted, where `extra` bytes are counted with each IP packet.
    pub fn share(&self, extra: f64) -> f64 {
        self.payload / (self.ip + self.frames * extra)
    }

    /// Length of one frame as a queueing discipline counts it, bytes.
    pub fn counted_frame(&self) -> f64 {
        self.ip / self.frames + QDISC_EXTRA
    }

    fn segment(view: &View) -> Result<Self, Missing> {
        let payload = view.sender.mss_bytes()?;
        let headers = view.sender.path_mtu_bytes().map(|mtu| mtu - payload);
        // The difference is the headers unless the segments are smaller than the path allows.
        let plausible = [40.0, 52.0, 60.0, 72.0];
        let headers = match headers {
            Ok(headers) if plausible.contains(&headers) => headers,
            _ => ip_header(is_ipv6(view)) + TCP_HEADER + timestamps(view),
        };
        Ok(Self { payload, ip: payload + headers, frames: 1.0 })
    }

    fn datagram(view: &View) -> Result<Self, Missing> {
        let payload = positive(view.plan().chunk_bytes.0 as f64, "the size of a datagram")?;
        let header = ip_header(is_ipv6(view));
        let mtu = view.sender.count(LINK_MTU)?;
        // Fragments but the last carry multiples of 8 bytes (RFC 791 section 3.2).
        let room = positive(((mtu - header) / 8.0).floor() * 8.0, "the room in a fragment")?;
        let frames = match payload + UDP_HEADER {
            whole if whole <= mtu - header => 1.0,
            whole => (whole / room).ceil(),
        };
        Ok(Self { payload, ip: payload + UDP_HEADER + frames * header, frames })
    }
}

fn ip_header(ipv6: bool) -> f64 {
    if ipv6 { 40.0 } else { 20.0 }
}

fn is_ipv6(view: &View) -> bool {
    let socket = &view.plan().socket;
    socket.family == Some(Family::V6) || socket.bind.is_some_and(|address| address.is_ipv6())
}

fn timestamps(view: &View) -> f64 {
    match view.sender.tcp_options() {
        Ok(options) if options & OPTION_TIMESTAMPS == 0 => 0.0,
        _ => TIMESTAMPS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    #[test]
    fn the_published_table_is_met() {
        for (mtu, ipv6, timestamps, vlan, published) in [
            (576, false, false, 0, 0.8730),
            (1500, false, false, 0, 0.9493),
            (1500, false, true, 0, 0.9415),
            (1500, true, true, 0, 0.9285),
            (1500, false, true, 1, 0.9390),
            (9000, false, true, 0, 0.9900),
        ] {
            let got = framing_efficiency(mtu, ipv6, timestamps, vlan);
            assert!((got - published).abs() < 1e-4, "{mtu} {got} {published}");
        }
        assert_eq!(framing_efficiency(40, true, true, 0), 0.0);
    }

    #[test]
    fn tbf_counts_1514_bytes_for_1448() {
        let evidence = Case::healthy().evidence();
        let packet = Packet::of(&View::new(&evidence)).unwrap();
        assert!((packet.share(QDISC_EXTRA) - 1448.0 / 1514.0).abs() < 1e-12);
    }

    #[test]
    fn a_small_segment_size_is_not_taken_for_long_headers() {
        let evidence = Case::healthy().tcp(|tcp, _| tcp.snd_mss_bytes = Some(988)).evidence();
        assert_eq!(Packet::of(&View::new(&evidence)).unwrap().ip, 1040.0);
    }

    #[test]
    fn a_large_datagram_is_fragmented() {
        let evidence = Case::healthy_udp().plan(|plan| plan.chunk_bytes.0 = 8192).evidence();
        let packet = Packet::of(&View::new(&evidence)).unwrap();
        assert_eq!((packet.frames, packet.ip), (6.0, 8192.0 + 8.0 + 6.0 * 20.0));
    }
}
