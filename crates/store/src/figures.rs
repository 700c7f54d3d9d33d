//! The numbers of a result that a line has room for.

use goodput_model::{DirectionResult, EndName, Known, Record};

/// Numbers of the direction that the verdict is about; absent where they are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// Payload bytes that arrived, in all directions.
    pub received_bytes: Option<u64>,
    /// Round-trip time under load, seconds.
    pub round_trip_s: Option<f64>,
    /// Smallest round-trip time, seconds.
    pub smallest_round_trip_s: Option<f64>,
    /// Share of the datagrams that were lost, or of the payload that was sent again, 0 to 1.
    pub lost_share: Option<f64>,
}

impl Figures {
    /// Those of a record.
    pub fn of(record: &Record) -> Self {
        Self::of_sender(record, record.verdict.sender)
    }

    /// Those of the direction in which `sender` sent, if a record has several.
    pub fn of_sender(record: &Record, sender: EndName) -> Self {
        Self::of_directions(&record.result.directions, sender)
    }

    /// Those of the directions of a record, of which the verdict is about what `sender` sent.
    pub(crate) fn of_directions(directions: &[DirectionResult], sender: EndName) -> Self {
        let main = directions.iter().find(|one| one.sender == sender);
        let seconds = |us: &Known<f64>| us.value().map(|us| us / 1e6);
        let received = || directions.iter().map(|one| one.received_bytes.value().copied()).sum();
        Self {
            received_bytes: (!directions.is_empty()).then(received).flatten(),
            round_trip_s: main.and_then(|main| seconds(&main.rtt_us)),
            smallest_round_trip_s: main.and_then(|main| seconds(&main.min_rtt_us)),
            lost_share: main.and_then(lost_share),
        }
    }
}

/// Share of the datagrams that were lost, or of all bytes sent over TCP that were sent again, 0 to 1.
fn lost_share(direction: &DirectionResult) -> Option<f64> {
    if let Some(percent) = direction.lost_percent.value() {
        return Some(percent / 100.0);
    }
    let again = *direction.retransmitted_bytes.value()? as f64;
    let all = *direction.sent_bytes.value()? as f64;
    (all > 0.0).then(|| again / (all + again))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_record;

    #[test]
    fn what_is_unknown_is_absent_and_not_zero() {
        let mut record = read_record(include_str!("../tests/golden/v1/test.json")).unwrap();
        let sender = record.verdict.sender;
        let main = record.result.directions.iter_mut().find(|one| one.sender == sender).unwrap();
        main.rtt_us = Known::Value(2500.0);
        main.min_rtt_us = Known::missing("the test says so");
        main.lost_percent = Known::missing("the test says so");
        main.sent_bytes = Known::Value(1000);
        main.retransmitted_bytes = Known::Value(250);
        main.received_bytes = Known::Value(990);
        let figures = Figures::of(&record);
        assert_eq!((figures.round_trip_s, figures.smallest_round_trip_s), (Some(0.0025), None));
        assert_eq!(figures.lost_share, Some(0.2), "of 1250 bytes");
        assert!(figures.received_bytes >= Some(990));
        record.result.directions.clear();
        assert_eq!(Figures::of(&record), Figures::default());
    }
}
