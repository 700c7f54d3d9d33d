//! The tests of `goodput watch`, in SQLite.

use goodput_model::BitRate;
use rusqlite::{Connection, Row, params};

use crate::kept::Kept;
use crate::watched::{Tested, ToldChange, Watched};

/// The newest whole tests of a series.
pub(super) const TESTS: &str =
    "SELECT watched.record, started, goodput_bits_per_s, begins_change, round_trip_s, lost_share
     FROM watched LEFT JOIN figures ON figures.record = watched.record
     WHERE series = (SELECT id FROM series WHERE target = ?1 AND plan = ?2)
       AND goodput_bits_per_s IS NOT NULL
     ORDER BY watched.record DESC LIMIT ?3";

/// The newest changes of targets with a text. There are few: one in years of an unchanged path.
pub(super) const CHANGES: &str = "SELECT target, event FROM changes
     WHERE instr(lower(target), lower(?1)) > 0
     ORDER BY record DESC LIMIT ?2";

/// The same of other quantities.
pub(super) const SHIFTS: &str = "SELECT target, event FROM shifts
     WHERE instr(lower(target), lower(?1)) > 0
     ORDER BY record DESC, quantity LIMIT ?2";

/// Reads the tests since a time alone.
pub(super) const SPENT: &str = "SELECT started, bytes FROM spent INDEXED BY spent_by_start
     WHERE started >= ?1 AND target = ?2";

/// Adds the record to its series, within a step of the caller.
pub(super) fn insert(
    step: &Connection,
    id: i64,
    kept: &Kept,
    watched: &Watched,
) -> rusqlite::Result<()> {
    let target = &kept.record.target;
    let name = "INSERT INTO series (target, plan) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    step.execute(name, params![target, watched.plan])?;
    let insert = "INSERT INTO watched (record, series, started, goodput_bits_per_s)
                  SELECT ?1, id, ?2, ?3 FROM series WHERE target = ?4 AND plan = ?5";
    let goodput = watched.goodput.map(|goodput| goodput.0);
    step.execute(insert, params![id, kept.record.started, goodput, target, watched.plan])?;
    Ok(())
}

/// One test of a series.
pub(super) fn tested(row: &Row) -> rusqlite::Result<Tested> {
    Ok(Tested {
        record: row.get(0)?,
        started: row.get(1)?,
        goodput: BitRate(row.get(2)?),
        begins_change: row.get(3)?,
        round_trip_s: row.get(4)?,
        lost_share: row.get(5)?,
    })
}

/// Marks a test as the first one after a change, and keeps what was said of it.
pub(super) fn mark_change(db: &Connection, record: i64, told: &ToldChange) -> rusqlite::Result<()> {
    let step = db.unchecked_transaction()?;
    step.execute("UPDATE watched SET begins_change = 1 WHERE record = ?1", [record])?;
    let insert = "INSERT OR REPLACE INTO changes (record, target, event) VALUES (?1, ?2, ?3)";
    step.execute(insert, params![record, told.target, told.event])?;
    step.commit()
}
