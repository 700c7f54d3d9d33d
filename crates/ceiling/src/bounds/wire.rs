//! The link's speed less all that it carries beside payload.

use goodput_model::{BitRate, CeilingInputs, Missing};

use super::{Bound, counts};
use crate::framings::{self, Framing};
use crate::inputs::Read;
use crate::lines::{Lines, number, rate};
use crate::packet::Packet;

/// A tag of IEEE 802.1Q, bytes.
const VLAN_TAG_BYTES: f64 = 4.0;
/// Segments for each acknowledgement (RFC 9293 section 3.8.6.3).
const SEGMENTS_PER_ACK: f64 = 2.0;

pub(super) const BOUND: Bound = Bound {
    id: "wire",
    title: "the link, less headers",
    source: "speed × payload / bytes on the wire (IEEE 802.3; RFC 6349 section 3.3.1)",
    needs: "--link, with --mtu, --vlan, --tunnel, --framing, --ipv6, --udp, --tcp-options, --half-duplex",
    asked: |inputs| inputs.link_bits_per_s.is_some(),
    work_out,
    beside: counts,
    example: || CeilingInputs { link_bits_per_s: Some(BitRate(1e9)), ..super::shaper::tcp() },
    rises: &[
        |inputs, factor| {
            inputs.link_bits_per_s = inputs.link_bits_per_s.map(|r| BitRate(r.0 * factor))
        },
        |inputs, factor| {
            inputs.mtu_bytes = inputs.mtu_bytes.map(|mtu| (mtu as f64 * factor) as u64)
        },
    ],
};

fn work_out(inputs: &CeilingInputs, lines: &mut Lines) -> Result<f64, Missing> {
    let (packet, framing) = (Packet::worked_out(inputs, lines)?, framing(inputs)?);
    let wire = bytes(&packet, &framing, lines);
    let link = inputs.link()?;
    let speed = rate(link);
    lines.add("packets", format!("{speed} / 8 / {}", number(wire)), link / 8.0 / wire, "packets/s");
    let (each, payload) = match inputs.half_duplex {
        Some(true) => {
            let ack = acknowledgement(&packet, inputs, &framing);
            let (wire, payload) = (number(wire), number(packet.payload));
            let formula =
                format!("{SEGMENTS_PER_ACK} × {wire} + {} (acknowledgement)", number(ack));
            let both = SEGMENTS_PER_ACK * packet.counted(framing.bytes) + ack;
            lines.add("half duplex", formula, both, "bytes");
            (both, (SEGMENTS_PER_ACK * packet.payload, format!("{SEGMENTS_PER_ACK} × {payload}")))
        }
        _ => (wire, (packet.payload, number(packet.payload))),
    };
    let formula = format!("{speed} × {} / {}", payload.1, number(each));
    Ok(lines.add("goodput", formula, link * payload.0 / each, "bit/s"))
}

/// The framing of the link with its VLAN tags.
pub(super) fn framing(inputs: &CeilingInputs) -> Result<Framing, Missing> {
    let framing = framings::find(inputs.framing.as_deref())?;
    let tags = f64::from(inputs.vlan_tags.unwrap_or(0)) * VLAN_TAG_BYTES;
    if tags > 0.0 && framing.id != framings::ETHERNET.id {
        return Err(Missing::because(format!("a link with {} framing has no VLAN", framing.id)));
    }
    Ok(Framing { bytes: framing.bytes + tags, ..framing })
}

/// What one packet takes on the wire, bytes.
pub(super) fn bytes(packet: &Packet, framing: &Framing, lines: &mut Lines) -> f64 {
    let tags = framing.bytes - framings::find(Some(framing.id)).map_or(0.0, |plain| plain.bytes);
    let tags = if tags > 0.0 { format!(", VLAN {}", number(tags)) } else { String::new() };
    let frames =
        if packet.frames > 1.0 { format!("{} × ", number(packet.frames)) } else { String::new() };
    let formula = format!(
        "{} + {frames}{} ({}{tags})",
        number(packet.ip),
        number(framing.bytes),
        framing.parts
    );
    let all = packet.counted(framing.bytes).max(packet.frames * framing.shortest);
    lines.add("on the wire", formula, all, "bytes")
}

/// A segment without payload on the wire, bytes.
fn acknowledgement(packet: &Packet, inputs: &CeilingInputs, framing: &Framing) -> f64 {
    match inputs.transport {
        Some(goodput_model::Transport::Udp) => 0.0,
        _ => (packet.ip - packet.payload + framing.bytes).max(framing.shortest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Transport;

    fn link(rate: f64, options: u64) -> CeilingInputs {
        CeilingInputs {
            link_bits_per_s: Some(BitRate(rate)),
            tcp_option_bytes: Some(options),
            ..super::super::shaper::tcp()
        }
    }

    fn gives(inputs: &CeilingInputs) -> f64 {
        work_out(inputs, &mut Lines::default()).unwrap()
    }

    /// RFC 6349 section 3.3.1 and the frame rates of RFC 2544: 94.9 of 100 Mbit/s, 949.2 of 1000.
    #[test]
    fn the_tables_of_rfc_6349_are_met() {
        assert!((gives(&link(100e6, 0)) - 94.9e6).abs() < 0.05e6);
        assert!((gives(&link(1e9, 0)) - 949.2e6).abs() < 0.1e6);
        assert!((gives(&link(10e9, 0)) - 9.492e9).abs() < 0.001e9);
        // T1 and T3 lines with 8 bytes around each packet: 127 and 3664 packets/s.
        let line = |rate| CeilingInputs { framing: Some("hdlc".into()), ..link(rate, 0) };
        assert!((gives(&line(44.21e6)) - 42.8e6).abs() < 0.05e6);
        assert!((gives(&line(1.536e6)) - 1.48e6).abs() < 0.01e6);
    }

    #[test]
    fn ten_megabits_half_duplex_are_1155_kilobytes() {
        // 2·1460 / (2·1538 + 84) of 10 Mbit/s. The Ethernet HOWTO's best is 1075 kB/s.
        let inputs = CeilingInputs { half_duplex: Some(true), ..link(10e6, 0) };
        let kilobytes = gives(&inputs) / 8e3;
        assert!((kilobytes - 1155.0).abs() < 0.5, "{kilobytes}");
        assert!(kilobytes > 1075.0);
    }

    #[test]
    fn small_datagrams_fill_the_shortest_frame() {
        // 1 488 095 frames/s at 1 Gbit/s (RFC 2544 appendix).
        let inputs = CeilingInputs {
            transport: Some(Transport::Udp),
            datagram_bytes: Some(1),
            ..link(1e9, 12)
        };
        assert!((gives(&inputs) / 8.0 - 1_488_095.0).abs() < 1.0);
    }

    #[test]
    fn a_line_without_ethernet_has_no_tags() {
        let inputs =
            CeilingInputs { framing: Some("hdlc".into()), vlan_tags: Some(1), ..link(1e6, 0) };
        assert!(work_out(&inputs, &mut Lines::default()).is_err());
    }
}
