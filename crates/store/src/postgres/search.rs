//! How a search of the history is asked of PostgreSQL.

use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::error::Failure;
use super::records::entry;
use super::values::indexed;
use crate::entry::Entry;
use crate::wanted::{MAX_NAMES, Names, Position, Wanted, occurring};

/// What is read of each record; the JSON is stored apart.
const COLUMNS: &str = "id, started, kind, target, goodput_bits_per_s, rule, format, transport, direction, flows, answer, \
     measured_by";

/// The table, as names are sought in it.
const RECORDS: &str = "goodput.records";

/// The condition for tests of a watch, which has no value.
const OF_A_WATCH: &str = "EXISTS (SELECT FROM goodput.watched WHERE watched.record = records.id)";

/// A value of a parameter.
type Value = Box<dyn ToSql + Sync + Send>;

/// A query with the values of its parameters. Conditions that are not asked for are not in it, so that PostgreSQL chooses
/// an index by those that are.
struct Query {
    sql: String,
    values: Vec<(Value, Type)>,
}

impl Query {
    /// From the newest record on. Each index has the records of a value in their order, so it ends when enough are found.
    fn of(wanted: &Wanted) -> Self {
        let (mut conditions, mut values) = conditions(wanted);
        if let Some(Position { started, id }) = &wanted.before {
            let at = values.len();
            conditions.push(format!("(started, id) < (${}, ${})", at + 1, at + 2));
            let started = Box::new(indexed(started));
            values.extend([(started as Value, Type::TEXT), (Box::new(*id), Type::INT8)]);
        }
        conditions.extend(wanted.watched.then(|| OF_A_WATCH.to_owned()));
        let conditions = match &conditions[..] {
            [] => String::new(),
            some => format!("WHERE {}", some.join(" AND ")),
        };
        let limit = values.len() + 1;
        let sql = format!(
            "SELECT {COLUMNS} FROM {RECORDS} {conditions} ORDER BY started DESC, id DESC LIMIT ${limit}"
        );
        values.push((Box::new(i64::from(wanted.limit)), Type::INT8));
        Self { sql, values }
    }

    fn parameters(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.values.iter().map(|(value, kind)| (&**value as _, kind.clone())).collect()
    }
}

/// The conditions of one value each that are asked for, and their values.
fn conditions(wanted: &Wanted) -> (Vec<String>, Vec<(Value, Type)>) {
    let text = wanted.text.as_ref().map(|text| text.to_ascii_lowercase());
    let texts = [
        ("kind = {}", &wanted.kind),
        ("target = {}", &wanted.target),
        ("strpos(lower(target), {}) > 0", &text),
        ("rule = {}", &wanted.limited_by),
        ("measured_by = {}", &wanted.measured_by),
        ("started >= {}", &wanted.from),
        ("started < {}", &wanted.until),
    ];
    let given =
        texts.into_iter().filter_map(|(condition, value)| Some((condition, value.as_ref()?)));
    let of_text = |(at, (condition, value)): (usize, (&str, &String))| {
        let value: Value = Box::new(indexed(value));
        (condition.replace("{}", &format!("${}", at + 1)), (value, Type::TEXT))
    };
    given.enumerate().map(of_text).unzip()
}

/// The wanted records, newest first.
pub(super) async fn search(client: &Client, wanted: &Wanted) -> Result<Vec<Entry>, Failure> {
    let query = Query::of(wanted);
    let rows = client.query_typed(&query.sql, &query.parameters()).await?;
    Ok(rows.iter().map(entry).collect::<Result<_, _>>()?)
}

