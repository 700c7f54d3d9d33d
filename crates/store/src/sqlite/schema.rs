//! The tables, and the migration of older files.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::room::CAN_SHRINK;
use crate::error::StoreError;
use crate::migration::{Migration, needed};

/// Marks the file as goodput's (`PRAGMA application_id`): "gdpt".
const APPLICATION_ID: i64 = 0x6764_7074;

/// Entry n converts a file of schema n to schema n + 1. Entries are added, never changed: files of each schema exist.
///
/// The file has two numbers: its schema, in the table `schema`, and the schema that a goodput must know to use it
/// (`PRAGMA user_version`), which additions leave as it is. Before the table there was only the second one.
const MIGRATIONS: [Migration; 14] = [
    // The JSON is the record; the other columns allow listing without reading it. Numbers are never
    // reused (AUTOINCREMENT): people keep them in notes.
    Migration::change(
        "CREATE TABLE records (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        started TEXT NOT NULL,
        kind TEXT NOT NULL,
        target TEXT NOT NULL,
        goodput_bits_per_s REAL NOT NULL,
        rule TEXT NOT NULL,
        json TEXT NOT NULL
    ) STRICT;",
    ),
    // Everything that a search looks at, newest last, without the JSON: a search reads this index alone. The others
    // lead from one target or rule to the next, past all records between.
    Migration::change(
        "CREATE INDEX records_listed ON records (id, started, kind, target, goodput_bits_per_s, rule);
     CREATE INDEX records_by_target ON records (target);
     CREATE INDEX records_by_rule ON records (rule);",
    ),
    // Tests of `goodput watch`: which of them can be compared, and what they cost the line. A series is read from its
    // index alone.
    Migration::change(
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
    ),
    // What the tests of `goodput watch` cost the line has a table of its own: a test without a result costs as well, and
    // has no record. The first test after a change of a path is marked, so that the change is not found again.
    Migration::change(
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
    ),
    // A list says from its index alone which records a newer goodput wrote. All records so far have format 1. So have
    // those of a goodput that opened the file before this: it doesn't name the column.
    Migration::change(
        "ALTER TABLE records ADD COLUMN format INTEGER NOT NULL DEFAULT 1;
     DROP INDEX records_listed;
     CREATE INDEX records_listed ON records (id, started, kind, target, goodput_bits_per_s, rule, format);",
    ),
    Migration::addition("CREATE TABLE IF NOT EXISTS schema (number INTEGER NOT NULL) STRICT;"),
    // Which results can be compared, and what commands with several runs found: a list shows both. In a table of its own,
    // as to change a record would write its JSON again. A goodput that doesn't know it leaves its records out of it.
    Migration::addition(
        "CREATE TABLE IF NOT EXISTS described (
        record INTEGER PRIMARY KEY,
        transport TEXT NOT NULL,
        direction TEXT NOT NULL,
        flows INTEGER NOT NULL,
        answer TEXT
     ) STRICT;
     INSERT OR IGNORE INTO described (record, transport, direction, flows)
        SELECT id, json ->> '$.plan.transport', json ->> '$.plan.direction', json ->> '$.plan.flows'
        FROM records
        WHERE CASE WHEN json_valid(json) THEN json_type(json, '$.plan.transport') = 'text'
            AND json_type(json, '$.plan.direction') = 'text' AND json_type(json, '$.plan.flows') = 'integer' END;
     CREATE TRIGGER IF NOT EXISTS described_goes AFTER DELETE ON records
        BEGIN DELETE FROM described WHERE record = old.id; END;",
    ),
    // What watches said of changes, by the first record after each: to find them again would take a fit of each series. And
    // since when a target has been gone: a watch of one test each (`--once`) says so once.
    Migration::addition(
        "CREATE TABLE IF NOT EXISTS changes (
        record INTEGER PRIMARY KEY,
        target TEXT NOT NULL,
        event TEXT NOT NULL
     ) STRICT;
     CREATE TRIGGER IF NOT EXISTS changes_go AFTER DELETE ON records
        BEGIN DELETE FROM changes WHERE record = old.id; END;
     CREATE TABLE IF NOT EXISTS gone (
        target TEXT NOT NULL,
        plan TEXT NOT NULL,
        since TEXT NOT NULL,
        PRIMARY KEY (target, plan)
     ) STRICT;",
    ),
    // What tells a record apart that several may add, at once or again: each is there once.
    Migration::addition(
        "CREATE TABLE IF NOT EXISTS keyed (key TEXT PRIMARY KEY, record INTEGER NOT NULL) STRICT;
     CREATE INDEX IF NOT EXISTS keyed_by_record ON keyed (record);
     CREATE TRIGGER IF NOT EXISTS keyed_goes AFTER DELETE ON records
        BEGIN DELETE FROM keyed WHERE record = old.id; END;",
    ),
    // What stays of deleted results: how many of a day had each value. Counts add up, whoever deletes, and however few at a
    // time. Round trip and loss are kept beside each record, so that to delete it reads no JSON.
    Migration::addition(
        "CREATE TABLE IF NOT EXISTS figures (
        record INTEGER PRIMARY KEY,
        round_trip_s REAL,
        lost_share REAL
     ) STRICT;
     CREATE TRIGGER IF NOT EXISTS figures_go AFTER DELETE ON records
        BEGIN DELETE FROM figures WHERE record = old.id; END;
     CREATE TABLE IF NOT EXISTS days (
        target TEXT NOT NULL,
        day TEXT NOT NULL,
        kind TEXT NOT NULL,
        transport TEXT NOT NULL,
        direction TEXT NOT NULL,
        flows INTEGER NOT NULL,
        quantity TEXT NOT NULL,
        value TEXT NOT NULL,
        results INTEGER NOT NULL,
        PRIMARY KEY (target, day, kind, transport, direction, flows, quantity, value)
     ) STRICT, WITHOUT ROWID;",
    ),
    // What watches said of changes of other quantities than the goodput: several can begin with the same record.
    Migration::addition(
        "CREATE TABLE IF NOT EXISTS shifts (
        record INTEGER NOT NULL,
        quantity TEXT NOT NULL,
        target TEXT NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (record, quantity)
     ) STRICT, WITHOUT ROWID;
     CREATE TRIGGER IF NOT EXISTS shifts_go AFTER DELETE ON records
        BEGIN DELETE FROM shifts WHERE record = old.id; END;",
    ),
    // Lists are in the order of the tests' times: an import of older results comes later. These have all that a list shows,
    // like `records_listed`, which older goodputs need.
    Migration::addition(
        "CREATE INDEX IF NOT EXISTS records_by_time
        ON records (started, id, kind, target, goodput_bits_per_s, rule, format);
     CREATE INDEX IF NOT EXISTS records_of_target
        ON records (target, started, id, kind, goodput_bits_per_s, rule, format);",
    ),
    // Who measured: a history may have the results of many hosts. Of older results nobody knows without their JSON.
    Migration::addition(
        "CREATE TABLE IF NOT EXISTS measured (record INTEGER PRIMARY KEY, measured_by TEXT NOT NULL) STRICT;
     CREATE INDEX IF NOT EXISTS measured_by_whom ON measured (measured_by, record);
     CREATE TRIGGER IF NOT EXISTS measured_goes AFTER DELETE ON records
        BEGIN DELETE FROM measured WHERE record = old.id; END;",
    ),
    // Tests without their detail, which a matrix reads of each. Those of older results are read from their JSON.
    Migration::addition(
        "CREATE TABLE IF NOT EXISTS outlines (record INTEGER PRIMARY KEY, json TEXT NOT NULL) STRICT;
     CREATE TRIGGER IF NOT EXISTS outlines_go AFTER DELETE ON records
        BEGIN DELETE FROM outlines WHERE record = old.id; END;",
    ),
];

