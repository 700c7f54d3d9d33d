//! Whether a measurement moved anything.

use goodput_model::{DirectionResult, Record};

/// Whether payload came in every direction: by the receiver's count, and by the sender's if only that is
/// reported. The goodput is no proof: on a host that was busy all may have come outside of its window.
pub fn moved(record: &Record) -> bool {
    let count = |direction: &DirectionResult| {
        direction.received_bytes.value().or(direction.sent_bytes.value()).copied().unwrap_or(0)
    };
    let directions = &record.result.directions;
    !directions.is_empty() && directions.iter().all(|direction| count(direction) > 0)
}