/// Targets that contain a text, no more than `most`.
pub(super) async fn targets_with(
    client: &Client,
    text: &str,
    most: usize,
) -> Result<Vec<String>, Failure> {
    let text = indexed(&text.to_ascii_lowercase());
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let select =
        format!("{} AND strpos(lower(value), $1) > 0 LIMIT $2", occurring(RECORDS, "target"));
    let rows = client.query_typed(&select, &[(&text, Type::TEXT), (&most, Type::INT8)]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// The targets and limits that occur, and who measured.
pub(super) async fn names(client: &Client) -> Result<Names, Failure> {
    Ok(Names {
        targets: values(client, "target").await?,
        limits: values(client, "rule").await?,
        measured_by: values(client, "measured_by").await?,
    })
}

async fn values(client: &Client, column: &str) -> Result<Vec<String>, Failure> {
    let select = format!("{} LIMIT {MAX_NAMES}", occurring(RECORDS, column));
    let rows = client.query_typed(&select, &[]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use goodput_testing::servers::{Postgres, postgres};

    use super::*;
    use crate::{Place, Store};

    #[test]
    fn a_query_has_only_the_conditions_that_are_asked_for() {
        let all = Query::of(&Wanted::default());
        assert!(
            all.sql.ends_with("FROM goodput.records  ORDER BY started DESC, id DESC LIMIT $1"),
            "{}",
            all.sql
        );
        let wanted = Wanted {
            before: Some(Position { started: "2025".into(), id: 7 }),
            target: Some("nas".into()),
            until: Some("2026".into()),
            ..Wanted::default()
        };
        let some = Query::of(&wanted);
        let expected = "WHERE target = $1 AND started < $2 AND (started, id) < ($3, $4)
             ORDER BY started DESC, id DESC LIMIT $5";
        let one_line = |sql: &str| sql.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(one_line(&some.sql).ends_with(&one_line(expected)), "{}", some.sql);
        assert_eq!(some.parameters().len(), 5);
        let watched = Query::of(&Wanted { watched: true, ..wanted });
        assert!(watched.sql.contains("($3, $4) AND EXISTS (SELECT FROM goodput.watched"));
        assert_eq!(watched.parameters().len(), 5);
    }

    /// The steps in which PostgreSQL answers a search.
    fn steps(server: &Postgres, database: &str, wanted: &Wanted) -> String {
        let query = Query::of(wanted);
        let values = [&wanted.kind, &wanted.target, &wanted.limited_by, &wanted.measured_by];
        let values = values.into_iter().flatten();
        let before = wanted.before.iter();
        let before = before.flat_map(|at| [format!("'{}'", at.started), at.id.to_string()]);
        let values = values.map(|text| format!("'{text}'")).chain(before).chain(["51".into()]);
        let values = values.enumerate();
        let sql =
            values.fold(query.sql, |sql, (at, value)| sql.replace(&format!("${}", at + 1), &value));
        server.sql(database, &format!("EXPLAIN {sql}"))
    }

    /// To look at each record, or to sort them all, takes seconds in a long history. A few are sorted in no time.
    #[test]
    fn a_list_is_read_from_its_newest_record_on_by_an_index() {
        let Some(server) = postgres() else { return };
        let name = server.new_database();
        let place = Place::named(server.url(&name).as_ref()).unwrap();
        drop(Store::open(place).unwrap());
        server.sql(
            &name,
            "INSERT INTO goodput.records (started, kind, target, goodput_bits_per_s, rule, format, transport, direction,
                 flows, measured_by, json)
             SELECT '2026-' || 100000 - n, CASE n % 1000 WHEN 0 THEN 'tune' ELSE 'test' END, 'host-' || n % 500, n,
                 CASE n % 700 WHEN 0 THEN 'cpu' ELSE 'none' END, 1, 'tcp', 'send', 1, 'site-' || n % 500, '{}'
             FROM generate_series(1, 50000) AS n; ANALYZE goodput.records",
        );
        let of = |text: &str| Some(text.to_owned());
        let before = || Some(Position { started: "2026-70000".into(), id: 30000 });
        for (wanted, index) in [
            (Wanted::default(), "records_by_start"),
            (Wanted { before: before(), ..Wanted::default() }, "records_by_start"),
            (Wanted { target: of("host-7"), ..Wanted::default() }, "records_of_target"),
            (
                Wanted { target: of("host-7"), before: before(), ..Wanted::default() },
                "records_of_target",
            ),
            (Wanted { kind: of("tune"), ..Wanted::default() }, "records_of_kind"),
            (Wanted { limited_by: of("cpu"), ..Wanted::default() }, "records_of_rule"),
            (Wanted { measured_by: of("site-7"), ..Wanted::default() }, "records_of_whom"),
        ] {
            let steps = steps(&server, &name, &wanted);
            assert!(steps.contains(index), "{steps}");
            assert!(!steps.contains("Seq Scan"), "{steps}");
        }
    }
}
