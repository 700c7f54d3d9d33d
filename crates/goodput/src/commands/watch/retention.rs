//! How long the results of watches are kept.

use goodput_store::{GiveBack, Store, StoreError};
use jiff::Timestamp;

use crate::commands::history::give_back;

/// Deletes the tests that are older than `keep_s` seconds of watching, with a test of each target every `every_s`, and the days
/// of deleted results that are older than what stays by `keep_days_s`. Gives a part of their room back.
pub fn delete_old(
    store: &Store,
    keep_s: f64,
    every_s: f64,
    keep_days_s: f64,
) -> Result<(), StoreError> {
    let times = store.watched_times()?.into_iter().filter_map(|(number, started)| {
        let at: Timestamp = started.parse().ok()?;
        Some((number, at.as_second() as f64))
    });
    let tests: Vec<_> = times.collect();
    let Some(newest) = goodput_watch::newest_to_delete(&tests, keep_s, every_s) else {
        return Ok(());
    };
    store.delete_watched(newest)?;
    let kept_s = tests.iter().filter(|(number, _)| *number > newest).map(|(_, at_s)| *at_s);
    if let Some(day) = first_day_to_keep(kept_s, keep_days_s) {
        store.delete_days_before(&day)?;
    }
    give_back(store, GiveBack::Some);
    Ok(())
}

/// Days count from the oldest test that stays, not from now: a clock that is years ahead deletes none. None without a test.
fn first_day_to_keep(kept_s: impl Iterator<Item = f64>, keep_days_s: f64) -> Option<String> {
    let oldest_s = kept_s.reduce(f64::min)?;
    let first = Timestamp::from_second((oldest_s - keep_days_s) as i64).ok()?;
    Some(first.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_as_old_as_the_oldest_test_that_stays() {
        let day_s = 86_400.0;
        let first = |kept: &[f64]| first_day_to_keep(kept.iter().copied(), 2.0 * day_s);
        assert_eq!(first(&[]), None);
        // The clock was ten years ahead for a test.
        let ahead = [10.5 * day_s, 3660.0 * day_s, 11.0 * day_s];
        assert_eq!(first(&ahead).as_deref(), Some("1970-01-09"));
    }
}
