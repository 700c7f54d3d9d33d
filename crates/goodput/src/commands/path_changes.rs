//! The changes of a path: what the chart found, with what else changed, and what the history has of it.

use goodput_model::{BitRate, Record, median};
use goodput_store::{Figures, Store, StoreError, Tested, ToldChange};
use goodput_watch::{Change, Difference, Differences, Mark, Point, Quantity, differences};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;

use crate::report::change_point::ChangePoint;
use crate::report::shifted::Shifted;
use crate::report::watch::{Changed, Event};

/// Records before a change that it is compared with: eight hours of tests every 15 minutes.
const COMPARED: usize = 32;
const MINUTES_OF_A_DAY: f64 = 1440.0;

/// Most changes that are listed: a path that doesn't change has one in more than a year.
const LISTED: usize = 1000;

/// The changes of the goodput that watches of this host found in tests of targets with this text, the oldest first: as they
/// said them, so that a question after them costs as much after years as after days.
///
/// # Errors
/// The history can't be read.
pub fn own(store: &Store, text: &str) -> Result<Vec<Changed>, StoreError> {
    let mut found: Vec<Changed> = read_own(store.changes(text, LISTED)?);
    found.sort_by(|a, b| a.found.since.cmp(&b.found.since));
    Ok(found)
}

/// The same of other quantities, in no order.
///
/// # Errors
/// The history can't be read.
pub fn own_shifts(store: &Store, text: &str) -> Result<Vec<Shifted>, StoreError> {
    Ok(read_own(store.shifts(text, LISTED)?))
}

fn read_own<T: DeserializeOwned>(told: Vec<ToldChange>) -> Vec<T> {
    let own = told.into_iter().filter(|told| told.of_host.is_none());
    own.filter_map(|told| read_told(&told)).collect()
}

/// What a newer goodput said may be unreadable, and hides no other.
fn read_told<T: DeserializeOwned>(told: &ToldChange) -> Option<T> {
    serde_json::from_str(&told.event).ok()
}

/// All that watches said of changes, those of other hosts with the same database too, the oldest first.
///
/// # Errors
/// The history can't be read.
pub fn events(store: &Store, text: &str) -> Result<Vec<Event>, StoreError> {
    let changes = store.changes(text, LISTED)?.into_iter().filter_map(|told| {
        let mut change: Changed = read_told(&told)?;
        change.found.of_host = told.of_host;
        Some(Event::Changed(change.into()))
    });
    let shifts = store.shifts(text, LISTED)?.into_iter().filter_map(|told| {
        let mut shift: Shifted = read_told(&told)?;
        shift.found.of_host = told.of_host;
        shift.is_said().then(|| Event::Shifted(shift.into()))
    });
    let mut events: Vec<Event> = changes.chain(shifts).collect();
    events.sort_by(|a, b| since(a).cmp(since(b)));
    Ok(events)
}

/// When the first test after a change began; empty for other events.
pub fn since(event: &Event) -> &str {
    match event {
        Event::Changed(change) => &change.found.since,
        Event::Shifted(shift) => &shift.found.since,
        _ => "",
    }
}

/// The numbers of the records before a change, of those that may be of either side, and of those since then, which the newest of
/// `records` made certain. Before it are those since the change before.
pub fn around(records: &[i64], change: &Change) -> [Vec<i64>; 3] {
    let place = |point: &Point| records.iter().rposition(|id| *id == point.id);
    let [earliest, latest] =
        change.first_between.map(|first| place(&first).unwrap_or(records.len()));
    let begin = place(&change.first_before).unwrap_or_default();
    let from = begin.max(earliest.saturating_sub(COMPARED)).min(earliest);
    let latest = latest.max(earliest);
    [&records[from..earliest], &records[earliest..latest], &records[latest..]].map(<[i64]>::to_vec)
}

/// Those that can be read: a record may have been deleted, or be of a newer goodput.
pub fn read(store: &Store, ids: &[i64]) -> Vec<Record> {
    ids.iter().filter_map(|id| store.get(*id).ok()).collect()
}

/// A change, with what changed with it, by the records before it and since then.
pub fn explained(target: &str, records: &[Vec<Record>; 3], change: &Change) -> Changed {
    let sides = records.each_ref().map(Vec::as_slice);
    let found = differences(sides, goodput_kernel::sources::lasts);
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Changed {
        percent: percent(change.ratio.value),
        low_percent: percent(change.ratio.low),
        high_percent: percent(change.ratio.high),
        before_bits_per_s: BitRate(change.before),
        since_bits_per_s: BitRate(change.since),
        found: change_point(target, change, found),
    }
}

