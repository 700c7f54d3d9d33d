//! How long the results of watches are kept.

use goodput_store::{GiveBack, Store, StoreError};
use jiff::Timestamp;

/// Deletes the tests that are older than `keep_s` seconds of watching, with a test of each target every `every_s`.
pub fn delete_old(store: &Store, keep_s: f64, every_s: f64) -> Result<(), StoreError> {
    let times = store.watched_times()?.into_iter().filter_map(|(number, started)| {
        let at: Timestamp = started.parse().ok()?;
        Some((number, at.as_second() as f64))
    });
    let tests: Vec<_> = times.collect();
    match goodput_watch::newest_to_delete(&tests, keep_s, every_s) {
        Some(newest) => {
            store.delete_watched(newest)?;
            store.give_back(GiveBack::Some).map(drop)
        }
        None => Ok(()),
    }
}
