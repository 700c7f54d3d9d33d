//! Deleting what is old, in SQLite: one step, whatever says what is old.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::days;
use crate::old::Old;

/// Deletes the records that began before a time. Without the index, SQLite would look at each record.
pub(super) const DELETE_ALL: &str = "DELETE FROM records
     WHERE id IN (SELECT id FROM records INDEXED BY records_by_time WHERE started < ?1)";

/// Deletes the records of the tests up to a number.
pub(super) const DELETE_WATCHED: &str =
    "DELETE FROM records WHERE id IN (SELECT record FROM watched WHERE record <= ?1)";

/// When the record began that follows so many oldest ones, if it began before a time.
pub(super) const BEGUN_AFTER: &str = "SELECT started FROM records INDEXED BY records_by_time
     WHERE started < ?1 ORDER BY started LIMIT 1 OFFSET ?2";

/// The number of the test that follows so many oldest ones, if it is none above a number.
pub(super) const WATCHED_AFTER: &str =
    "SELECT record FROM watched WHERE record <= ?1 ORDER BY record LIMIT 1 OFFSET ?2";

/// Deletes what was spent before a time, but not within the last day, for which a watch's budget is.
pub(super) const DELETE_SPENT: &str = "DELETE FROM spent WHERE id IN (
        SELECT id FROM spent INDEXED BY spent_by_start
        WHERE started < min(?1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-1 day'))
     )";

/// A part of what is old: its `most` oldest, the one behind them, and all that began with that. `None` if there are no more
/// than `most`.
pub(super) fn first_part(db: &Connection, old: &Old, most: u32) -> rusqlite::Result<Option<Old>> {
    let part = match old {
        Old::Before(started) => {
            let next = db.query_row(BEGUN_AFTER, params![started, most], |row| row.get(0));
            let next: Option<String> = next.optional()?;
            next.map(|next| Old::up_to(next, started))
        }
        Old::Watched(last) => {
            let next = db.query_row(WATCHED_AFTER, params![last, most], |row| row.get(0));
            next.optional()?.map(Old::Watched)
        }
    };
    Ok(part)
}

/// Whether there is a record to delete.
pub(super) fn is_any(db: &Connection, old: &Old) -> rusqlite::Result<bool> {
    Ok(first_part(db, old, 0)?.is_some())
}

/// Deletes all of it. Returns the number of records.
pub(super) fn delete(db: &Connection, old: &Old) -> rusqlite::Result<usize> {
    // Nobody else deletes between the count and the deletion. It reads first: another writer in between would be an error,
    // not a wait.
    let step = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    let deleted = delete_within(&step, old)?;
    step.commit()?;
    Ok(deleted)
}

/// The same, within a step of the caller.
pub(super) fn delete_within(step: &Connection, old: &Old) -> rusqlite::Result<usize> {
    match old {
        Old::Before(started) => {
            step.execute(&days::sum_up(days::OLD), [started])?;
            let deleted = step.execute(DELETE_ALL, [started])?;
            step.execute("DELETE FROM watched WHERE started < ?1", [started])?;
            step.execute(DELETE_SPENT, [started])?;
            Ok(deleted)
        }
        Old::Watched(last) => {
            let newest = "SELECT max(started) FROM watched WHERE record <= ?1";
            let newest: Option<String> = step.query_row(newest, [last], |row| row.get(0))?;
            step.execute(DELETE_SPENT, [newest])?;
            step.execute(&days::sum_up(days::OLD_WATCHED), [last])?;
            let deleted = step.execute(DELETE_WATCHED, [last])?;
            step.execute("DELETE FROM watched WHERE record <= ?1", [last])?;
            Ok(deleted)
        }
    }
}
