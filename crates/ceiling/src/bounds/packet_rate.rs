//! A host or device that handles a limited number of packets per second, whatever their size.

use goodput_model::{CeilingInputs, Missing};

use super::{Bound, counts};
use crate::inputs::given;
use crate::lines::{Lines, number};
use crate::packet::Packet;

pub(super) const BOUND: Bound = Bound {
    id: "packet-rate",
    title: "packets per second",
    source: "packets/s × payload of a packet × 8",
    needs: "--packet-rate, with --datagram and what else makes a packet",
    asked: |inputs| inputs.packets_per_s.is_some(),
    work_out,
    beside: counts,
    example: || CeilingInputs { packets_per_s: Some(1e5), ..super::shaper::tcp() },
    rises: &[|inputs, factor| {
        inputs.packets_per_s = inputs.packets_per_s.map(|rate| rate * factor)
    }],
};

fn work_out(inputs: &CeilingInputs, lines: &mut Lines) -> Result<f64, Missing> {
    let rate = given(inputs.packets_per_s, "packet rate")?;
    goodput_of(rate, inputs, lines)
}

/// Goodput at this number of packets per second.
pub(super) fn goodput_of(
    rate: f64,
    inputs: &CeilingInputs,
    lines: &mut Lines,
) -> Result<f64, Missing> {
    let packet = Packet::of(inputs)?;
    let payload = packet.payload / packet.frames;
    let formula = format!("{} packets/s × {} bytes × 8", number(rate), number(payload));
    Ok(lines.add("goodput", formula, rate * payload * 8.0, "bit/s"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Transport;

    #[test]
    fn a_hundred_thousand_small_datagrams_are_51_megabits() {
        let inputs = CeilingInputs {
            transport: Some(Transport::Udp),
            datagram_bytes: Some(64),
            ..(BOUND.example)()
        };
        assert_eq!(work_out(&inputs, &mut Lines::default()), Ok(51.2e6));
    }
}
