//! The READs of a comparison: bursts against the room for them, drops and round trips.

use std::fmt::Write;

use goodput_model::{ArmResult, Bytes, Known, ReadArm, ReadTable, Record};

use super::fetches::as_typed;
use super::micros::micros;
use super::table::Table;

/// Frames are those of one answer; dropped packets never reached a socket of this host.
const HEADINGS: [&str; 7] =
    ["READs", "goodput", "difference", "frames", "round trip", "dropped", "again"];

/// The table, if the arms read from an NFS server, and the largest burst compared with the ring.
pub fn text(record: &Record) -> String {
    let Some(reads) = &record.nfs_reads else { return String::new() };
    let compared = record.comparison.as_ref().map_or(&[][..], |comparison| &comparison.arms);
    let mut table = Table::new(&HEADINGS);
    for (number_of_arm, arm) in reads.arms.iter().enumerate() {
        let (goodput, change) = rate(compared.get(number_of_arm), number_of_arm == 0);
        let cells = [
            arm.values.join("  "),
            goodput,
            change,
            number(&arm.answer_segments),
            arm.round_trip_us.value().map_or_else(unknown, |us| micros(*us)),
            number(&arm.dropped),
            number(&arm.retransmitted),
        ];
        table.row(&cells.each_ref().map(String::as_str));
    }
    let mut out = format!("\n{}", table.text());
    if let Some(burst) = burst(reads) {
        let _ = writeln!(out, "{burst}");
    }
    out
}

/// The goodput of an arm, and the interval of its difference from the baseline.
fn rate(arm: Option<&ArmResult>, is_baseline: bool) -> (String, String) {
    let Some(arm) = arm else { return (unknown(), unknown()) };
    let change = match &arm.goodput {
        _ if is_baseline => "baseline".into(),
        Some(effect) => format!("{:+.0} to {:+.0} %", effect.low_percent, effect.high_percent),
        None => unknown(),
    };
    (arm.goodput_bits_per_s.value().map_or_else(unknown, ToString::to_string), change)
}

fn number(count: &Known<u64>) -> String {
    count.value().map_or_else(unknown, u64::to_string)
}

fn unknown() -> String {
    "unknown".into()
}

/// `8K is 6 frames of 1448 bytes back to back; the receive ring of this host holds 256.`
fn burst(reads: &ReadTable) -> Option<String> {
    let largest = |arm: &&ReadArm| arm.answer_segments.value().copied();
    let arm = reads.arms.iter().filter(|arm| largest(arm).is_some()).max_by_key(largest)?;
    let (bytes, frames) = (arm.call_bytes.value()?, arm.answer_segments.value()?);
    let segment = reads.segment_bytes.value()?;
    let size = as_typed(Bytes(*bytes));
    let s = if *frames == 1 { "" } else { "s" };
    let burst = format!("{size} is {frames} frame{s} of {segment} bytes back to back");
    Some(match &reads.ring_frames {
        Known::Value(ring) => format!("{burst}; the receive ring of this host holds {ring}."),
        Known::Missing(why) => format!("{burst}; what the receive ring holds is not known: {why}."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(call_bytes: u64, frames: u64) -> ReadArm {
        ReadArm {
            values: vec![as_typed(Bytes(call_bytes))],
            call_bytes: Known::Value(call_bytes),
            slots: Known::Value(8),
            answer_segments: Known::Value(frames),
            round_trip_us: Known::Value(300.0),
            dropped: Known::Value(12),
            retransmitted: Known::missing("x"),
        }
    }

    #[test]
    fn the_largest_burst_is_held_against_the_ring() {
        let mut reads = ReadTable {
            segment_bytes: Known::Value(1448),
            ring_frames: Known::Value(256),
            arms: vec![arm(1 << 10, 1), arm(8 << 10, 6)],
        };
        let text = burst(&reads).unwrap();
        let ring =
            "8K is 6 frames of 1448 bytes back to back; the receive ring of this host holds 256.";
        assert_eq!(text, ring);
        reads.ring_frames = Known::missing("lo has no ring");
        assert!(burst(&reads).unwrap().ends_with("is not known: lo has no ring."));
        reads.segment_bytes = Known::missing("x");
        assert_eq!(burst(&reads), None);
    }
}
