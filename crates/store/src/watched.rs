//! The tests of `goodput watch`: series of tests with one plan, and what all tests cost, also those without a result.

use std::collections::BTreeSet;

use goodput_model::{BitRate, Record};
use rusqlite::{Row, Transaction, TransactionBehavior, params};

use crate::error::StoreError;
use crate::search::DELETE_SPENT;
use crate::store::{Entry, Store};

/// Reads the tests since a time alone, in their order.
pub(crate) const SPENT: &str = "SELECT started, bytes FROM spent INDEXED BY spent_by_start
     WHERE started >= ?1 AND target = ?2
     ORDER BY started";

/// Deletes the records of the tests up to a number.
pub(crate) const DELETE_WATCHED: &str =
    "DELETE FROM records WHERE id IN (SELECT record FROM watched WHERE record <= ?1)";

/// What a watch knows of a test, beside its record.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// What of the plan makes tests comparable, as JSON. Tests of a target with the same text can be compared.
    pub plan: String,
    /// Goodput, bits per second; none if the test is not whole.
    pub goodput: Option<BitRate>,
}

/// A whole test of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// Number of its record.
    pub record: i64,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Goodput, bits per second.
    pub goodput: BitRate,
    /// Whether it is the first one after a change of the path.
    pub begins_change: bool,
}

/// What a series is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The target, as typed by the user.
    pub target: String,
    /// What its tests have in common, as JSON.
    pub plan: String,
}

impl Store {
    /// Stores the record of a watch's test. Returns its number.
    pub fn add_watched(&self, record: &Record, watched: &Watched) -> Result<i64, StoreError> {
        let failed = |source| self.failed("write to", source);
        let step = self.db.unchecked_transaction().map_err(failed)?;
        let id = self.insert(record)?;
        let name = "INSERT INTO series (target, plan) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        step.execute(name, params![record.target, watched.plan]).map_err(failed)?;
        let insert = "INSERT INTO watched (record, series, started, goodput_bits_per_s)
                      SELECT ?1, id, ?2, ?3 FROM series WHERE target = ?4 AND plan = ?5";
        let goodput = watched.goodput.map(|goodput| goodput.0);
        let columns = params![id, record.started, goodput, record.target, watched.plan];
        step.execute(insert, columns).map_err(failed)?;
        step.commit().map_err(failed)?;
        Ok(id)
    }

    /// The newest whole tests of `target` with this plan, at most `most`, in the order in which they were stored.
    pub fn tests_of(
        &self,
        target: &str,
        plan: &str,
        most: usize,
    ) -> Result<Vec<Tested>, StoreError> {
        let select = "SELECT record, started, goodput_bits_per_s, begins_change FROM watched
                      WHERE series = (SELECT id FROM series WHERE target = ?1 AND plan = ?2)
                        AND goodput_bits_per_s IS NOT NULL
                      ORDER BY record DESC LIMIT ?3";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut tests = self.all(select, params![target, plan, most], |row| {
            Ok(Tested {
                record: row.get(0)?,
                started: row.get(1)?,
                goodput: BitRate(row.get(2)?),
                begins_change: row.get(3)?,
            })
        })?;
        tests.reverse();
        Ok(tests)
    }

    /// Marks the test with this record as the first one after a change of its path.
    pub fn mark_change(&self, record: i64) -> Result<(), StoreError> {
        self.write("UPDATE watched SET begins_change = 1 WHERE record = ?1", params![record])
    }

    /// Notes that a test of `target`, which begins at `started` (RFC 3339, UTC), may cost `bytes`. Returns the number of
    /// the note, for [`Store::settle`]. A watch that is killed before has spent what its test might have cost.
    pub fn spend(&self, target: &str, started: &str, bytes: u64) -> Result<i64, StoreError> {
        let insert = "INSERT INTO spent (target, started, bytes) VALUES (?1, ?2, ?3)";
        self.write(insert, params![target, started, whole(bytes)])?;
        Ok(self.db.last_insert_rowid())
    }

    /// Corrects a note of [`Store::spend`]: what the test really cost, with a result or without one.
    pub fn settle(&self, note: i64, bytes: u64) -> Result<(), StoreError> {
        self.write("UPDATE spent SET bytes = ?1 WHERE id = ?2", params![whole(bytes), note])
    }

    fn write(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<(), StoreError> {
        let written = self.db.execute(sql, parameters).map(drop);
        written.map_err(|source| self.failed("write to", source))
    }

    /// When the tests of `target` that began at `from` or later began, and the bytes that each cost.
    pub fn spent(&self, target: &str, from: &str) -> Result<Vec<(String, u64)>, StoreError> {
        self.all(SPENT, params![from, target], |row| {
            Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default()))
        })
    }

    /// The records of all tests and when each began, in the order in which they were stored.
    pub fn watched_times(&self) -> Result<Vec<(i64, String)>, StoreError> {
        let select = "SELECT record, started FROM watched ORDER BY record";
        self.all(select, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Deletes the tests with the numbers up to `last`, with their records. Returns their number. What was spent in the
    /// last 24 hours stays known.
    pub fn delete_watched(&self, last: i64) -> Result<usize, StoreError> {
        let failed = |source| self.failed("write to", source);
        // It reads first: another writer in between would be an error, not a wait.
        let step = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate);
        let step = step.map_err(failed)?;
        let newest = "SELECT max(started) FROM watched WHERE record <= ?1";
        let newest: Option<String> =
            step.query_row(newest, [last], |row| row.get(0)).map_err(failed)?;
        step.execute(DELETE_SPENT, [newest]).map_err(failed)?;
        let deleted = step.execute(DELETE_WATCHED, [last]).map_err(failed)?;
        step.execute("DELETE FROM watched WHERE record <= ?1", [last]).map_err(failed)?;
        step.commit().map_err(failed)?;
        Ok(deleted)
    }

    /// Which of these records are tests of a watch.
    pub fn watched_among(&self, entries: &[Entry]) -> Result<BTreeSet<i64>, StoreError> {
        let ids = || entries.iter().map(|entry| entry.id);
        let (Some(first), Some(last)) = (ids().min(), ids().max()) else {
            return Ok(BTreeSet::new());
        };
        let select = "SELECT record FROM watched WHERE record BETWEEN ?1 AND ?2";
        let watched = self.all(select, params![first, last], |row| row.get(0))?;
        let wanted: BTreeSet<i64> = ids().collect();
        Ok(watched.into_iter().filter(|id| wanted.contains(id)).collect())
    }

    /// All series, the oldest first.
    pub fn series(&self) -> Result<Vec<Series>, StoreError> {
        self.all("SELECT target, plan FROM series ORDER BY id", [], |row| {
            Ok(Series { target: row.get(0)?, plan: row.get(1)? })
        })
    }

    fn all<T>(
        &self,
        select: &str,
        parameters: impl rusqlite::Params,
        one: impl FnMut(&Row) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let read =
            || self.db.prepare(select)?.query_map(parameters, one)?.collect::<Result<_, _>>();
        read().map_err(|source| self.failed("read", source))
    }
}

/// SQLite has no larger number.
fn whole(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
