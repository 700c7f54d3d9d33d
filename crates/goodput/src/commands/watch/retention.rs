//! How long the results of watches are kept.

use goodput_store::{GiveBack, Old, Store, StoreError};
use jiff::Timestamp;

use crate::commands::history::{delete, give_back};

/// How old what is kept may be, seconds.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// Tests.
    pub tests_s: f64,
    /// Days of deleted results; never less than tests.
    pub days_s: f64,
}

/// Deletes the tests that are older than so many seconds of watching, with a test of each target every `every_s`, and the days
/// of deleted results that are too old. Gives a part of their room back. Returns the tests that are left if the disk has no
/// room to delete them.
pub fn delete_old(store: &Store, keep: Keep, every_s: f64) -> Result<Option<Old>, StoreError> {
    let times = store.watched_times()?.into_iter().filter_map(|(number, started)| {
        let at: Timestamp = started.parse().ok()?;
        Some((number, at.as_second() as f64))
    });
    let tests: Vec<_> = times.collect();
    let Some(newest) = goodput_watch::newest_to_delete(&tests, keep.tests_s, every_s) else {
        return Ok(None);
    };
    let old = Old::Watched(newest);
    match delete(store, &old, &mut 0) {
        Err(why) if why.is_full_disk() => return Ok(Some(old)),
        done => done?,
    }
    let kept_s = tests.iter().filter(|(number, _)| *number > newest).map(|(_, at_s)| *at_s);
    if let Some(day) = first_day_to_keep(kept_s, keep) {
        store.delete_days_before(&day)?;
    }
    give_back(store, GiveBack::Some);
    Ok(None)
}

/// Days count from the oldest test that stays, which is as old as tests may be, and not from now: a clock that is years ahead
/// deletes none. None without a test.
fn first_day_to_keep(kept_s: impl Iterator<Item = f64>, keep: Keep) -> Option<String> {
    let oldest_s = kept_s.reduce(f64::min)?;
    let longer_s = (keep.days_s - keep.tests_s).max(0.0);
    let first = Timestamp::from_second((oldest_s - longer_s) as i64).ok()?;
    Some(first.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Record;
    use goodput_store::{Wanted, Watched};

    #[test]
    fn what_is_deleted_stays_as_days_for_as_long_as_these_are_kept() {
        const DAY_S: f64 = 86_400.0;
        let json = include_str!("../../report/example/record.json");
        let example = goodput_store::read_record(json).unwrap();
        let left = |days_s: f64| {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(&folder.path().join("history.db")).unwrap();
            for day in 1..=10 {
                let started = format!("2026-01-{day:02}T12:00:00Z");
                let record = Record { started, ..example.clone() };
                let watched = Watched { plan: "{}".into(), goodput: None };
                store.add_watched(&record, &watched).unwrap();
            }
            let keep = Keep { tests_s: 2.5 * DAY_S, days_s };
            assert_eq!(delete_old(&store, keep, DAY_S).unwrap(), None, "nothing is left");
            let days = store.days(&Wanted::default()).unwrap();
            (store.list(100).unwrap().len(), days.len())
        };
        assert_eq!(left(1830.0 * DAY_S), (3, 7));
        assert_eq!(left(5.5 * DAY_S), (3, 3));
        assert_eq!(left(0.0), (3, 0), "never less than tests");
    }

    #[test]
    fn days_are_as_old_as_the_oldest_test_that_stays() {
        let day_s = 86_400.0;
        let keep = |days: f64| Keep { tests_s: 3.0 * day_s, days_s: days * day_s };
        let first = |kept: &[f64]| first_day_to_keep(kept.iter().copied(), keep(5.0));
        assert_eq!(first(&[]), None);
        let never_less = first_day_to_keep([10.5 * day_s].into_iter(), keep(1.0));
        assert_eq!(never_less.as_deref(), Some("1970-01-11"));
        // The clock was ten years ahead for a test.
        let ahead = [10.5 * day_s, 3660.0 * day_s, 11.0 * day_s];
        assert_eq!(first(&ahead).as_deref(), Some("1970-01-09"));
    }
}
