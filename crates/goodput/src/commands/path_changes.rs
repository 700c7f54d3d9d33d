//! The changes of a path: what the chart found, with what else changed.

use goodput_model::{BitRate, Record};
use goodput_store::{Series, Store, StoreError, Tested};
use goodput_watch::{Change, Chart, MAX_TESTS, Point, differences};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::report::watch::Changed;

/// Records before a change that it is compared with: eight hours of tests every 15 minutes.
const COMPARED: usize = 32;
const MINUTES_OF_A_DAY: f64 = 1440.0;

/// The changes of every series of these targets, the oldest first, as a watch would find them in the tests that the history
/// has.
///
/// # Errors
/// The history can't be read.
pub fn all(store: &Store, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Changed>, StoreError> {
    let mut found = Vec::new();
    for series in store.series()?.iter().filter(|series| is_wanted(&series.target)) {
        found.extend(of_series(store, series)?);
    }
    found.sort_by(|a, b| a.since.cmp(&b.since));
    Ok(found)
}

fn of_series(store: &Store, series: &Series) -> Result<Vec<Changed>, StoreError> {
    let tests = store.tests_of(&series.target, &series.plan, MAX_TESTS)?;
    let points: Vec<Point> = tests.iter().filter_map(of_test).collect();
    let mut chart = Chart::restored(&[]);
    let changes: Vec<Change> = points.iter().filter_map(|point| chart.push(*point)).collect();
    let records: Vec<i64> = points.iter().map(|point| point.id).collect();
    let until = |change: &Change| match records.iter().position(|id| *id == change.newest.id) {
        Some(newest) => &records[..=newest],
        None => &records[..],
    };
    let explained = |change: &Change| explained(store, &series.target, until(change), change);
    Ok(changes.iter().map(explained).collect())
}

/// A change that the newest of these `records` made certain, with what changed with it.
pub fn explained(store: &Store, target: &str, records: &[i64], change: &Change) -> Changed {
    let first = records.iter().rposition(|id| *id == change.first_since.id);
    let first = first.unwrap_or(records.len());
    // A record may have been deleted, or be of a newer goodput.
    let read =
        |ids: &[i64]| -> Vec<Record> { ids.iter().filter_map(|id| store.get(*id).ok()).collect() };
    let before = read(&records[first.saturating_sub(COMPARED)..first]);
    let since = read(&records[first..]);
    let found = differences(&before, &since, goodput_kernel::sources::lasts);
    let time = |point: Point| {
        let time = Timestamp::from_second(point.at_s as i64).unwrap_or_default();
        time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    };
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Changed {
        at: time(change.newest),
        target: target.into(),
        since: time(change.first_since),
        tests: change.tests,
        percent: percent(change.ratio.value),
        low_percent: percent(change.ratio.low),
        high_percent: percent(change.ratio.high),
        probability: change.probability,
        record_before: change.last_before.id,
        record_since: change.newest.id,
        before_bits_per_s: BitRate(change.before),
        since_bits_per_s: BitRate(change.since),
        limit_before: found.before,
        limit_since: found.since,
        changed: found.changed,
    }
}

/// A test of the history as the chart sees it.
pub fn of_test(test: &Tested) -> Option<Point> {
    point(test.record, &test.started, test.goodput)
}

/// A test as the chart sees it; none if its time can't be read.
pub fn point(id: i64, started: &str, goodput: BitRate) -> Option<Point> {
    let at = started.parse::<Timestamp>().ok()?;
    let time = at.to_zoned(TimeZone::system()).time();
    let minutes = f64::from(time.hour()) * 60.0 + f64::from(time.minute());
    Some(Point {
        id,
        at_s: at.as_second() as f64,
        day_share: minutes / MINUTES_OF_A_DAY,
        goodput: goodput.0,
    })
}
