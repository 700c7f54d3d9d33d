//! The tables, and the migration of older files.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::StoreError;

/// Marks the file as goodput's (`PRAGMA application_id`): "gdpt".
const APPLICATION_ID: i64 = 0x6764_7074;

/// Entry n converts a file of schema n to schema n + 1. Entries are added, never changed: files of
/// each schema exist.
const MIGRATIONS: [&str; 5] = [
    // The JSON is the record; the other columns allow listing without reading it. Numbers are never
    // reused (AUTOINCREMENT): people keep them in notes.
    "CREATE TABLE records (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        started TEXT NOT NULL,
        kind TEXT NOT NULL,
        target TEXT NOT NULL,
        goodput_bits_per_s REAL NOT NULL,
        rule TEXT NOT NULL,
        json TEXT NOT NULL
    ) STRICT;",
    // Everything that a search looks at, newest last, without the JSON: a search reads this index alone. The others
    // lead from one target or rule to the next, past all records between.
    "CREATE INDEX records_listed ON records (id, started, kind, target, goodput_bits_per_s, rule);
     CREATE INDEX records_by_target ON records (target);
     CREATE INDEX records_by_rule ON records (rule);",
    // Tests of `goodput watch`: which of them can be compared, and what they cost the line. A series is read from its
    // index alone.
    "CREATE TABLE series (
        id INTEGER PRIMARY KEY,
        target TEXT NOT NULL,
        plan TEXT NOT NULL,
        UNIQUE (target, plan)
     ) STRICT;
     CREATE TABLE watched (
        record INTEGER PRIMARY KEY,
        series INTEGER NOT NULL,
        started TEXT NOT NULL,
        goodput_bits_per_s REAL,
        bytes INTEGER NOT NULL
     ) STRICT;
     CREATE INDEX watched_by_series ON watched (series, record, started, goodput_bits_per_s);
     CREATE INDEX watched_by_start ON watched (started, series, bytes);",
    // What the tests of `goodput watch` cost the line has a table of its own: a test without a result costs as well, and
    // has no record. The first test after a change of a path is marked, so that the change is not found again.
    "CREATE TABLE spent (
        id INTEGER PRIMARY KEY,
        target TEXT NOT NULL,
        started TEXT NOT NULL,
        bytes INTEGER NOT NULL
     ) STRICT;
     INSERT INTO spent (target, started, bytes)
        SELECT target, started, bytes FROM watched JOIN series ON series.id = watched.series;
     CREATE INDEX spent_by_start ON spent (started, target, bytes);
     DROP INDEX watched_by_start;
     ALTER TABLE watched DROP COLUMN bytes;
     CREATE INDEX watched_by_start ON watched (started);
     ALTER TABLE watched ADD COLUMN begins_change INTEGER NOT NULL DEFAULT 0;
     DROP INDEX watched_by_series;
     CREATE INDEX watched_by_series ON watched (series, record, started, goodput_bits_per_s, begins_change);",
    // A list says from its index alone which records a newer goodput wrote. All records so far have format 1. So have
    // those of a goodput that opened the file before this: it doesn't name the column.
    "ALTER TABLE records ADD COLUMN format INTEGER NOT NULL DEFAULT 1;
     DROP INDEX records_listed;
     CREATE INDEX records_listed ON records (id, started, kind, target, goodput_bits_per_s, rule, format);",
];

/// Makes the tables in a new file and migrates an old one. If several processes try at once, one
/// does it.
pub(crate) fn migrate(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::sqlite("open", path, source);
    if is_current(db, path)? {
        return Ok(());
    }
    let step = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let from = checked_version(&step, path)?;
    run(&step, from).map_err(failed)?;
    step.commit().map_err(failed)
}

fn is_current(db: &Connection, path: &Path) -> Result<bool, StoreError> {
    Ok(checked_version(db, path)? as usize == MIGRATIONS.len())
}

/// The schema of the file; 0 for an empty one.
fn checked_version(db: &Connection, path: &Path) -> Result<u32, StoreError> {
    let failed = |source| StoreError::sqlite("open", path, source);
    let (application, found, objects): (i64, u32, u32) = db
        .query_row(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
             FROM pragma_application_id, pragma_user_version",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .map_err(failed)?;
    let known = MIGRATIONS.len() as u32;
    match (application, found) {
        (APPLICATION_ID, _) if found > known => {
            Err(StoreError::NewerSchema { path: path.into(), found, known })
        }
        (APPLICATION_ID, _) => Ok(found),
        (0, 0) if objects == 0 => Ok(0),
        _ => Err(StoreError::Foreign { path: path.into() }),
    }
}

fn run(step: &Transaction, from: u32) -> rusqlite::Result<()> {
    for migration in MIGRATIONS.iter().skip(from as usize) {
        step.execute_batch(migration)?;
    }
    step.pragma_update(None, "application_id", APPLICATION_ID)?;
    step.pragma_update(None, "user_version", MIGRATIONS.len() as u32)
}
