//! Which part of the measured flows' frames is payload, and who counts which part.

use goodput_ceiling::{ETHERNET_HEADER_BYTES, Packet, TIMESTAMPS_BYTES};
use goodput_model::{CeilingInputs, Family, Missing, Transport};

use crate::names::LINK_MTU;
use crate::view::{Side, View};

pub use goodput_ceiling::WIRE_EXTRA_BYTES;

/// What tbf and htb count in addition to the IP packet: the Ethernet header, bytes (net/sched/sch_tbf.c,
/// `qdisc_pkt_len`; with segmentation offload the headers of each segment too).
pub const QDISC_EXTRA_BYTES: f64 = ETHERNET_HEADER_BYTES;
/// What a policer on IP length counts in addition to the IP packet.
pub const IP_EXTRA_BYTES: f64 = 0.0;

/// `TCPI_OPT_TIMESTAMPS` (include/uapi/linux/tcp.h).
const OPTION_TIMESTAMPS: u64 = 1;
/// Bytes between the MTU and the payload of full segments: headers of IP and TCP and its options.
const PLAUSIBLE: [(f64, Family, u64); 4] = [
    (40.0, Family::V4, 0),
    (52.0, Family::V4, TIMESTAMPS_BYTES),
    (60.0, Family::V6, 0),
    (72.0, Family::V6, TIMESTAMPS_BYTES),
];

/// The largest packets that the measured flows send.
pub fn packet(view: &View) -> Result<Packet, Missing> {
    Packet::of(&packet_inputs(view)?)
}

/// The inputs that determine these packets.
pub fn packet_inputs(view: &View) -> Result<CeilingInputs, Missing> {
    let transport = view.plan().transport;
    let inputs = CeilingInputs { transport: Some(transport), ..CeilingInputs::default() };
    match transport {
        Transport::Tcp => segment(view, inputs),
        Transport::Udp => datagram(view, inputs),
    }
}

fn segment(view: &View, inputs: CeilingInputs) -> Result<CeilingInputs, Missing> {
    // If the sender reports nothing, the receiver knows the size of arriving segments, and its connection is the same.
    let silent = view.is_sender_silent();
    let side = if silent { &view.receiver } else { &view.sender };
    let payload = if silent { side.arriving_segment_bytes()? } else { side.mss_bytes()? };
    let headers = side.path_mtu_bytes().map(|mtu| mtu - payload);
    // The difference is the headers unless the segments are smaller than the path allows.
    let seen = headers.ok().and_then(|h| PLAUSIBLE.iter().find(|(plausible, ..)| *plausible == h));
    let (family, options) =
        seen.map_or_else(|| (asked_family(view), timestamps(side)), |(_, family, n)| (*family, *n));
    Ok(CeilingInputs {
        family: Some(family),
        mss_bytes: Some(payload as u64),
        tcp_option_bytes: Some(options),
        ..inputs
    })
}

fn datagram(view: &View, inputs: CeilingInputs) -> Result<CeilingInputs, Missing> {
    Ok(CeilingInputs {
        family: Some(asked_family(view)),
        datagram_bytes: Some(view.plan().chunk_bytes.0),
        mtu_bytes: Some(view.sender.count(LINK_MTU)? as u64),
        ..inputs
    })
}

/// The family of the flows: by what the headers of TCP's packets take, else by what was asked for.
///
/// # Errors
/// If the size of the segments or datagrams is unknown.
pub fn family(view: &View) -> Result<Family, Missing> {
    Ok(packet_inputs(view)?.family.unwrap_or_else(|| asked_family(view)))
}

fn asked_family(view: &View) -> Family {
    let socket = &view.plan().socket;
    let ipv6 =
        socket.family == Some(Family::V6) || socket.bind.is_some_and(|address| address.is_ipv6());
    if ipv6 { Family::V6 } else { Family::V4 }
}

fn timestamps(side: &Side) -> u64 {
    match side.tcp_options() {
        Ok(options) if options & OPTION_TIMESTAMPS == 0 => 0,
        _ => TIMESTAMPS_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    #[test]
    fn tbf_counts_1514_bytes_for_1448() {
        let evidence = Case::healthy().evidence();
        let packet = packet(&View::new(&evidence)).unwrap();
        assert!((packet.share(QDISC_EXTRA_BYTES) - 1448.0 / 1514.0).abs() < 1e-12);
    }

    #[test]
    fn a_small_segment_size_is_not_taken_for_long_headers() {
        let evidence = Case::healthy().tcp(|tcp, _| tcp.snd_mss_bytes = Some(988)).evidence();
        assert_eq!(packet(&View::new(&evidence)).unwrap().ip, 1040.0);
    }

    #[test]
    fn a_large_datagram_is_fragmented() {
        let evidence = Case::healthy_udp().plan(|plan| plan.chunk_bytes.0 = 8192).evidence();
        let packet = packet(&View::new(&evidence)).unwrap();
        assert_eq!((packet.frames, packet.ip), (6.0, 8192.0 + 8.0 + 6.0 * 20.0));
    }
}
