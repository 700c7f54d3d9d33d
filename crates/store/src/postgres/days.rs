//! The days of deleted results, in PostgreSQL.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Transaction};

use super::error::Failure;
use super::values::{Values, indexed};
use crate::days::{self, Counted, Of, Part, summed_kinds};
use crate::wanted::occurring;

/// The table.
const DAYS: &str = "goodput.days";

/// Deletes records and adds them to their days, in one statement: another that deletes the same waits, and finds none of
/// them. Returns their number.
pub(super) async fn delete(
    step: &Transaction<'_>,
    condition: &str,
    values: &[(&(dyn ToSql + Sync), Type)],
) -> Result<u64, Failure> {
    let sum_up =
        days::sum_up(DAYS, |number| format!("ltrim(to_char({number}, '9.99EEEE')) COLLATE \"C\""));
    let kinds = summed_kinds();
    let delete = format!(
        "WITH deleted AS (
            DELETE FROM goodput.records WHERE {condition}
            RETURNING id, started, target, kind, transport, direction, flows, rule, goodput_bits_per_s, answer
         ), gone AS (
            SELECT substr(started, 1, 10) AS day, target, kind, transport, direction, flows, rule,
                goodput_bits_per_s, round_trip_s, lost_share
            FROM deleted LEFT JOIN goodput.figures ON figures.record = deleted.id
            WHERE kind IN {kinds} AND answer IS NULL
         ), summed AS ({sum_up})
         SELECT count(*) FROM deleted"
    );
    let deleted: i64 = step.query_typed_one(&delete, values).await?.try_get(0)?;
    Ok(deleted.try_into().unwrap_or(0))
}

/// What is counted of deleted records in a part.
pub(super) async fn counted(client: &Client, part: &Part<'_>) -> Result<Vec<Counted>, Failure> {
    let values: Values<5> = [
        (&indexed(part.target), Type::TEXT),
        (&part.kind.map(indexed), Type::TEXT),
        (&indexed(part.from), Type::TEXT),
        (&indexed(&part.until), Type::TEXT),
        (&i64::from(part.most), Type::INT8),
    ];
    let rows = client.query_typed(&days::counts(DAYS, '$'), &values).await?;
    Ok(rows.iter().map(one).collect::<Result<_, _>>()?)
}

/// Adds counts of another history, all or none. A text that is too long for an index is cut, as everywhere.
pub(super) async fn add(client: &mut Client, counted: &[Counted]) -> Result<(), Failure> {
    let step = client.transaction().await?;
    let add = days::add_count(DAYS, '$');
    for Counted { of, quantity, value, results } in counted {
        let texts = [&of.target, &of.day, &of.kind, &of.transport, &of.direction];
        let [target, day, kind, transport, direction] = texts.map(|text| indexed(text));
        let value = indexed(value);
        let results = i64::try_from(*results).unwrap_or(i64::MAX);
        let key: Values<9> = [
            (&target, Type::TEXT),
            (&day, Type::TEXT),
            (&kind, Type::TEXT),
            (&transport, Type::TEXT),
            (&direction, Type::TEXT),
            (&of.flows, Type::INT8),
            (quantity, Type::TEXT),
            (&value, Type::TEXT),
            (&results, Type::INT8),
        ];
        step.execute_typed(&add, &key).await?;
    }
    step.commit().await?;
    Ok(())
}

/// Deletes the days before this one. Returns their number.
pub(super) async fn delete_before(client: &mut Client, day: &str) -> Result<u64, Failure> {
    let step = client.transaction().await?;
    let before: Values<1> = [(&day, Type::TEXT)];
    let number = step.query_typed_one(&days::number_before(DAYS, '$'), &before).await?;
    let number: i64 = number.try_get(0)?;
    step.execute_typed(&days::delete_before(DAYS, '$'), &before).await?;
    step.commit().await?;
    Ok(number.try_into().unwrap_or(0))
}

/// Targets with days, at most so many, in alphabetical order.
pub(super) async fn targets(client: &Client, most: u32) -> Result<Vec<String>, Failure> {
    let select = format!("{} LIMIT {most}", occurring(DAYS, "target"));
    let rows = client.query_typed(&select, &[]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

fn one(row: &Row) -> Result<Counted, tokio_postgres::Error> {
    Ok(Counted {
        of: Of {
            day: row.try_get(0)?,
            target: row.try_get(1)?,
            kind: row.try_get(2)?,
            transport: row.try_get(3)?,
            direction: row.try_get(4)?,
            flows: row.try_get(5)?,
        },
        quantity: row.try_get(6)?,
        value: row.try_get(7)?,
        // A number that no goodput writes is none of results.
        results: row.try_get::<_, i64>(8)?.try_into().unwrap_or(0),
    })
}
