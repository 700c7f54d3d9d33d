//! How long the results of watches are kept.

use goodput_store::{GiveBack, Store, StoreError};
use jiff::Timestamp;

use crate::commands::history::give_back;

/// Deletes the tests that are older than `keep_s` seconds of watching, with a test of each target every `every_s`, and
/// gives a part of their room back.
pub fn delete_old(store: &Store, keep_s: f64, every_s: f64) -> Result<(), StoreError> {
    let times = store.watched_times()?.into_iter().filter_map(|(number, started)| {
        let at: Timestamp = started.parse().ok()?;
        Some((number, at.as_second() as f64))
    });
    let tests: Vec<_> = times.collect();
    if let Some(newest) = goodput_watch::newest_to_delete(&tests, keep_s, every_s) {
        store.delete_watched(newest)?;
        give_back(store, GiveBack::Some);
    }
    Ok(())
}
