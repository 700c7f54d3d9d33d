//! Whether a measurement moved anything.

use goodput_model::{DirectionResult, Record};

/// Whether payload came in every direction: by the receiver's count, and by the sender's if only that is
/// reported. The goodput is no proof: on a host that was busy all may have come outside of its window.
pub fn moved(record: &Record) -> bool {
    let count = |way: &DirectionResult| {
        way.received_bytes.value().or(way.sent_bytes.value()).copied().unwrap_or(0)
    };
    let ways = &record.result.directions;
    !ways.is_empty() && ways.iter().all(|way| count(way) > 0)
}
