//! Records and what a list shows of them, in PostgreSQL.

use goodput_model::BitRate;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient, Row};

use super::error::{Failure, Why};
use super::values::{Values, indexed, plain};
use crate::entry::{Entry, Traffic};
use crate::kept::{Added, Kept};

/// Adds a record. Returns its number.
pub(super) async fn insert(step: &impl GenericClient, kept: &Kept<'_>) -> Result<i64, Failure> {
    let record = kept.record;
    // One statement: without a step of the caller, it is whole as well.
    let insert = "WITH added AS (
            INSERT INTO goodput.records (started, kind, target, goodput_bits_per_s, rule, format, transport,
                direction, flows, answer, json, measured_by)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id
        ), beside AS (
            INSERT INTO goodput.figures (record, round_trip_s, lost_share) SELECT id, $13, $14 FROM added
        ), short AS (
            INSERT INTO goodput.outlines (record, json) SELECT id, $15 FROM added WHERE $15 IS NOT NULL
        )
        SELECT id FROM added";
    let row = step
        .query_typed_one(
            insert,
            &[
                (&indexed(&record.started), Type::TEXT),
                (&indexed(&kept.kind), Type::TEXT),
                (&indexed(&record.target), Type::TEXT),
                (&kept.goodput.0, Type::FLOAT8),
                (&indexed(&record.verdict.limit), Type::TEXT),
                (&i64::from(record.format), Type::INT8),
                (&kept.transport, Type::TEXT),
                (&kept.direction, Type::TEXT),
                (&i64::from(record.plan.flows), Type::INT8),
                (&kept.answer.as_deref().map(plain), Type::TEXT),
                (&kept.json, Type::TEXT),
                (&kept.measured_by.map(indexed), Type::TEXT),
                (&kept.figures.round_trip_s, Type::FLOAT8),
                (&kept.figures.lost_share, Type::FLOAT8),
                (&kept.outline, Type::TEXT),
            ],
        )
        .await?;
    Ok(row.try_get(0)?)
}

/// Adds a record unless there is one with this key.
pub(super) async fn insert_once(
    client: &mut Client,
    kept: &Kept<'_>,
    key: &str,
) -> Result<Added, Failure> {
    if let Some(id) = with_key(client, key).await? {
        return Ok(Added { id, is_new: false });
    }
    let step = client.transaction().await?;
    let id = insert(&step, kept).await?;
    // It waits for others that add the same, and sees what became of it.
    let insert = "INSERT INTO goodput.keyed (key, record) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    match step.execute_typed(insert, &[(&indexed(key), Type::TEXT), (&id, Type::INT8)]).await? {
        0 => step.rollback().await?,
        _ => {
            step.commit().await?;
            return Ok(Added { id, is_new: true });
        }
    }
    let theirs = with_key(client, key).await?.map(|id| Added { id, is_new: false });
    theirs
        .ok_or_else(|| Why::Other("the same record was added and deleted meanwhile".into()).into())
}

/// The number of the record with this key.
pub(super) async fn with_key(client: &Client, key: &str) -> Result<Option<i64>, Failure> {
    let select = "SELECT record FROM goodput.keyed WHERE key = $1";
    let row = client.query_typed_opt(select, &[(&indexed(key), Type::TEXT)]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// The numbers of the records of a target that began at a time, newest first.
pub(super) async fn begun_at(
    client: &Client,
    started: &str,
    target: &str,
) -> Result<Vec<i64>, Failure> {
    let select =
        "SELECT id FROM goodput.records WHERE started = $1 AND target = $2 ORDER BY id DESC";
    let of: Values<2> = [(&indexed(started), Type::TEXT), (&indexed(target), Type::TEXT)];
    let rows = client.query_typed(select, &of).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// The JSON of a record.
pub(super) async fn json(client: &Client, id: i64) -> Result<Option<Vec<u8>>, Failure> {
    one_json(client, "SELECT json FROM goodput.records WHERE id = $1", id).await
}

/// The JSON of a record without its detail, if it is kept, otherwise the whole.
pub(super) async fn outline(client: &Client, id: i64) -> Result<Option<Vec<u8>>, Failure> {
    let select = "SELECT coalesce((SELECT json FROM goodput.outlines WHERE record = $1), json)
                  FROM goodput.records WHERE id = $1";
    one_json(client, select, id).await
}

async fn one_json(client: &Client, select: &str, id: i64) -> Result<Option<Vec<u8>>, Failure> {
    let row = client.query_typed_opt(select, &[(&id, Type::INT8)]).await?;
    let json: Option<String> = row.map(|row| row.try_get(0)).transpose()?;
    Ok(json.map(String::into_bytes))
}

/// One record of a search.
pub(super) fn entry(row: &Row) -> Result<Entry, tokio_postgres::Error> {
    // A number that no goodput writes is none that this one knows.
    let number = |at: usize| row.try_get::<_, i64>(at).map(u32::try_from);
    Ok(Entry {
        id: row.try_get(0)?,
        started: row.try_get(1)?,
        kind: row.try_get(2)?,
        target: row.try_get(3)?,
        goodput: BitRate(row.try_get(4)?),
        limit: row.try_get(5)?,
        format: number(6)?.unwrap_or(u32::MAX),
        traffic: Some(Traffic {
            transport: row.try_get(7)?,
            direction: row.try_get(8)?,
            flows: number(9)?.unwrap_or(0),
        }),
        answer: row.try_get(10)?,
        measured_by: row.try_get(11)?,
    })
}
