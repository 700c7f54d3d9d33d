//! The tests of `goodput watch`, in PostgreSQL. Series and what was spent are those of this host: others may watch the same
//! target on another path, and keep what they find in the same database.

use goodput_model::BitRate;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, Transaction};

use super::error::Failure;
use super::values::{Values, indexed, plain};
use crate::kept::Kept;
use crate::watched::{Series, Tested, ToldChange, Watched};

/// The number of a series.
const OF_SERIES: &str =
    "SELECT id FROM goodput.series WHERE host = $1 AND target = $2 AND plan = $3";

/// The newest whole tests of a series.
const TESTS: &str =
    "SELECT watched.record, started, goodput_bits_per_s, begins_change, round_trip_s, lost_share
     FROM goodput.watched LEFT JOIN goodput.figures ON figures.record = watched.record
     WHERE series = (SELECT id FROM goodput.series WHERE host = $1 AND target = $2 AND plan = $3)
       AND goodput_bits_per_s IS NOT NULL
     ORDER BY watched.record DESC LIMIT $4";

/// The tests of this host's watches.
pub(super) const OURS: &str = "series IN (SELECT id FROM goodput.series WHERE host = $1)";

/// Adds the record to its series.
pub(super) async fn insert(
    step: &Transaction<'_>,
    id: i64,
    kept: &Kept<'_>,
    watched: &Watched,
) -> Result<(), Failure> {
    let series = Series { target: kept.record.target.clone(), plan: watched.plan.clone() };
    let series = number_of(step, &series).await?;
    let insert = "INSERT INTO goodput.watched (record, series, started, goodput_bits_per_s)
        VALUES ($1, $2, $3, $4)";
    let goodput = watched.goodput.map(|goodput| goodput.0);
    let started = indexed(&kept.record.started);
    let columns: Values<4> = [
        (&id, Type::INT8),
        (&series, Type::INT8),
        (&started, Type::TEXT),
        (&goodput, Type::FLOAT8),
    ];
    step.execute_typed(insert, &columns).await?;
    Ok(())
}

/// The number of a series, which is made if there is none. No index keeps it from being made twice, as a plan may be
/// longer than an index takes: so one at a time makes one.
async fn number_of(step: &Transaction<'_>, series: &Series) -> Result<i64, Failure> {
    let (host, target, plan) = (host(), indexed(&series.target), plain(&series.plan));
    let name: Values<3> = [(&host, Type::TEXT), (&target, Type::TEXT), (&plan, Type::TEXT)];
    if let Some(row) = step.query_typed_opt(OF_SERIES, &name).await? {
        return Ok(row.try_get(0)?);
    }
    step.batch_execute("LOCK TABLE goodput.series IN SHARE ROW EXCLUSIVE MODE").await?;
    if let Some(row) = step.query_typed_opt(OF_SERIES, &name).await? {
        return Ok(row.try_get(0)?);
    }
    let insert = "INSERT INTO goodput.series (host, target, plan) VALUES ($1, $2, $3) RETURNING id";
    Ok(step.query_typed_one(insert, &name).await?.try_get(0)?)
}

/// The newest whole tests of a series, newest first.
pub(super) async fn tests_of(
    client: &Client,
    series: &Series,
    most: usize,
) -> Result<Vec<Tested>, Failure> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let values: Values<4> = [
        (&host(), Type::TEXT),
        (&indexed(&series.target), Type::TEXT),
        (&plain(&series.plan), Type::TEXT),
        (&most, Type::INT8),
    ];
    let rows = client.query_typed(TESTS, &values).await?;
    Ok(rows.iter().map(tested).collect::<Result<_, _>>()?)
}

fn tested(row: &Row) -> Result<Tested, tokio_postgres::Error> {
    Ok(Tested {
        record: row.try_get(0)?,
        started: row.try_get(1)?,
        goodput: BitRate(row.try_get(2)?),
        begins_change: row.try_get(3)?,
        round_trip_s: row.try_get(4)?,
        lost_share: row.try_get(5)?,
    })
}

