//! The bus between the network card and the host's memory.
//!
//! On ISA the CPU moves each word, possibly while the next frame arrives, so the times of bus and wire are not
//! added up here: that would be a model, not a bound. `--fit` finds by a series of measurements whether they add up.

use goodput_model::{CeilingInputs, Missing};

use super::{Bound, counts};
use crate::buses;
use crate::lines::{Lines, number, rate};
use crate::packet::{ETHERNET_HEADER_BYTES, Packet};

pub(super) const BOUND: Bound = Bound {
    id: "bus",
    title: "the card's bus, less headers",
    source: "clock × width, or lanes × speed × code × packet overhead, × payload / (IP packet + 14); the bus \
             specifications, and Neugebauer et al., SIGCOMM 2018, for PCI Express",
    needs: "--bus, with --bus-clock, --pcie-payload and what makes a packet",
    asked: |inputs| inputs.bus.is_some(),
    work_out,
    beside: counts,
    example: || CeilingInputs {
        bus: Some("isa16".into()),
        bus_clock_hz: Some(8e6),
        ..super::shaper::tcp()
    },
    rises: &[|inputs, factor| {
        inputs.bus_clock_hz = inputs.bus_clock_hz.map(|clock| clock * factor)
    }],
};

fn work_out(inputs: &CeilingInputs, lines: &mut Lines) -> Result<f64, Missing> {
    let carries = buses::of(inputs, lines)?;
    let packet = Packet::of(inputs)?;
    let (payload, ip) = (number(packet.payload), number(packet.ip));
    let frames = number(packet.frames * ETHERNET_HEADER_BYTES);
    let formula = format!("{} × {payload} / ({ip} + {frames} (Ethernet))", rate(carries));
    Ok(lines.add("goodput", formula, carries * packet.share(ETHERNET_HEADER_BYTES), "bit/s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 10 Gbit/s card in a slot with one lane of generation 3 gets 6.2 Gbit/s of payload.
    #[test]
    fn a_narrow_slot_bounds_a_fast_card() {
        let inputs = CeilingInputs { bus: Some("pcie3x1".into()), ..super::super::shaper::tcp() };
        let got = work_out(&inputs, &mut Lines::default()).unwrap() / 1e9;
        assert!((got - 6.15).abs() < 0.02, "{got}");
    }

    /// The Ethernet HOWTO: 5.3 MB/s for ISA, 42 Mbit/s.
    #[test]
    fn isa_carries_42_megabits() {
        let got = work_out(&(BOUND.example)(), &mut Lines::default()).unwrap();
        assert!((got / 42.67e6 - 1448.0 / 1514.0).abs() < 1e-3, "{got}");
    }
}
