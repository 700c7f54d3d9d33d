//! The changes of a path: what the chart found, with what else changed, and what the history has of it.

use goodput_model::{BitRate, Record};
use goodput_store::{Store, StoreError, Tested, ToldChange};
use goodput_watch::{Change, Mark, Point, differences};
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

/// The numbers of the records before a change, and since then, which the newest of `records` made certain. Before one that
/// takes an earlier one back, those since that one.
pub fn around(records: &[i64], change: &Change) -> [Vec<i64>; 2] {
    let place = |point: &Point| records.iter().rposition(|id| *id == point.id);
    let first = place(&change.first_since).unwrap_or(records.len());
    let earlier = change.takes_back.as_ref().and_then(place).unwrap_or_default();
    let from = earlier.max(first.saturating_sub(COMPARED));
    [records[from..first].into(), records[first..].into()]
}

/// Those that can be read: a record may have been deleted, or be of a newer goodput.
pub fn read(store: &Store, ids: &[i64]) -> Vec<Record> {
    ids.iter().filter_map(|id| store.get(*id).ok()).collect()
}

/// A change, with what changed with it, by the records before it and since then.
pub fn explained(target: &str, [before, since]: &[Vec<Record>; 2], change: &Change) -> Changed {
    let found = differences(before, since, goodput_kernel::sources::lasts);
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
        takes_back: change.takes_back.map(time),
    }
}

/// When a test began, as records say it.
fn time(point: Point) -> String {
    let time = Timestamp::from_second(point.at_s as i64).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What was found to begin with a test of `target`; `told` is what was said of it and of others.
pub fn mark(test: &Tested, target: &str, told: &[Changed]) -> Mark {
    if !test.begins_change {
        return Mark::Nothing;
    }
    let started_s = seconds(&test.started);
    let begins = |change: &&Changed| change.target == target && seconds(&change.since) == started_s;
    let earlier = told.iter().filter(begins).find_map(|change| change.takes_back.as_deref());
    earlier.and_then(seconds).map_or(Mark::Change, Mark::Return)
}

/// A time of a record as the chart has it: seconds since 1970.
fn seconds(time: &str) -> Option<f64> {
    Some(time.parse::<Timestamp>().ok()?.as_second() as f64)
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
    use goodput_model::Estimate;

    /// What was said of a change that began then.
    fn changed(target: &str, since: &str, takes_back: Option<&str>) -> Changed {
        Changed {
            at: since.into(),
            target: target.into(),
            since: since.into(),
            tests: 8,
            percent: 11.1,
            low_percent: 9.1,
            high_percent: 13.1,
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
    fn a_change_that_took_one_back_is_known_again_by_its_time() {
        let (monday, tuesday) = ("2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z");
        let test = |begins_change| Tested {
            record: 9,
            started: "2026-11-24T09:00:00.25Z".into(),
            goodput: BitRate(1e9),
            begins_change,
        };
        let told = [changed("nas2", tuesday, Some(tuesday)), changed("nas", tuesday, Some(monday))];
        assert_eq!(mark(&test(true), "nas", &told), Mark::Return(1_795_424_400.0));
        assert_eq!(mark(&test(false), "nas", &told), Mark::Nothing);
        assert_eq!(mark(&test(true), "nas", &told[..1]), Mark::Change);
        assert_eq!(mark(&test(true), "nas", &[changed("nas", monday, Some(monday))]), Mark::Change);
    }

    #[test]
    fn what_takes_a_change_back_is_compared_with_what_was_since_that_one() {
        let point = |id| Point { id, at_s: id as f64, day_share: 0.0, goodput: 1e9 };
        let change = |takes_back| Change {
            last_before: point(59),
            first_since: point(60),
            newest: point(63),
            tests: 4,
            before: 1e9,
            since: 1e9,
            ratio: Estimate { value: 1.1, low: 1.1, high: 1.1 },
            probability: 1e-9,
            takes_back,
        };
        let records: Vec<i64> = (0..64).collect();
        let before = |takes_back| around(&records, &change(takes_back))[0].clone();
        assert_eq!(before(Some(point(50))), (50..60).collect::<Vec<_>>());
        assert_eq!(before(Some(point(7))), (28..60).collect::<Vec<_>>());
        assert_eq!(before(None), (28..60).collect::<Vec<_>>());
        let text = explained("nas", &Default::default(), &change(Some(point(50))));
        assert_eq!(text.takes_back.as_deref(), Some("1970-01-01T00:00:50Z"));
    }
}