/// Makes the tables in a new file and migrates an old one. If several processes try at once, one
/// does it.
pub(super) fn migrate(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    migrate_by(&MIGRATIONS, db, path)
}

/// What a file is that is read as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It has all that this goodput knows.
    Current,
    /// It lacks what was added later, and nothing was changed since.
    LacksAdditions,
    /// Something was changed since.
    Old,
}

/// What this file is. Reading it shows also whether it can be read at all.
pub(super) fn state(db: &Connection) -> Result<State, StoreError> {
    let known = MIGRATIONS.len();
    Ok(match checked_schema(db, known, Path::new(""))? {
        schema if schema >= known => State::Current,
        schema if schema >= needed(&MIGRATIONS) => State::LacksAdditions,
        _ => State::Old,
    })
}

/// Makes the tables that the file lacks, in the memory of this connection alone. They are empty: what would fill them is in
/// the JSON, of which there may be gigabytes.
pub(super) fn add_in_memory(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("PRAGMA temp_store = MEMORY")?;
    let mut whole = Connection::open_in_memory()?;
    let step = whole.transaction()?;
    run(&MIGRATIONS, &step, 0)?;
    let made = "SELECT name, substr(sql, length('CREATE TABLE ') + 1) FROM sqlite_schema
                WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut made = step.prepare(made)?;
    let tables = made.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let tables = tables.collect::<rusqlite::Result<Vec<(String, String)>>>()?;
    for (name, shape) in tables {
        let is_there = "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = ?1)";
        if !db.query_row(is_there, [&name], |row| row.get::<_, bool>(0))? {
            db.execute_batch(&format!("CREATE TEMP TABLE {shape}"))?;
        }
    }
    Ok(())
}

