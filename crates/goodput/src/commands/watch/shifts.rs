//! The charts of a path's round trip and loss, and when their changes are said.
//!
//! One cause is to be said once. It may change the goodput and other quantities, and no chart knows which one needs the fewest
//! tests to be certain. So a change of another quantity waits for as many tests as a change of the goodput usually needs to be
//! found. What came with that one, or with a change of another quantity that was said, is only kept, and so is what has passed
//! meanwhile. A change of the goodput never waits: if it needs more tests, it is said as well, after the other one.

use goodput_model::Record;
use goodput_store::{Figures, Tested};
use goodput_watch::{Change, Chart, Quantity};

use crate::commands::path_changes;
use crate::report::shifted::Shifted;

/// How many tests apart a change of the goodput and one of another quantity are the same one: the beginning of each is known
/// to about four tests.
const NEAR: usize = 8;
/// Tests after which a change of the goodput is usually found, if there is one (`crates/watch/tests/months.rs`).
const TESTS_TO_FIND: usize = 8;

/// A chart of each quantity.
pub struct Shifts {
    charts: [(Quantity, Chart); 2],
    /// What was found and not said yet, each with the number of its first test.
    waiting: Vec<(i64, Shifted)>,
    /// The first test of the newest change that was said, and of what.
    said: Option<(i64, Quantity)>,
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
        let first = |shift: &Shifted| {
            let begins = |test: &&Tested| path_changes::begins(&shift.found, target, test);
            tests.iter().rfind(begins).map(|test| test.record)
        };
        let placed = told.iter().filter_map(|shift| Some((first(shift)?, shift)));
        let said = placed.clone().filter(|(_, shift)| shift.is_said());
        let waiting = placed.filter(|(_, shift)| shift.waits);
        Self {
            charts: Quantity::ALL.map(chart),
            waiting: waiting.map(|(first, shift)| (first, shift.clone())).collect(),
            said: said.map(|(first, shift)| (first, shift.quantity)).max_by_key(|said| said.0),
        }
    }

    /// Lets a change that begins with the test `first` wait until it is known whether the goodput changes with it.
    pub fn wait(&mut self, first: i64, shift: Shifted) {
        self.waiting.push((first, shift));
    }

    /// What waits no more with the newest of `records`, all tests in their order: what is said now, what came with the change of
    /// the goodput that begins with the test `goodput`, or with what was said of another quantity, and what has passed. Each
    /// stays as it was found: its time and its figures are those of the test that made it certain.
    pub fn decided(&mut self, records: &[i64], goodput: Option<i64>) -> Vec<(i64, Shifted)> {
        let mut decided = self.passed();
        for (first, shift) in std::mem::take(&mut self.waiting) {
            let other = self.said.filter(|(_, quantity)| *quantity != shift.quantity);
            let told = [goodput, other.map(|(first, _)| first)];
            let with_goodput = told.into_iter().any(|told| is_same(records, told, first));
            if !with_goodput && tests_since(records, first) < TESTS_TO_FIND {
                self.waiting.push((first, shift));
                continue;
            }
            if !with_goodput {
                self.said = Some((first, shift.quantity));
            }
            decided.push((first, Shifted { waits: false, with_goodput, ..shift }));
        }
        decided
    }

    /// What waits no more because it has passed, with its return: a change that was said now would be wrong already.
    fn passed(&mut self) -> Vec<(i64, Shifted)> {
        let takes_back = |later: &Shifted, one: &Shifted| {
            later.quantity == one.quantity
                && later.found.takes_back.as_ref() == Some(&one.found.since)
        };
        let all = &self.waiting;
        let has_passed = |(_, one): &(i64, Shifted)| {
            all.iter().any(|(_, other)| takes_back(other, one) || takes_back(one, other))
        };
        let (passed, waiting) = all.iter().cloned().partition(has_passed);
        self.waiting = waiting;
        let as_passed = |(first, shift)| (first, Shifted { waits: false, passed: true, ..shift });
        Vec::into_iter(passed).map(as_passed).collect()
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

/// Number of tests from this one on.
fn tests_since(records: &[i64], first: i64) -> usize {
    let place = records.iter().rposition(|record| *record == first);
    place.map_or(records.len(), |place| records.len() - place)
}

/// Whether tests that begin changes are so near to each other that it is one change; `records` are all tests in their order.
fn is_same(records: &[i64], first: Option<i64>, other: i64) -> bool {
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

    fn shift(quantity: Quantity) -> Shifted {
        Shifted { quantity, waits: true, ..crate::report::shifted::tests::example() }
    }

    /// What is decided with each test from the one in which a longer round trip is found, four tests after it began.
    fn decided(goodput: impl Fn(i64) -> Option<i64>) -> Vec<(i64, bool)> {
        let mut shifts = Shifts::restored("nas", &[], &[]);
        shifts.wait(100, shift(Quantity::RoundTrip));
        let of_test = |newest: i64| {
            let records: Vec<i64> = (0..=newest).collect();
            let decided = shifts.decided(&records, goodput(newest));
            decided.into_iter().map(|(_, shift)| (newest, shift.with_goodput)).collect::<Vec<_>>()
        };
        (103..120).flat_map(of_test).collect()
    }

    #[test]
    fn one_cause_is_said_once_whichever_chart_is_certain_first() {
        assert_eq!(decided(|_| None), [(107, false)], "alone, it is said with its eighth test");
        let found_later = |newest| (newest >= 105).then_some(101);
        assert_eq!(decided(found_later), [(105, true)]);
        assert_eq!(decided(|_| Some(99)), [(103, true)], "it was said before");
        assert_eq!(decided(|_| Some(50)), [(107, false)], "that was another one");
    }

    #[test]
    fn another_quantity_that_changes_with_it_is_not_said_and_its_return_is() {
        let mut shifts = Shifts::restored("nas", &[], &[]);
        shifts.wait(100, shift(Quantity::RoundTrip));
        shifts.wait(101, shift(Quantity::Loss));
        shifts.wait(106, shift(Quantity::RoundTrip));
        let records: Vec<i64> = (0..120).collect();
        let decided = shifts.decided(&records, None);
        let decided: Vec<_> =
            decided.iter().map(|(first, one)| (*first, one.with_goodput)).collect();
        assert_eq!(decided, [(100, false), (101, true), (106, false)]);
    }

    /// A longer round trip from the test 100 on, and its return from 104 on, if that was found then.
    fn longer(back: Option<&str>) -> Shifted {
        let mut one = shift(Quantity::RoundTrip);
        one.found.since = started(if back.is_some() { 104 } else { 100 });
        one.found.takes_back = back.map(str::to_owned);
        one
    }

    #[test]
    fn a_change_that_passes_while_it_waits_is_kept_and_neither_it_nor_its_return_is_said() {
        let records: Vec<i64> = (0..108).collect();
        let mut shifts = Shifts::restored("nas", &[], &[]);
        shifts.wait(100, longer(None));
        assert!(shifts.decided(&records[..107], None).is_empty());
        shifts.wait(104, longer(Some(&started(100))));
        let decided = shifts.decided(&records, None);
        let passed: Vec<_> = decided.iter().map(|(first, one)| (*first, one.passed)).collect();
        assert_eq!(passed, [(100, true), (104, true)]);
        assert!(decided.iter().all(|(_, one)| !one.waits && !one.is_said()));
        assert!(shifts.waiting.is_empty() && shifts.said.is_none());
        // Of another quantity it is no return.
        shifts.wait(100, longer(None));
        let other = Shifted { quantity: Quantity::Loss, ..longer(Some(&started(100))) };
        shifts.wait(104, other);
        assert!(shifts.decided(&records, None).iter().all(|(_, one)| !one.passed));
    }

    #[test]
    fn what_is_said_is_as_it_was_found() {
        let mut shifts = Shifts::restored("nas", &[], &[]);
        let found = longer(None);
        shifts.wait(100, found.clone());
        let records: Vec<i64> = (0..108).collect();
        let said = Shifted { waits: false, ..found };
        assert_eq!(shifts.decided(&records, None), [(100, said)]);
    }

    #[test]
    fn what_waits_goes_on_waiting_after_a_restart_and_what_was_said_is_known() {
        let found = |n: i64| {
            let mut shift = shift(Quantity::RoundTrip);
            (shift.found.since, shift.found.target) = (started(n), "nas".into());
            shift
        };
        let waits = Shifts::restored("nas", &tests(), &[found(280)]);
        assert_eq!(waits.waiting, [(280, found(280))]);
        let said = Shifted { waits: false, ..found(280) };
        let told = Shifts::restored("nas", &tests(), std::slice::from_ref(&said));
        assert_eq!((told.waiting.len(), told.said), (0, Some((280, Quantity::RoundTrip))));
        let silent = Shifted { with_goodput: true, ..said };
        assert_eq!(Shifts::restored("nas", &tests(), &[silent]).said, None);
    }

    #[test]
    fn a_change_near_one_of_the_goodput_is_the_same() {
        let records: Vec<i64> = (0..100).map(|n| n * 3).collect();
        assert!(is_same(&records, Some(150), 153) && is_same(&records, Some(150), 126));
        assert!(!is_same(&records, Some(150), 180) && !is_same(&records, None, 150));
        assert!(!is_same(&records, Some(150), 151), "it is no test of this series");
    }
}