/// Marks a test as the first one after a change, and keeps what was said of it.
pub(super) async fn mark_change(
    client: &mut Client,
    record: i64,
    told: &ToldChange,
) -> Result<(), Failure> {
    let step = client.transaction().await?;
    let update = "UPDATE goodput.watched SET begins_change = true WHERE record = $1";
    step.execute_typed(update, &[(&record, Type::INT8)]).await?;
    let insert = "INSERT INTO goodput.changes (record, host, target, event) VALUES ($1, $2, $3, $4)
        ON CONFLICT (record) DO UPDATE SET event = excluded.event";
    let columns: Values<4> = [
        (&record, Type::INT8),
        (&host(), Type::TEXT),
        (&indexed(&told.target), Type::TEXT),
        (&plain(&told.event), Type::TEXT),
    ];
    step.execute_typed(insert, &columns).await?;
    Ok(step.commit().await?)
}

/// Keeps what was said of a change of another quantity.
pub(super) async fn keep_shift(
    client: &mut Client,
    record: i64,
    quantity: &str,
    told: &ToldChange,
) -> Result<(), Failure> {
    let insert = "INSERT INTO goodput.shifts (record, quantity, host, target, event)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (record, quantity) DO UPDATE SET event = excluded.event";
    let columns: Values<5> = [
        (&record, Type::INT8),
        (&indexed(quantity), Type::TEXT),
        (&host(), Type::TEXT),
        (&indexed(&told.target), Type::TEXT),
        (&plain(&told.event), Type::TEXT),
    ];
    client.execute_typed(insert, &columns).await?;
    Ok(())
}

/// The newest changes of the goodput of targets with a text, those of this host before those of others, and newest first, with
/// the hosts that found them, unless it is this one.
pub(super) const CHANGES: &str = "SELECT target, event, NULLIF(host, $1) FROM goodput.changes
        WHERE strpos(lower(target), $2) > 0
        ORDER BY (host = $1) DESC, record DESC LIMIT $3";

/// The same of other quantities.
pub(super) const SHIFTS: &str = "SELECT target, event, NULLIF(host, $1) FROM goodput.shifts
        WHERE strpos(lower(target), $2) > 0
        ORDER BY (host = $1) DESC, record DESC, quantity LIMIT $3";

/// What was said of changes, by one of these queries.
pub(super) async fn told(
    client: &Client,
    select: &str,
    text: &str,
    most: usize,
) -> Result<Vec<ToldChange>, Failure> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let values: Values<3> = [
        (&host(), Type::TEXT),
        (&indexed(&text.to_ascii_lowercase()), Type::TEXT),
        (&most, Type::INT8),
    ];
    let rows = client.query_typed(select, &values).await?;
    let one = |row: &Row| {
        Ok::<_, tokio_postgres::Error>(ToldChange {
            target: row.try_get(0)?,
            event: row.try_get(1)?,
            of_host: row.try_get(2)?,
        })
    };
    Ok(rows.iter().map(one).collect::<Result<_, _>>()?)
}