fn migrate_by(
    migrations: &[Migration],
    db: &mut Connection,
    path: &Path,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::sqlite("open", path, source);
    let known = migrations.len();
    match checked_schema(db, known, path)? {
        schema if schema >= known => return Ok(()),
        0 => db.execute_batch(CAN_SHRINK).map_err(failed)?,
        _ => {}
    }
    let step = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let from = checked_schema(&step, known, path)?;
    if from < known {
        run(migrations, &step, from).map_err(failed)?;
    }
    step.commit().map_err(failed)
}

/// The schema of the file, which may be above the `known` one; 0 for an empty file.
///
/// Errors: the file is another program's, or a goodput that knows no more than the `known` schema must not use it.
fn checked_schema(db: &Connection, known: usize, path: &Path) -> Result<usize, StoreError> {
    let failed = |source| StoreError::sqlite("open", path, source);
    let (application, needed, objects, has_number): (i64, u32, u32, bool) = db
        .query_row(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema),
                 EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'schema')
             FROM pragma_application_id, pragma_user_version",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .map_err(failed)?;
    match (application, needed) {
        (APPLICATION_ID, _) if needed as usize > known => {
            let known = known as u32;
            Err(StoreError::NewerSchema { path: path.into(), found: needed, known })
        }
        (APPLICATION_ID, _) if has_number => {
            let number = "SELECT max(number) FROM schema";
            let number: Option<u32> = db.query_row(number, [], |row| row.get(0)).map_err(failed)?;
            Ok(number.unwrap_or_default().max(needed) as usize)
        }
        (APPLICATION_ID, _) => Ok(needed as usize),
        (0, 0) if objects == 0 => Ok(0),
        _ => Err(StoreError::Foreign { path: path.into() }),
    }
}

