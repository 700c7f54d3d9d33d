//! The charts of a path's round trip and loss.

use goodput_model::Record;
use goodput_store::{Figures, Tested};
use goodput_watch::{Change, Chart, Quantity};

use crate::commands::path_changes;
use crate::report::shifted::Shifted;

/// How many tests apart a change of the goodput and one of another quantity are the same one: the beginning of each is known
/// to about four tests.
const NEAR: usize = 8;

/// A chart of each quantity.
pub struct Shifts {
    charts: [(Quantity, Chart); 2],
}

impl Shifts {
    /// The charts after these tests of `target`, and what was said of them.
    pub fn restored(target: &str, tests: &[Tested], told: &[Shifted]) -> Self {
        let chart = |quantity| {
            let of_test = |test: &Tested| {
                let mark = path_changes::shift_mark(test, target, quantity, told);
                Some((path_changes::shift_point(test, quantity)?, mark))
            };
            let points: Vec<_> = tests.iter().filter_map(of_test).collect();
            (quantity, Chart::restored(&points))
        };
        Self { charts: Quantity::ALL.map(chart) }
    }

    /// Takes the next test. Returns what this test makes certain enough.
    pub fn push(&mut self, id: i64, record: &Record) -> Vec<(Quantity, Change)> {
        let figures = Figures::of(record);
        let mut found = Vec::new();
        for (quantity, chart) in &mut self.charts {
            // Without a value it says nothing: a gap, not a zero.
            let value = path_changes::figure(*quantity, &figures);
            let value = value.map(|value| quantity.charted(value));
            let point = value.and_then(|value| path_changes::point(id, &record.started, value));
            let change = point.and_then(|point| chart.push(point));
            found.extend(change.map(|change| (*quantity, change)));
        }
        found
    }
}

/// Whether tests that begin changes are so near to each other that it is one change; `records` are all tests in their order.
pub fn is_same(records: &[i64], first: Option<i64>, other: i64) -> bool {
    let place = |id: i64| records.iter().rposition(|record| *record == id);
    let places = first.and_then(place).zip(place(other));
    places.is_some_and(|(first, other)| first.abs_diff(other) <= NEAR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{BitRate, Known};

    /// A record whose direction of the verdict has this round trip.
    fn with_round_trip(n: i64, seconds: f64) -> Record {
        let json = include_str!("../../report/example/record.json");
        let mut record = Record::from_json(json).unwrap();
        record.started = started(n);
        let sender = record.verdict.sender;
        let main = record.result.directions.iter_mut().find(|one| one.sender == sender);
        main.unwrap().rtt_us = Known::Value(seconds * 1e6);
        record
    }

    fn started(n: i64) -> String {
        jiff::Timestamp::from_second(1_795_000_000 + n * 900).unwrap().to_string()
    }

    /// Three days of tests every quarter of an hour; the golden ratio spreads multiples evenly (Weyl 1916).
    fn tests() -> Vec<Tested> {
        let noise = |n: i64| 1.0 + 0.02 * (n as f64 * 0.618_033_988_75).fract();
        let test = |n| Tested {
            record: n,
            started: started(n),
            goodput: BitRate(1e9),
            round_trip_s: Some(0.01 * noise(n)),
            lost_share: Some(0.0),
            begins_change: false,
        };
        (0..288).map(test).collect()
    }

    #[test]
    fn a_longer_round_trip_is_found_while_the_goodput_stays_and_once() {
        let mut shifts = Shifts::restored("nas", &tests(), &[]);
        let found: Vec<_> =
            (288..300).flat_map(|n| shifts.push(n, &with_round_trip(n, 0.03))).collect();
        let [(quantity, change)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((*quantity, change.first_since.id), (Quantity::RoundTrip, 288));
        assert!((change.ratio.value - 3.0).abs() < 0.1, "{change:?}");
        // After a restart it is known.
        let said = path_changes::explained_shift("nas", *quantity, &Default::default(), change);
        let since = (288..300).map(|n| Tested {
            record: n,
            started: started(n),
            round_trip_s: Some(0.03),
            ..tests()[0].clone()
        });
        let all: Vec<_> = tests().into_iter().chain(since).collect();
        let mut again = Shifts::restored("nas", &all, &[said]);
        let more = (300..320).flat_map(|n| again.push(n, &with_round_trip(n, 0.03)));
        assert_eq!(more.count(), 0);
    }

    #[test]
    fn a_change_near_one_of_the_goodput_is_the_same() {
        let records: Vec<i64> = (0..100).map(|n| n * 3).collect();
        assert!(is_same(&records, Some(150), 153) && is_same(&records, Some(150), 126));
        assert!(!is_same(&records, Some(150), 180) && !is_same(&records, None, 150));
        assert!(!is_same(&records, Some(150), 151), "it is no test of this series");
    }
}
