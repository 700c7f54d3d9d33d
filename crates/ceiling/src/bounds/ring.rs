//! The card's receive buffer against the time in which the host takes nothing out of it.

use goodput_model::{CeilingInputs, Missing};

use super::{Bound, counts, wire};
use crate::inputs::{Read, count, given};
use crate::lines::{Lines, number, rate, time};
use crate::packet::Packet;

pub(super) const BOUND: Bound = Bound {
    id: "ring",
    title: "the receive buffer, once per gap",
    source: "frames that fit × payload × 8 / longest gap; of a burst of N frames, N - M are dropped if M fit",
    needs: "--ring or --card-buffer, with --drain-gap, --burst-frames and --link",
    asked: |inputs| inputs.ring_frames.is_some() || inputs.room_bytes.is_some(),
    work_out,
    beside: counts,
    example: || CeilingInputs {
        ring_frames: Some(256),
        drain_gap_us: Some(1000.0),
        ..super::shaper::tcp()
    },
    rises: &[
        |inputs, factor| {
            inputs.ring_frames = inputs.ring_frames.map(|n| (n as f64 * factor) as u64)
        },
        |inputs, factor| inputs.drain_gap_us = inputs.drain_gap_us.map(|gap| gap / factor),
    ],
};

fn work_out(inputs: &CeilingInputs, lines: &mut Lines) -> Result<f64, Missing> {
    let packet = Packet::of(inputs)?;
    let fit = frames_that_fit(inputs, &packet, lines)?;
    if let Ok(link) = inputs.link() {
        let framing = wire::framing(inputs)?;
        let frame = packet.counted(framing.bytes) / packet.frames;
        let formula = format!("{} × {} × 8 / {}", number(fit), number(frame), rate(link));
        lines.add("lasts", formula, fit * frame * 8.0 / link, "s");
        if let Ok(gap) = gap(inputs) {
            let formula = format!("{} × {} / 8 / {}", rate(link), time(gap), number(frame));
            lines.add("in a gap", formula, link * gap / 8.0 / frame, "frames");
        }
    }
    if inputs.burst_frames.is_some() {
        let burst = count(inputs.burst_frames, "burst")?;
        let formula = format!("{} (burst) - {} (fit)", number(burst), number(fit));
        lines.add("dropped", formula, (burst - fit).max(0.0), "frames");
    }
    let gap = gap(inputs)?;
    let payload = packet.payload / packet.frames;
    let formula = format!("{} × {} bytes × 8 / {}", number(fit), number(payload), time(gap));
    Ok(lines.add("goodput", formula, fit * payload * 8.0 / gap, "bit/s"))
}

/// Frames that fit into the card's ring or buffer.
fn frames_that_fit(
    inputs: &CeilingInputs,
    packet: &Packet,
    lines: &mut Lines,
) -> Result<f64, Missing> {
    if inputs.ring_frames.is_some() && inputs.room_bytes.is_some() {
        return Err(Missing::because(
            "the size of the card's buffer is given twice, in frames and in bytes",
        ));
    }
    if let Ok(frames) = count(inputs.ring_frames, "ring") {
        return Ok(frames);
    }
    let bytes = count(inputs.room_bytes, "size of the card's buffer")?;
    let frame = packet.counted_frame();
    let formula = format!("{} / {} bytes, whole ones", number(bytes), number(frame));
    let whole = lines.add("fits", formula, (bytes / frame).floor(), "frames");
    given(Some(whole), "number of frames that fit")
}

fn gap(inputs: &CeilingInputs) -> Result<f64, Missing> {
    let missing = "longest gap between drains";
    Ok(given(inputs.drain_gap_us, missing)? / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::BitRate;

    fn value(inputs: &CeilingInputs, label: &str) -> f64 {
        let mut lines = Lines::default();
        let _ = work_out(inputs, &mut lines);
        let lines = lines.into_vec();
        lines.iter().find(|line| line.label == label).expect(label).value
    }

    /// Ethernet HOWTO: of the 8 kB of an 8-bit card, 3 kB are for sending; three full frames fit in the other 5.
    #[test]
    fn three_full_frames_fit_in_5_kilobytes() {
        for bytes in [5000, 5 * 1024] {
            let inputs = CeilingInputs {
                room_bytes: Some(bytes),
                burst_frames: Some(6),
                ..super::super::shaper::tcp()
            };
            assert_eq!(value(&inputs, "fits"), 3.0);
            // An NFS request of 8 kB is six frames: half of them are lost.
            assert_eq!(value(&inputs, "dropped"), 3.0);
            let why = work_out(&inputs, &mut Lines::default()).unwrap_err().to_string();
            assert_eq!(why, "no longest gap between drains was given");
        }
        let small = CeilingInputs { room_bytes: Some(100), ..super::super::shaper::tcp() };
        assert!(work_out(&small, &mut Lines::default()).is_err(), "no frame fits");
    }

    #[test]
    fn a_ring_of_256_lasts_3_ms_at_a_gigabit() {
        let inputs = CeilingInputs { link_bits_per_s: Some(BitRate(1e9)), ..(BOUND.example)() };
        assert!((value(&inputs, "lasts") - 3.15e-3).abs() < 1e-5);
        assert!((value(&inputs, "in a gap") - 81.27).abs() < 0.01);
        let got = work_out(&inputs, &mut Lines::default()).unwrap();
        assert!((got - 256.0 * 1448.0 * 8.0 / 1e-3).abs() < 1.0);
    }
}
