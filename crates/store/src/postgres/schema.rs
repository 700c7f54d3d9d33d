//! The tables in PostgreSQL, and the migration of older ones. They are in a schema of their own, `goodput`, so that they
//! can share a database with others.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::error::{Failure, Why};
use crate::migration::{Migration, needed};

/// The lock of whoever migrates (`pg_advisory_xact_lock`): "gdpt".
const LOCK: i64 = 0x6764_7074;

/// The encoding of a database that can hold every text.
const UTF8: &str = "UTF8";

/// Step n converts schema n to schema n + 1.
///
/// Order is that of bytes, as in SQLite (`COLLATE "C"`). Numbers are those of a sequence: two writers never get the same,
/// and none is given twice, though some may be left out.
const MIGRATIONS: [Migration; 8] = [
    // The JSON is the record, as text: `jsonb` refuses texts with a NUL, and numbers would be read otherwise. It is stored
    // apart from the columns, whatever its length (`toast_tuple_target`), so that a list reads little. `host` is whose
    // watch it is: a database may be shared by many.
    Migration::change(
        r#"CREATE TABLE goodput.schema (number integer NOT NULL, needed integer NOT NULL);
     CREATE TABLE goodput.records (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        started text COLLATE "C" NOT NULL,
        kind text COLLATE "C" NOT NULL,
        target text COLLATE "C" NOT NULL,
        goodput_bits_per_s double precision NOT NULL,
        rule text COLLATE "C" NOT NULL,
        format bigint NOT NULL,
        transport text COLLATE "C" NOT NULL,
        direction text COLLATE "C" NOT NULL,
        flows bigint NOT NULL,
        answer text COLLATE "C",
        json text COLLATE "C" NOT NULL
     ) WITH (toast_tuple_target = 128);
     CREATE INDEX records_by_start ON goodput.records (started, id);
     CREATE INDEX records_by_kind ON goodput.records (kind, id);
     CREATE INDEX records_by_target ON goodput.records (target, id);
     CREATE INDEX records_by_rule ON goodput.records (rule, id);
     CREATE TABLE goodput.series (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        host text COLLATE "C" NOT NULL,
        target text COLLATE "C" NOT NULL,
        plan text COLLATE "C" NOT NULL
     );
     CREATE INDEX series_by_host ON goodput.series (host, id);
     CREATE TABLE goodput.watched (
        record bigint PRIMARY KEY,
        series bigint NOT NULL,
        started text COLLATE "C" NOT NULL,
        goodput_bits_per_s double precision,
        begins_change boolean NOT NULL DEFAULT false
     );
     CREATE INDEX watched_by_series ON goodput.watched (series, record);
     CREATE INDEX watched_by_start ON goodput.watched (started);
     CREATE TABLE goodput.spent (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        host text COLLATE "C" NOT NULL,
        target text COLLATE "C" NOT NULL,
        started text COLLATE "C" NOT NULL,
        bytes bigint NOT NULL
     );
     CREATE INDEX spent_by_target ON goodput.spent (host, target, started);
     CREATE INDEX spent_by_start ON goodput.spent (started);"#,
    ),
    // What watches said of changes, by the first record after each: to find them again would take a fit of each series. And
    // since when a target has been gone: a watch of one test each (`--once`) says so once.
    Migration::addition(
        r#"CREATE TABLE IF NOT EXISTS goodput.changes (
        record bigint PRIMARY KEY REFERENCES goodput.records ON DELETE CASCADE,
        host text COLLATE "C" NOT NULL,
        target text COLLATE "C" NOT NULL,
        event text COLLATE "C" NOT NULL
     );
     CREATE INDEX IF NOT EXISTS changes_by_host ON goodput.changes (host, record);
     CREATE TABLE IF NOT EXISTS goodput.gone (
        host text COLLATE "C" NOT NULL,
        target text COLLATE "C" NOT NULL,
        plan text COLLATE "C" NOT NULL,
        since text COLLATE "C" NOT NULL
     );
     CREATE INDEX IF NOT EXISTS gone_by_target ON goodput.gone (host, target);"#,
    ),
    // What tells a record apart that several may add, at once or again: each is there once.
    Migration::addition(
        r#"CREATE TABLE IF NOT EXISTS goodput.keyed (
        key text COLLATE "C" PRIMARY KEY,
        record bigint NOT NULL REFERENCES goodput.records ON DELETE CASCADE
     );
     CREATE INDEX IF NOT EXISTS keyed_by_record ON goodput.keyed (record);"#,
    ),
    // What stays of deleted results: how many of a day had each value. Counts add up, whoever deletes, and however few at a
    // time. Round trip and loss are kept beside each record, so that to delete it reads no JSON.
    Migration::addition(
        r#"CREATE TABLE IF NOT EXISTS goodput.figures (
        record bigint PRIMARY KEY REFERENCES goodput.records ON DELETE CASCADE,
        round_trip_s double precision,
        lost_share double precision
     );
     CREATE TABLE IF NOT EXISTS goodput.days (
        target text COLLATE "C" NOT NULL,
        day text COLLATE "C" NOT NULL,
        kind text COLLATE "C" NOT NULL,
        transport text COLLATE "C" NOT NULL,
        direction text COLLATE "C" NOT NULL,
        flows bigint NOT NULL,
        quantity text COLLATE "C" NOT NULL,
        value text COLLATE "C" NOT NULL,
        results bigint NOT NULL,
        PRIMARY KEY (target, day, kind, transport, direction, flows, quantity, value)
     );"#,
    ),
    // What watches said of changes of other quantities than the goodput: several can begin with the same record.
    Migration::addition(
        r#"CREATE TABLE IF NOT EXISTS goodput.shifts (
        record bigint NOT NULL REFERENCES goodput.records ON DELETE CASCADE,
        quantity text COLLATE "C" NOT NULL,
        host text COLLATE "C" NOT NULL,
        target text COLLATE "C" NOT NULL,
        event text COLLATE "C" NOT NULL,
        PRIMARY KEY (record, quantity)
     );
     CREATE INDEX IF NOT EXISTS shifts_by_host ON goodput.shifts (host, record);"#,
    ),
    // Lists are in the order of the tests' times: an import of older results comes later. Older goodputs still list by
    // number, and then sort what they find. To drop an index takes a stronger lock than to make one: the lock that comes first
    // is the strongest, so that two never wait for each other in a circle.
    Migration::addition(
        r#"LOCK TABLE goodput.records IN ACCESS EXCLUSIVE MODE;
     CREATE INDEX IF NOT EXISTS records_of_kind ON goodput.records (kind, started, id);
     CREATE INDEX IF NOT EXISTS records_of_target ON goodput.records (target, started, id);
     CREATE INDEX IF NOT EXISTS records_of_rule ON goodput.records (rule, started, id);
     DROP INDEX IF EXISTS goodput.records_by_kind, goodput.records_by_target, goodput.records_by_rule;"#,
    ),
    // Who measured: a database may be shared by many. Of older results nobody knows without their JSON, so that the index
    // leaves them out and is made within seconds, however many there are.
    Migration::addition(
        r#"LOCK TABLE goodput.records IN ACCESS EXCLUSIVE MODE;
     ALTER TABLE goodput.records ADD COLUMN IF NOT EXISTS measured_by text COLLATE "C";
     CREATE INDEX IF NOT EXISTS records_of_whom ON goodput.records (measured_by, started, id)
        WHERE measured_by IS NOT NULL;"#,
    ),
    // Tests without their detail, which a matrix reads of each. Those of older results are read from their JSON.
    Migration::addition(
        "CREATE TABLE IF NOT EXISTS goodput.outlines (
        record bigint PRIMARY KEY REFERENCES goodput.records ON DELETE CASCADE,
        json text NOT NULL
     );",
    ),
];

