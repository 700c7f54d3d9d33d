//! Deleting what is old, in PostgreSQL: one step, whatever says what is old. Its tables are always in the same order, so that
//! two that delete never wait for each other in a circle.

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::days;
use super::error::Failure;
use super::values::Values;
use super::watched::{OURS, host};
use crate::old::Old;

/// Deletes what was spent before a time and a day ago.
const DELETE_SPENT: &str = r#"DELETE FROM goodput.spent WHERE started < $1
    AND started < to_char(now() AT TIME ZONE 'UTC' - interval '1 day', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"#;

/// A part of what is old: its `most` oldest, the one behind them, and all that began with that. `None` if there are no more
/// than `most`.
pub(super) async fn first_part(
    client: &Client,
    old: &Old,
    most: u32,
) -> Result<Option<Old>, Failure> {
    let most = i64::from(most);
    match old {
        Old::Before(started) => {
            let select = "SELECT started FROM goodput.records WHERE started < $1 ORDER BY started LIMIT 1 OFFSET $2";
            let of: Values<2> = [(started, Type::TEXT), (&most, Type::INT8)];
            let row = client.query_typed_opt(select, &of).await?;
            let next: Option<String> = row.map(|row| row.try_get(0)).transpose()?;
            Ok(next.map(|next| Old::up_to(next, started)))
        }
        Old::Watched(last) => {
            let select = format!(
                "SELECT record FROM goodput.watched WHERE {OURS} AND record <= $2 ORDER BY record LIMIT 1 OFFSET $3"
            );
            let of: Values<3> = [(&host(), Type::TEXT), (last, Type::INT8), (&most, Type::INT8)];
            let row = client.query_typed_opt(&select, &of).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?.map(Old::Watched))
        }
    }
}

/// Deletes all of it; of tests of watches, those of this host. What was spent within the last day stays, because a watch's
/// budget is for a day. Returns the number of records.
pub(super) async fn delete(client: &mut Client, old: &Old) -> Result<u64, Failure> {
    let step = client.transaction().await?;
    let (deleted, spent_before) = match old {
        Old::Before(started) => {
            let before: Values<1> = [(started, Type::TEXT)];
            let deleted = days::delete(&step, "started < $1", &before).await?;
            step.execute_typed("DELETE FROM goodput.watched WHERE started < $1", &before).await?;
            (deleted, Some(started.clone()))
        }
        Old::Watched(last) => {
            let until: Values<2> = [(&host(), Type::TEXT), (last, Type::INT8)];
            let tests = format!("FROM goodput.watched WHERE {OURS} AND record <= $2");
            let newest = format!("SELECT max(started) {tests}");
            let newest: Option<String> = step.query_typed_one(&newest, &until).await?.try_get(0)?;
            let deleted =
                days::delete(&step, &format!("id IN (SELECT record {tests})"), &until).await?;
            step.execute_typed(&format!("DELETE {tests}"), &until).await?;
            (deleted, newest)
        }
    };
    step.execute_typed(DELETE_SPENT, &[(&spent_before, Type::TEXT)]).await?;
    step.commit().await?;
    Ok(deleted)
}
