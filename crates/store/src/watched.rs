//! The tests of `goodput watch`: series of tests with one plan, and what they cost.

use goodput_model::{BitRate, Record};
use rusqlite::{Row, params};

use crate::error::StoreError;
use crate::store::Store;

/// Reads the tests since a time alone, in their order. Without `INDEXED BY`, SQLite would read all tests of the target.
pub(crate) const SPENT: &str = "SELECT started, bytes FROM watched INDEXED BY watched_by_start
     WHERE started >= ?1 AND series IN (SELECT id FROM series WHERE target = ?2)
     ORDER BY started";

/// What a watch knows of a test, beside its record.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// What of the plan makes tests comparable, as JSON. Tests of a target with the same text can be compared.
    pub plan: String,
    /// Goodput, bits per second; none if the test is not whole.
    pub goodput: Option<BitRate>,
    /// Bytes that the test cost the line.
    pub bytes: u64,
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
        let id = self.add(record)?;
        let name = "INSERT INTO series (target, plan) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        step.execute(name, params![record.target, watched.plan]).map_err(failed)?;
        let insert = "INSERT INTO watched (record, series, started, goodput_bits_per_s, bytes)
                      SELECT ?1, id, ?2, ?3, ?4 FROM series WHERE target = ?5 AND plan = ?6";
        // SQLite has no larger number.
        let bytes = i64::try_from(watched.bytes).unwrap_or(i64::MAX);
        let goodput = watched.goodput.map(|goodput| goodput.0);
        let columns = params![id, record.started, goodput, bytes, record.target, watched.plan];
        step.execute(insert, columns).map_err(failed)?;
        step.commit().map_err(failed)?;
        Ok(id)
    }

    /// The whole tests of `target` with this plan, in the order in which they were stored.
    pub fn tests_of(&self, target: &str, plan: &str) -> Result<Vec<Tested>, StoreError> {
        let select = "SELECT record, started, goodput_bits_per_s FROM watched
                      WHERE series = (SELECT id FROM series WHERE target = ?1 AND plan = ?2)
                        AND goodput_bits_per_s IS NOT NULL
                      ORDER BY record";
        self.all(select, params![target, plan], |row| {
            Ok(Tested { record: row.get(0)?, started: row.get(1)?, goodput: BitRate(row.get(2)?) })
        })
    }

    /// When the tests of `target` that began at `from` or later began, and the bytes that each cost.
    pub fn spent(&self, target: &str, from: &str) -> Result<Vec<(String, u64)>, StoreError> {
        self.all(SPENT, params![from, target], |row| {
            Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default()))
        })
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
