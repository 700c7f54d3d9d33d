//! Records and what a list shows of them, in SQLite.

use goodput_model::BitRate;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::entry::{Entry, Traffic};
use crate::kept::{Added, Kept};

/// Adds a record, within a step of the caller. Returns its number.
pub(super) fn insert(step: &Connection, kept: &Kept) -> rusqlite::Result<i64> {
    let record = kept.record;
    let insert =
        "INSERT INTO records (started, kind, target, goodput_bits_per_s, rule, json, format)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let columns = params![
        record.started,
        kept.kind,
        record.target,
        kept.goodput.0,
        record.verdict.limit,
        kept.json,
        record.format
    ];
    step.execute(insert, columns)?;
    let id = step.last_insert_rowid();
    let insert = "INSERT INTO described (record, transport, direction, flows, answer)
                  VALUES (?1, ?2, ?3, ?4, ?5)";
    let columns = params![id, kept.transport, kept.direction, record.plan.flows, kept.answer];
    step.execute(insert, columns)?;
    let insert = "INSERT INTO figures (record, round_trip_s, lost_share) VALUES (?1, ?2, ?3)";
    step.execute(insert, params![id, kept.figures.round_trip_s, kept.figures.lost_share])?;
    if let Some(whom) = kept.measured_by {
        let insert = "INSERT INTO measured (record, measured_by) VALUES (?1, ?2)";
        step.execute(insert, params![id, whom])?;
    }
    if let Some(outline) = &kept.outline {
        step.execute("INSERT INTO outlines (record, json) VALUES (?1, ?2)", params![id, outline])?;
    }
    Ok(id)
}

/// Adds a record unless there is one with this key.
pub(super) fn insert_once(db: &Connection, kept: &Kept, key: &str) -> rusqlite::Result<Added> {
    // It reads first: another writer in between would be an error, not a wait.
    let step = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    if let Some(id) = with_key(&step, key)? {
        return Ok(Added { id, is_new: false });
    }
    let id = insert(&step, kept)?;
    step.execute("INSERT INTO keyed (key, record) VALUES (?1, ?2)", params![key, id])?;
    step.commit()?;
    Ok(Added { id, is_new: true })
}

/// The number of the record with this key.
pub(super) fn with_key(db: &Connection, key: &str) -> rusqlite::Result<Option<i64>> {
    let select = "SELECT record FROM keyed WHERE key = ?1";
    db.query_row(select, [key], |row| row.get(0)).optional()
}

/// The numbers of the records of a target that began at a time.
pub(super) const BEGUN_AT: &str =
    "SELECT id FROM records WHERE started = ?1 AND target = ?2 ORDER BY id DESC";

/// The JSON of a record. As bytes: the file may be damaged, and SQLite checks no text.
pub(super) fn json(db: &Connection, id: i64) -> rusqlite::Result<Option<Vec<u8>>> {
    // Prepared once: an export asks for each record.
    let mut select = db.prepare_cached("SELECT CAST(json AS BLOB) FROM records WHERE id = ?1")?;
    select.query_row([id], |row| row.get(0)).optional()
}

/// The JSON of a record without its detail, if it is kept, otherwise the whole.
pub(super) fn outline(db: &Connection, id: i64) -> rusqlite::Result<Option<Vec<u8>>> {
    let select =
        "SELECT CAST(coalesce((SELECT json FROM outlines WHERE record = ?1), json) AS BLOB)
                  FROM records WHERE id = ?1";
    let mut select = db.prepare_cached(select)?;
    select.query_row([id], |row| row.get(0)).optional()
}

/// One record of a search.
pub(super) fn entry(row: &Row) -> rusqlite::Result<Entry> {
    Ok(Entry {
        id: row.get(0)?,
        started: row.get(1)?,
        kind: row.get(2)?,
        target: row.get(3)?,
        goodput: BitRate(row.get(4)?),
        limit: row.get(5)?,
        // A number that no goodput writes is no format that this one knows.
        format: row.get::<_, i64>(6)?.try_into().unwrap_or(u32::MAX),
        traffic: traffic(row)?,
        answer: row.get(10)?,
        measured_by: row.get(11)?,
    })
}

fn traffic(row: &Row) -> rusqlite::Result<Option<Traffic>> {
    let Some(transport) = row.get(7)? else { return Ok(None) };
    // A number that no goodput writes is none that it measured with.
    let flows = row.get::<_, i64>(9)?.try_into().unwrap_or(0);
    Ok(Some(Traffic { transport, direction: row.get(8)?, flows }))
}