/// What is said of every change.
fn change_point(target: &str, change: &Change, found: Differences) -> ChangePoint {
    let [earliest, latest] = change.first_between;
    ChangePoint {
        at: time(change.newest),
        target: target.into(),
        since: time(change.first_since),
        since_between: (earliest.id != latest.id).then(|| [earliest, latest].map(time)),
        tests: change.tests,
        p_value: change.probability,
        record_before: change.last_before.id,
        record_first: Some(change.first_since.id),
        record_since: change.newest.id,
        limit_before: found.before,
        limit_since: found.since,
        test: found.test,
        changed: found.changed,
        takes_back: change.takes_back.map(time),
        of_host: None,
    }
}

/// A change of another quantity, with what changed with it, by the records before it and since then.
pub fn explained_shift(
    target: &str,
    quantity: Quantity,
    records: &[Vec<Record>; 3],
    change: &Change,
) -> Shifted {
    let sides = records.each_ref().map(Vec::as_slice);
    let mut found = differences(sides, goodput_kernel::sources::lasts);
    // It is in the first line.
    let is_itself = |one: &Difference| match quantity {
        Quantity::RoundTrip => one.what == "round trip under load",
        Quantity::Loss => ["retransmitted share", "lost datagrams"].contains(&one.what.as_str()),
    };
    let usual = |records: &[Record]| {
        median(records.iter().filter_map(|record| figure(quantity, &Figures::of(record))))
    };
    let [before, _, since] = sides;
    let (value_before, value_since) = (usual(before), usual(since));
    found.changed.retain(|one| !is_itself(one));
    Shifted {
        quantity,
        value_before,
        value_since,
        ratio: [change.ratio.value, change.ratio.low, change.ratio.high],
        with_goodput: false,
        waits: false,
        passed: false,
        found: change_point(target, change, found),
    }
}

/// The value of a quantity, if it is known.
pub fn figure(quantity: Quantity, figures: &Figures) -> Option<f64> {
    match quantity {
        Quantity::RoundTrip => figures.round_trip_s,
        Quantity::Loss => figures.lost_share,
    }
}