fn run(migrations: &[Migration], step: &Transaction, from: usize) -> rusqlite::Result<()> {
    for migration in migrations.iter().skip(from) {
        step.execute_batch(migration.sql)?;
    }
    let needed = needed(migrations);
    if needed < migrations.len() {
        // The first addition makes the table.
        step.execute("DELETE FROM schema", [])?;
        step.execute("INSERT INTO schema (number) VALUES (?1)", [migrations.len() as u32])?;
    }
    step.pragma_update(None, "application_id", APPLICATION_ID)?;
    step.pragma_update(None, "user_version", needed as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a later goodput knows: a new column with a default, and what it says of it.
    fn later(is_addition: bool) -> Vec<Migration> {
        let sql = "ALTER TABLE spent ADD COLUMN later INTEGER NOT NULL DEFAULT 7;";
        MIGRATIONS.into_iter().chain([Migration { sql, is_addition }]).collect()
    }

    fn spend(db: &Connection) {
        let spend = "INSERT INTO spent (target, started, bytes) VALUES ('nas', '2026', 1)";
        db.execute(spend, []).unwrap();
    }

    fn later_values(db: &Connection) -> Vec<i64> {
        let mut select = db.prepare("SELECT later FROM spent").unwrap();
        let values = select.query_map([], |row| row.get(0)).unwrap();
        values.map(Result::unwrap).collect()
    }

    #[test]
    fn an_older_goodput_goes_on_beside_what_a_newer_one_added() {
        let (mut db, path) = (Connection::open_in_memory().unwrap(), Path::new("history.db"));
        let newer = later(true);
        migrate_by(&MIGRATIONS, &mut db, path).unwrap();
        spend(&db);
        // Each opens the file again and again; what was added is added once.
        for _ in 0..2 {
            migrate_by(&newer, &mut db, path).unwrap();
            migrate_by(&MIGRATIONS, &mut db, path).unwrap();
            spend(&db);
        }
        assert_eq!(later_values(&db), [7, 7, 7]);
        assert_eq!(checked_schema(&db, MIGRATIONS.len(), path).unwrap(), newer.len());
    }

    #[test]
    fn an_older_goodput_leaves_alone_what_a_newer_one_changed() {
        let (mut db, path) = (Connection::open_in_memory().unwrap(), Path::new("history.db"));
        let newer = later(false);
        migrate_by(&newer, &mut db, path).unwrap();
        let error = migrate_by(&MIGRATIONS, &mut db, path).unwrap_err();
        let (found, known) = (newer.len() as u32, MIGRATIONS.len() as u32);
        assert!(
            matches!(error, StoreError::NewerSchema { found: f, known: k, .. } if (f, k) == (found, known)),
            "{error}"
        );
        migrate_by(&newer, &mut db, path).unwrap();
    }

    /// Schema 5 had no table with its number.
    #[test]
    fn a_goodput_from_before_the_table_of_the_schema_can_use_the_file() {
        let (mut db, path) = (Connection::open_in_memory().unwrap(), Path::new("history.db"));
        migrate_by(&MIGRATIONS[..5], &mut db, path).unwrap();
        migrate_by(&MIGRATIONS, &mut db, path).unwrap();
        let needed = || db.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0));
        assert_eq!(needed().unwrap(), 5);
        assert_eq!(checked_schema(&db, 5, path).unwrap(), MIGRATIONS.len());
    }

    /// Each schema since the last change can be read; `Store` reads a file of each in `tests/trouble.rs`.
    #[test]
    fn tables_that_a_file_lacks_are_made_in_memory_alone() {
        for schema in needed(&MIGRATIONS)..=MIGRATIONS.len() {
            let (mut db, path) = (Connection::open_in_memory().unwrap(), Path::new("history.db"));
            migrate_by(&MIGRATIONS[..schema], &mut db, path).unwrap();
            let has_all = schema == MIGRATIONS.len();
            let expected = if has_all { State::Current } else { State::LacksAdditions };
            assert_eq!(state(&db).unwrap(), expected, "{schema}");
            let number = "SELECT count(*) FROM sqlite_schema";
            let number = || db.query_row(number, [], |row| row.get::<_, i64>(0)).unwrap();
            let before = number();
            add_in_memory(&db).unwrap();
            assert_eq!(number(), before, "{schema}");
            let later = ["described", "changes", "gone", "keyed", "figures", "days", "shifts"];
            for table in later.into_iter().chain(["measured", "outlines"]) {
                db.query_row(&format!("SELECT count(*) FROM {table}"), [], |_| Ok(())).unwrap();
            }
        }
        let (mut db, path) = (Connection::open_in_memory().unwrap(), Path::new("history.db"));
        migrate_by(&MIGRATIONS[..needed(&MIGRATIONS) - 1], &mut db, path).unwrap();
        assert_eq!(state(&db).unwrap(), State::Old);
    }

    #[test]
    fn a_file_whose_number_was_lost_counts_as_what_it_needs() {
        let (mut db, path) = (Connection::open_in_memory().unwrap(), Path::new("history.db"));
        migrate_by(&MIGRATIONS, &mut db, path).unwrap();
        db.execute("DELETE FROM schema", []).unwrap();
        assert_eq!(checked_schema(&db, MIGRATIONS.len(), path).unwrap(), needed(&MIGRATIONS));
        migrate_by(&MIGRATIONS, &mut db, path).unwrap();
        assert_eq!(checked_schema(&db, MIGRATIONS.len(), path).unwrap(), MIGRATIONS.len());
    }
}