/// Since when tests of a series have had no result.
pub(super) async fn gone_since(
    client: &Client,
    series: &Series,
) -> Result<Option<String>, Failure> {
    let select =
        "SELECT since FROM goodput.gone WHERE host = $1 AND target = $2 AND plan = $3 LIMIT 1";
    let (host, target, plan) = (host(), indexed(&series.target), plain(&series.plan));
    let name: Values<3> = [(&host, Type::TEXT), (&target, Type::TEXT), (&plan, Type::TEXT)];
    let row = client.query_typed_opt(select, &name).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Keeps since when tests of a series have had no result.
pub(super) async fn set_gone(
    client: &mut Client,
    series: &Series,
    since: Option<&str>,
) -> Result<(), Failure> {
    let step = client.transaction().await?;
    let (host, target, plan) = (host(), indexed(&series.target), plain(&series.plan));
    let delete = "DELETE FROM goodput.gone WHERE host = $1 AND target = $2 AND plan = $3";
    let name: Values<3> = [(&host, Type::TEXT), (&target, Type::TEXT), (&plan, Type::TEXT)];
    step.execute_typed(delete, &name).await?;
    if let Some(since) = since {
        let insert = "INSERT INTO goodput.gone (host, target, plan, since) VALUES ($1, $2, $3, $4)";
        let columns: Values<4> =
            [(&host, Type::TEXT), (&target, Type::TEXT), (&plan, Type::TEXT), (&since, Type::TEXT)];
        step.execute_typed(insert, &columns).await?;
    }
    Ok(step.commit().await?)
}

/// Notes what a test may cost.
pub(super) async fn spend(
    client: &Client,
    target: &str,
    started: &str,
    bytes: i64,
) -> Result<i64, Failure> {
    let insert = "INSERT INTO goodput.spent (host, target, started, bytes) VALUES ($1, $2, $3, $4) RETURNING id";
    let columns: Values<4> = [
        (&host(), Type::TEXT),
        (&indexed(target), Type::TEXT),
        (&indexed(started), Type::TEXT),
        (&bytes, Type::INT8),
    ];
    Ok(client.query_typed_one(insert, &columns).await?.try_get(0)?)
}

/// Corrects a note.
pub(super) async fn settle(client: &Client, note: i64, bytes: i64) -> Result<(), Failure> {
    let update = "UPDATE goodput.spent SET bytes = $1 WHERE id = $2";
    client.execute_typed(update, &[(&bytes, Type::INT8), (&note, Type::INT8)]).await?;
    Ok(())
}

/// What the tests of a target since a time cost.
pub(super) async fn spent(
    client: &Client,
    target: &str,
    from: &str,
) -> Result<Vec<(String, i64)>, Failure> {
    let select = "SELECT started, bytes FROM goodput.spent WHERE host = $1 AND target = $2 AND started >= $3";
    let values: Values<3> =
        [(&host(), Type::TEXT), (&indexed(target), Type::TEXT), (&indexed(from), Type::TEXT)];
    let rows = client.query_typed(select, &values).await?;
    let one = |row: &Row| Ok::<_, tokio_postgres::Error>((row.try_get(0)?, row.try_get(1)?));
    Ok(rows.iter().map(one).collect::<Result<_, _>>()?)
}

/// All tests of this host's watches.
pub(super) async fn times(client: &Client) -> Result<Vec<(i64, String)>, Failure> {
    let select =
        format!("SELECT record, started FROM goodput.watched WHERE {OURS} ORDER BY record");
    let rows = client.query_typed(&select, &[(&host(), Type::TEXT)]).await?;
    let one = |row: &Row| Ok::<_, tokio_postgres::Error>((row.try_get(0)?, row.try_get(1)?));
    Ok(rows.iter().map(one).collect::<Result<_, _>>()?)
}

/// Which of these records are tests of a watch, of any host.
pub(super) async fn among(client: &Client, ids: &[i64]) -> Result<Vec<i64>, Failure> {
    let select = "SELECT record FROM goodput.watched WHERE record = ANY($1)";
    let rows = client.query_typed(select, &[(&ids, Type::INT8_ARRAY)]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// All series of this host, the oldest first.
pub(super) async fn series(client: &Client) -> Result<Vec<Series>, Failure> {
    let select = "SELECT target, plan FROM goodput.series WHERE host = $1 ORDER BY id";
    let rows = client.query_typed(select, &[(&host(), Type::TEXT)]).await?;
    let one = |row: &Row| {
        Ok::<_, tokio_postgres::Error>(Series { target: row.try_get(0)?, plan: row.try_get(1)? })
    };
    Ok(rows.iter().map(one).collect::<Result<_, _>>()?)
}

/// The name of this host.
pub(super) fn host() -> String {
    indexed(&rustix::system::uname().nodename().to_string_lossy())
}