/// When a test began, as records say it.
fn time(point: Point) -> String {
    let time = Timestamp::from_second(point.at_s as i64).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whether this is what was said of a change that began with a test of `target`. Several tests may have begun in one second.
pub fn begins(found: &ChangePoint, target: &str, test: &Tested) -> bool {
    let is_first = found.record_first.is_none_or(|first| first == test.record);
    is_first && found.target == target && seconds(&found.since) == seconds(&test.started)
}

/// What was found to begin with a test of `target`; `told` is what was said of it and of others.
pub fn mark(test: &Tested, target: &str, told: &[Changed]) -> Mark {
    if !test.begins_change {
        return Mark::Nothing;
    }
    let begins = |found: &&ChangePoint| begins(found, target, test);
    let mut told = told.iter().map(|change| &change.found).filter(begins);
    let earlier = told.find_map(|found| found.takes_back.as_deref());
    earlier.and_then(seconds).map_or(Mark::Change, Mark::Return)
}

/// What was found of a quantity to begin with a test of `target`; `told` is what was said of it and of others.
pub fn shift_mark(test: &Tested, target: &str, quantity: Quantity, told: &[Shifted]) -> Mark {
    let begins =
        |shift: &&Shifted| shift.quantity == quantity && begins(&shift.found, target, test);
    match told.iter().find(begins) {
        None => Mark::Nothing,
        Some(shift) => {
            let earlier = shift.found.takes_back.as_deref().and_then(seconds);
            earlier.map_or(Mark::Change, Mark::Return)
        }
    }
}

/// A time of a record as the chart has it: seconds since 1970.
fn seconds(time: &str) -> Option<f64> {
    Some(time.parse::<Timestamp>().ok()?.as_second() as f64)
}

/// A test of the history as the chart sees it.
pub fn of_test(test: &Tested) -> Option<Point> {
    point(test.record, &test.started, test.goodput.0)
}

/// The same of another quantity, if the history knows it.
pub fn shift_point(test: &Tested, quantity: Quantity) -> Option<Point> {
    let (round_trip_s, lost_share) = (test.round_trip_s, test.lost_share);
    let figures = Figures { round_trip_s, lost_share, ..Figures::default() };
    let value = quantity.charted(figure(quantity, &figures)?);
    point(test.record, &test.started, value)
}

/// A test as the chart sees it; none if its time can't be read.
pub fn point(id: i64, started: &str, value: f64) -> Option<Point> {
    point_in(TimeZone::system(), id, started, value)
}

/// The same where the clocks are those of a zone. Both times are whole seconds: otherwise, the chart would take what was cut off
/// for a clock that has moved.
fn point_in(zone: TimeZone, id: i64, started: &str, value: f64) -> Option<Point> {
    let at = started.parse::<Timestamp>().ok()?;
    let at = Timestamp::from_second(at.as_second()).ok()?;
    let time = at.to_zoned(zone).time();
    let minutes = f64::from(time.hour()) * 60.0 + f64::from(time.minute());
    let day_share = (minutes + f64::from(time.second()) / 60.0) / MINUTES_OF_A_DAY;
    Some(Point { id, at_s: at.as_second() as f64, day_share, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{change_point, shifted};
    use goodput_model::Estimate;

    /// What was said of a change that began then.
    fn changed(target: &str, since: &str, takes_back: Option<&str>) -> Changed {
        let found = ChangePoint {
            at: since.into(),
            target: target.into(),
            since: since.into(),
            takes_back: takes_back.map(str::to_owned),
            ..change_point::tests::example()
        };
        Changed {
            found,
            percent: 11.1,
            low_percent: 9.1,
            high_percent: 13.1,
            before_bits_per_s: BitRate(1e9),
            since_bits_per_s: BitRate(1e9),
        }
    }

    #[test]
    fn a_change_that_took_one_back_is_known_again_by_its_time() {
        let (monday, tuesday) = ("2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z");
        let test = |begins_change| Tested {
            record: 9,
            started: "2026-11-24T09:00:00.25Z".into(),
            goodput: BitRate(1e9),
            round_trip_s: Some(0.01),
            lost_share: None,
            begins_change,
        };
        let told = [changed("nas2", tuesday, Some(tuesday)), changed("nas", tuesday, Some(monday))];
        assert_eq!(mark(&test(true), "nas", &told), Mark::Return(1_795_424_400.0));
        assert_eq!(mark(&test(false), "nas", &told), Mark::Nothing);
        assert_eq!(mark(&test(true), "nas", &told[..1]), Mark::Change);
        let mut other = told[1].clone();
        other.found.record_first = Some(8);
        assert_eq!(mark(&test(true), "nas", &[other.clone()]), Mark::Change, "of the same second");
        other.found.record_first = Some(9);
        assert_eq!(mark(&test(true), "nas", &[other]), Mark::Return(1_795_424_400.0));
        assert_eq!(mark(&test(true), "nas", &[changed("nas", monday, Some(monday))]), Mark::Change);
    }

    #[test]
    fn a_change_of_another_quantity_is_known_again_by_its_time_and_quantity() {
        let (monday, tuesday) = ("2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z");
        let test = Tested {
            record: 9,
            started: tuesday.into(),
            goodput: BitRate(1e9),
            round_trip_s: Some(0.01),
            lost_share: None,
            begins_change: false,
        };
        let shift = |takes_back: Option<&str>| {
            let mut shift = shifted::tests::example();
            shift.found.since = tuesday.into();
            shift.found.takes_back = takes_back.map(str::to_owned);
            shift
        };
        let mark = |quantity, told: &[Shifted]| shift_mark(&test, "nas", quantity, told);
        let trip = Quantity::RoundTrip;
        assert_eq!(mark(trip, &[shift(None)]), Mark::Change);
        assert_eq!(mark(trip, &[shift(Some(monday))]), Mark::Return(1_795_424_400.0));
        assert_eq!(mark(Quantity::Loss, &[shift(None)]), Mark::Nothing);
        assert_eq!(mark(trip, &[shifted::tests::example()]), Mark::Nothing);
        assert_eq!(shift_point(&test, trip).unwrap().value, 0.01);
        assert_eq!(shift_point(&test, Quantity::Loss), None, "it is unknown");
    }

    #[test]
    fn what_the_watch_has_not_said_is_listed_nowhere_and_known_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("history.db")).unwrap();
        let json = include_str!("../report/example/record.json");
        let record = store.add(&Record::from_json(json).unwrap()).unwrap();
        let said = shifted::tests::example();
        let target = said.found.target.clone();
        for (waits, passed, listed) in [(true, false, 0), (false, true, 0), (false, false, 1)] {
            let shift = Shifted { waits, passed, ..said.clone() };
            let event = serde_json::to_string(&shift).unwrap();
            let told = ToldChange { target: target.clone(), event, of_host: None };
            store.keep_shift(record, shift.quantity.id(), &told).unwrap();
            assert_eq!(events(&store, &target).unwrap().len(), listed, "{shift:?}");
            assert_eq!(own_shifts(&store, &target).unwrap(), [shift]);
        }
    }

    /// How far the local time of day of tests is ahead of UTC, in minutes, and for how many of them.
    fn ahead(zone: &str, first: &str, step_s: i64, tests: i64) -> Vec<(i64, usize)> {
        let zone = TimeZone::posix(zone).unwrap();
        let first: Timestamp = first.parse().unwrap();
        let mut runs: Vec<(i64, usize)> = Vec::new();
        for n in 0..tests {
            let at = Timestamp::from_second(first.as_second() + n * step_s).unwrap();
            let point = point_in(zone.clone(), n, &at.to_string(), 1e9).unwrap();
            let share = (point.day_share - point.at_s / 86_400.0).rem_euclid(1.0);
            let seconds = (share * 86_400.0).round() as i64 % 86_400;
            assert_eq!(seconds % 60, 0, "seconds are not cut off");
            match runs.last_mut() {
                Some((minutes, count)) if *minutes == seconds / 60 => *count += 1,
                _ => runs.push((seconds / 60, 1)),
            }
        }
        runs
    }

    #[test]
    fn the_local_time_of_day_moves_with_the_clocks_and_at_no_other_time() {
        let berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
        // Tests every 13 minutes and some seconds, from midnight UTC on: the clocks move at 1:00 UTC.
        let runs = |zone, day: &str| ahead(zone, &format!("{day}T00:00:00Z"), 787, 110);
        assert_eq!(runs(berlin, "2026-03-29"), [(60, 5), (120, 105)]);
        assert_eq!(runs(berlin, "2026-10-25"), [(120, 5), (60, 105)]);
        assert_eq!(runs(berlin, "2026-07-01"), [(120, 110)]);
        // Half an hour, at 15:30 and 15:00 UTC of the day before.
        let island = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0";
        assert_eq!(runs(island, "2026-10-03"), [(630, 71), (660, 39)]);
        assert_eq!(runs(island, "2026-04-04"), [(660, 69), (630, 41)]);
    }

    #[test]
    fn sides_begin_with_the_change_before_and_leave_out_what_may_be_of_either() {
        let point = |id| Point { id, at_s: id as f64, day_share: 0.0, value: 1e9 };
        let change = |first_before, takes_back| Change {
            first_before: point(first_before),
            last_before: point(58),
            first_since: point(60),
            first_between: [59, 61].map(point),
            newest: point(63),
            tests: 4,
            before: 1e9,
            since: 1e9,
            ratio: Estimate { value: 1.1, low: 1.1, high: 1.1 },
            probability: 1e-9,
            takes_back,
        };
        let records: Vec<i64> = (0..64).collect();
        let sides = |first_before| around(&records, &change(first_before, None));
        let numbers = |from, until| (from..until).collect::<Vec<i64>>();
        assert_eq!(sides(50), [numbers(50, 59), vec![59, 60], numbers(61, 64)]);
        assert_eq!(sides(7)[0], numbers(27, 59));
        assert_eq!(sides(-1)[0], numbers(27, 59), "it is forgotten");
        let text = explained("nas", &Default::default(), &change(50, Some(point(50))));
        assert_eq!(text.found.takes_back.as_deref(), Some("1970-01-01T00:00:50Z"));
        let between = ["1970-01-01T00:00:59Z", "1970-01-01T00:01:01Z"].map(str::to_owned);
        assert_eq!(text.found.since_between, Some(between));
        let sure = Change { first_between: [point(60); 2], ..change(50, None) };
        assert_eq!(explained("nas", &Default::default(), &sure).found.since_between, None);
    }
}
