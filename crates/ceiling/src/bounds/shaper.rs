//! The rate of a shaper less the headers that it counts.

use goodput_model::{BitRate, CeilingInputs, Family, Missing, Transport};

use super::{Bound, counts};
use crate::inputs::given;
use crate::lines::{Lines, number, rate};
use crate::packet::{ETHERNET_HEADER_BYTES, Packet, TIMESTAMPS_BYTES};

pub(super) const BOUND: Bound = Bound {
    id: "shaper",
    title: "the shaper, less headers",
    source: "rate × payload / (IP packet + 14), as tbf and htb count (net/sched/sch_tbf.c, qdisc_pkt_len)",
    needs: "--shaper, with --mtu and what else makes a packet",
    asked: |inputs| inputs.shaper_bits_per_s.is_some(),
    work_out,
    beside: counts,
    example: || CeilingInputs { shaper_bits_per_s: Some(BitRate(1e8)), ..tcp() },
    rises: &[|inputs, factor| {
        inputs.shaper_bits_per_s = inputs.shaper_bits_per_s.map(|r| BitRate(r.0 * factor));
    }],
};

fn work_out(inputs: &CeilingInputs, lines: &mut Lines) -> Result<f64, Missing> {
    let shaped = given(inputs.shaper_bits_per_s.map(|rate| rate.0), "rate of the shaper")?;
    let packet = Packet::worked_out(inputs, lines)?;
    let (payload, ip) = (number(packet.payload), number(packet.ip));
    let frames = number(packet.frames * ETHERNET_HEADER_BYTES);
    let formula = format!("{} × {payload} / ({ip} + {frames} (Ethernet))", rate(shaped));
    Ok(lines.add("goodput", formula, shaped * packet.share(ETHERNET_HEADER_BYTES), "bit/s"))
}

/// TCP with timestamps over IPv4 and an MTU of 1500, as examples have it.
pub(super) fn tcp() -> CeilingInputs {
    CeilingInputs {
        transport: Some(Transport::Tcp),
        family: Some(Family::V4),
        mtu_bytes: Some(1500),
        tcp_option_bytes: Some(TIMESTAMPS_BYTES),
        ..CeilingInputs::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measured with tbf: 95.64 Mbit/s of 100, 957.3 of 1000.
    #[test]
    fn a_shaper_counts_1514_bytes_for_1448() {
        let got = work_out(&(BOUND.example)(), &mut Lines::default()).unwrap();
        assert!((got - 95.64e6).abs() < 0.01e6, "{got}");
    }
}