/// What is seen of a database before its tables are used: also by those who may not use them.
const SEEN: &str = "SELECT current_setting('server_encoding'),
    EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'goodput'),
    EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'goodput'),
    EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'goodput' AND tablename = 'schema')";

/// What a database has of goodput's.
struct Found {
    /// A place for its tables, which an administrator may have made.
    has_place: bool,
    /// Number of its schema, which may be above the known one; 0 without tables.
    schema: usize,
}

/// Whether the tables are as this goodput needs them.
///
/// # Errors
/// As [`migrate`].
pub(super) async fn is_current(client: &Client) -> Result<bool, Failure> {
    Ok(found(client, MIGRATIONS.len()).await?.schema >= MIGRATIONS.len())
}

/// Makes the tables in a new database and migrates older ones. If several processes try at once, one does it.
pub(super) async fn migrate(client: &mut Client) -> Result<(), Failure> {
    migrate_by(&MIGRATIONS, client).await
}

async fn migrate_by(migrations: &[Migration], client: &mut Client) -> Result<(), Failure> {
    let known = migrations.len();
    let step = client.transaction().await?;
    step.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let Found { has_place, schema } = found(step.client(), known).await?;
    if !has_place {
        step.batch_execute("CREATE SCHEMA goodput").await?;
    }
    for migration in migrations.iter().skip(schema) {
        step.batch_execute(migration.sql).await?;
    }
    if schema < known {
        let needed = needed(migrations);
        step.batch_execute(&format!(
            "DELETE FROM goodput.schema; INSERT INTO goodput.schema VALUES ({known}, {needed})"
        ))
        .await?;
    }
    Ok(step.commit().await?)
}

/// # Errors
/// The database can't hold the history, has another program's tables, or a schema that needs a newer goodput than one that
/// knows the `known` schema.
async fn found(client: &Client, known: usize) -> Result<Found, Failure> {
    let seen = client.query_typed_one(SEEN, &[]).await?;
    let encoding: String = seen.try_get(0)?;
    if encoding != UTF8 {
        return Err(Why::Encoding(encoding).into());
    }
    let (has_place, has_tables, has_number) =
        (seen.try_get(1)?, seen.try_get(2)?, seen.try_get(3)?);
    let schema = match (has_tables, has_number) {
        (false, _) => 0,
        (true, false) => return Err(Why::Foreign.into()),
        (true, true) => schema(client, known).await?,
    };
    Ok(Found { has_place, schema })
}

/// The number in the table of the schema.
async fn schema(client: &Client, known: usize) -> Result<usize, Failure> {
    let numbers = "SELECT number, needed FROM goodput.schema";
    let numbers = client.query_typed_opt(numbers, &[]).await.map_err(foreign)?;
    let Some(numbers) = numbers else { return Err(Why::Foreign.into()) };
    let (number, needed): (i32, i32) = (numbers.try_get(0)?, numbers.try_get(1)?);
    match usize::try_from(needed) {
        Ok(needed) if needed <= known => Ok(usize::try_from(number).unwrap_or_default()),
        _ => Err(Why::Newer { found: needed, known }.into()),
    }
}

/// A table of that name with other columns is not goodput's.
fn foreign(why: tokio_postgres::Error) -> Failure {
    match why.code() {
        Some(code) if *code == SqlState::UNDEFINED_COLUMN => Why::Foreign.into(),
        _ => why.into(),
    }
}
