//! The days of deleted results, in SQLite.

use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

use crate::days::{self, Counted, Of, summed_kinds};

/// What began before a time.
pub(super) const OLD: (&str, &str) =
    ("records AS listed INDEXED BY records_by_time", "listed.started < ?1");

/// The tests of watches with the numbers up to one.
pub(super) const OLD_WATCHED: (&str, &str) = (
    "watched CROSS JOIN records AS listed INDEXED BY records_listed ON listed.id = watched.record",
    "watched.record <= ?1",
);

/// The query for what is counted in a part.
pub(super) fn counts() -> String {
    days::counts("days", '?')
}

/// Adds to their days what will be deleted.
pub(super) fn sum_up((records, condition): (&str, &str)) -> String {
    let kinds = summed_kinds();
    format!(
        "WITH gone AS MATERIALIZED (
            SELECT substr(listed.started, 1, 10) AS day, listed.target AS target, listed.kind AS kind,
                coalesce(described.transport, '') AS transport, coalesce(described.direction, '') AS direction,
                coalesce(described.flows, 0) AS flows, listed.rule AS rule,
                listed.goodput_bits_per_s AS goodput_bits_per_s, round_trip_s, lost_share
            FROM {records}
                LEFT JOIN described ON described.record = listed.id
                LEFT JOIN figures ON figures.record = listed.id
            WHERE {condition} AND listed.kind IN {kinds} AND described.answer IS NULL
         ) {}",
        days::sum_up("days", |number| format!("printf('%.2e', {number})"))
    )
}

/// Adds counts of another history, all or none.
pub(super) fn add(db: &Connection, counted: &[Counted]) -> rusqlite::Result<()> {
    let step = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    let mut add = step.prepare(&days::add_count("days", '?'))?;
    for Counted { of, quantity, value, results } in counted {
        let Of { day, target, kind, transport, direction, flows } = of;
        let results = i64::try_from(*results).unwrap_or(i64::MAX);
        let key = params![target, day, kind, transport, direction, flows, quantity, value, results];
        add.execute(key)?;
    }
    drop(add);
    step.commit()
}

/// Deletes the days before this one. Returns their number.
pub(super) fn delete_before(db: &Connection, day: &str) -> rusqlite::Result<usize> {
    let number = |db: &Connection| -> rusqlite::Result<i64> {
        db.query_row(&days::number_before("days", '?'), [day], |row| row.get(0))
    };
    // Nearly always there is none, and others need not wait.
    if number(db)? == 0 {
        return Ok(0);
    }
    let step = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    let number = number(&step)?;
    step.execute(&days::delete_before("days", '?'), [day])?;
    step.commit()?;
    Ok(number.try_into().unwrap_or(0))
}

/// One count.
pub(super) fn counted(row: &Row) -> rusqlite::Result<Counted> {
    Ok(Counted {
        of: Of {
            day: row.get(0)?,
            target: row.get(1)?,
            kind: row.get(2)?,
            transport: row.get(3)?,
            direction: row.get(4)?,
            flows: row.get(5)?,
        },
        quantity: row.get(6)?,
        value: row.get(7)?,
        // A number that no goodput writes is none of results.
        results: row.get::<_, i64>(8)?.try_into().unwrap_or(0),
    })
}
