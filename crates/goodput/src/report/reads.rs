//! The READs of a comparison: bursts against the room for them, drops and round trips.

use std::collections::BTreeMap;
use std::fmt::Write;

use goodput_model::{ArmResult, Bytes, Known, ReadTable, Record, Seconds};

use super::fetches::as_typed;
use super::table::Table;

/// Frames are those of one answer; dropped packets never reached a socket of this host.
const HEADINGS: [&str; 7] =
    ["READs", "goodput", "difference", "frames", "round trip", "dropped", "again"];

/// The table, if the arms read from an NFS server, and the burst of each size against the ring.
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
            arm.round_trip_us.value().map_or_else(unknown, |us| Seconds::of_us(*us).to_string()),
            number(&arm.dropped),
            number(&arm.retransmitted),
        ];
        table.row(&cells.each_ref().map(String::as_str));
    }
    let mut out = format!("\n{}", table.text());
    if let Some(bursts) = bursts(reads) {
        let _ = writeln!(out, "{bursts}");
    }
    out
}

/// The goodput of an arm, and the interval of its difference from the baseline.
fn rate(arm: Option<&ArmResult>, is_baseline: bool) -> (String, String) {
    let Some(arm) = arm else { return (unknown(), unknown()) };
    let change = match &arm.goodput {
        _ if is_baseline => "baseline".into(),
        Some(effect) => effect.interval(0),
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

/// `1K is 1 frame, 8K 6 frames back to back; the receive ring of this host holds 256.` Each size stands once, with the
/// most frames that any of its arms had.
fn bursts(reads: &ReadTable) -> Option<String> {
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for arm in &reads.arms {
        if let (Known::Value(bytes), Known::Value(frames)) = (&arm.call_bytes, &arm.answer_segments)
        {
            let most = sizes.entry(*bytes).or_default();
            *most = (*most).max(*frames);
        }
    }
    let is = sizes.iter().enumerate().map(|(number, (bytes, frames))| {
        let is = if number == 0 { " is" } else { "" };
        let s = if *frames == 1 { "" } else { "s" };
        format!("{}{is} {frames} frame{s}", as_typed(Bytes(*bytes)))
    });
    let is = is.collect::<Vec<_>>().join(", ");
    let holds = match &reads.ring_frames {
        Known::Value(ring) => format!("the receive ring of this host holds {ring}"),
        Known::Missing(why) => format!("what the receive ring holds is unknown: {why}"),
    };
    (!sizes.is_empty()).then(|| format!("{is} back to back; {holds}."))
}

#[cfg(test)]
mod tests {
    use goodput_model::ReadArm;

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
    fn the_burst_of_each_size_is_held_against_the_ring() {
        let mut reads = ReadTable {
            segment_bytes: Known::Value(1448),
            ring_frames: Known::Value(256),
            arms: vec![arm(8 << 10, 6), arm(1 << 10, 1), arm(8 << 10, 5), arm(1 << 20, 725)],
        };
        let ring = "1K is 1 frame, 8K 6 frames, 1M 725 frames back to back; the receive ring of this host holds 256.";
        assert_eq!(bursts(&reads).unwrap(), ring);
        reads.ring_frames = Known::missing("lo has no ring");
        assert!(bursts(&reads).unwrap().ends_with("is unknown: lo has no ring."));
        reads.arms.clear();
        assert_eq!(bursts(&reads), None);
    }
}
