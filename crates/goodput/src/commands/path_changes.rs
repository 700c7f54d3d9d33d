//! The changes of a path: what the chart found, with what else changed, and what the history has of it.

use goodput_model::{BitRate, Estimate, Record};
use goodput_store::{Store, StoreError, Tested, ToldChange};
use goodput_watch::{Change, Point, Step, differences};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::report::watch::Changed;

/// Records before a change that it is compared with: eight hours of tests every 15 minutes.
const COMPARED: usize = 32;
const MINUTES_OF_A_DAY: f64 = 1440.0;

/// Most changes that are listed: a path that doesn't change has one in more than a year.
const LISTED: usize = 1000;

/// The changes that watches found in tests of targets with this text, the oldest first: as they said them, so that a
/// question after them costs as much after years as after days.
///
/// # Errors
/// The history can't be read.
pub fn all(store: &Store, text: &str) -> Result<Vec<Changed>, StoreError> {
    // What a newer goodput said may be unreadable, and hides no other.
    let read = |told: ToldChange| serde_json::from_str(&told.event).ok();
    let mut found: Vec<Changed> =
        store.changes(text, LISTED)?.into_iter().filter_map(read).collect();
    found.sort_by(|a, b| a.since.cmp(&b.since));
    Ok(found)
}

/// The numbers of the records before a change, and since then, which the newest of `records` made certain.
pub fn around(records: &[i64], change: &Change) -> [Vec<i64>; 2] {
    let first = records.iter().rposition(|id| *id == change.first_since.id);
    let first = first.unwrap_or(records.len());
    [records[first.saturating_sub(COMPARED)..first].into(), records[first..].into()]
}

/// Those that can be read: a record may have been deleted, or be of a newer goodput.
pub fn read(store: &Store, ids: &[i64]) -> Vec<Record> {
    ids.iter().filter_map(|id| store.get(*id).ok()).collect()
}

/// A change, with what changed with it, by the records before it and since then.
pub fn explained(target: &str, [before, since]: &[Vec<Record>; 2], change: &Change) -> Changed {
    let found = differences(before, since, goodput_kernel::sources::lasts);
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
        p_value: change.probability,
        record_before: change.last_before.id,
        record_since: change.newest.id,
        before_bits_per_s: BitRate(change.before),
        since_bits_per_s: BitRate(change.since),
        limit_before: found.before,
        limit_since: found.since,
        changed: found.changed,
        takes_back: None,
    }
}

/// When the change began that `newest` takes back; none if it takes none back. `told` are those before it, the oldest first.
/// One that took one back itself is no change that another could take back.
pub fn taken_back(told: &[Changed], newest: &Changed) -> Option<String> {
    let of_target =
        |change: &&Changed| change.target == newest.target && change.since < newest.since;
    let last = told.iter().rfind(of_target).filter(|last| last.takes_back.is_none())?;
    step(newest)?.takes_back(&step(last)?).then(|| last.since.clone())
}

fn step(change: &Changed) -> Option<Step> {
    let at = change.since.parse::<Timestamp>().ok()?;
    let ratio = |percent: f64| 1.0 + percent / 100.0;
    Some(Step {
        at_s: at.as_second() as f64,
        ratio: Estimate {
            value: ratio(change.percent),
            low: ratio(change.low_percent),
            high: ratio(change.high_percent),
        },
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(since: &str, percent: f64, takes_back: Option<&str>) -> Changed {
        Changed {
            at: since.into(),
            target: "nas".into(),
            since: since.into(),
            tests: 8,
            percent,
            low_percent: percent - 2.0,
            high_percent: percent + 2.0,
            p_value: 1e-9,
            record_before: 1,
            record_since: 9,
            before_bits_per_s: BitRate(1e9),
            since_bits_per_s: BitRate(1e9),
            limit_before: None,
            limit_since: None,
            changed: Vec::new(),
            takes_back: takes_back.map(str::to_owned),
        }
    }

    #[test]
    fn a_change_takes_back_the_last_one_of_its_target() {
        let (monday, tuesday) = ("2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z");
        let drop = changed(monday, -10.0, None);
        let rise = changed(tuesday, 11.1, None);
        assert_eq!(taken_back(std::slice::from_ref(&drop), &rise), Some(monday.into()));
        assert_eq!(taken_back(&[], &rise), None);
        let other = Changed { target: "nas2".into(), ..drop.clone() };
        assert_eq!(taken_back(&[drop.clone(), other], &rise), Some(monday.into()));
        let back = changed("2026-11-23T20:00:00Z", -10.0, Some(monday));
        assert_eq!(taken_back(&[drop, back], &rise), None, "a path that goes up and down");
    }
}
