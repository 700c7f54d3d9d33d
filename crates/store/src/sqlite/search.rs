//! How a search of the history is asked of SQLite.

use rusqlite::{Connection, ToSql};

use crate::wanted::{MAX_NAMES, Position, Wanted, occurring};

/// What is read of each record: all of it is in the indexes below, and in a small table beside the records.
const COLUMNS: &str =
    "listed.id, listed.started, listed.kind, listed.target, listed.goodput_bits_per_s, listed.rule,
     listed.format, described.transport, described.direction, described.flows, described.answer,
     measured.measured_by";

/// Which of them are tests of a watch. It has no value.
const OF_A_WATCH: &str = "EXISTS (SELECT 1 FROM watched WHERE watched.record = listed.id)";

/// Those that one site or host measured. As a condition on the joined table, SQLite would begin with it, and then sort.
const OF_ONE_WHO_MEASURED: &str = "EXISTS (SELECT 1 FROM measured AS whose WHERE whose.record = listed.id AND whose.measured_by = :measured_by)";

/// All records in the order of their times. Without `INDEXED BY`, SQLite would read the table, whose pages hold the JSON.
const OF_ALL: &str = "records_by_time";

/// The records of a target in the order of their times, to which its index leads past all others.
const OF_TARGET: &str = "records_of_target";

/// What an older goodput made of all records in the order of their numbers. A search that reads it sorts what it finds.
const OF_ALL_BY_NUMBER: &str = "records_listed";

/// The indexes that a search can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Indexes {
    /// All of them.
    ByTime,
    /// Those of a file that an older goodput made, and that can't be written.
    ByNumber,
}

/// Each target once. This index is smaller than that of the list, and equal targets stand together.
const TARGETS: &str = "SELECT DISTINCT target FROM records INDEXED BY records_by_target";

/// The parameters of a query, by their names.
pub(super) type Parameters<'a> = Vec<(&'static str, &'a dyn ToSql)>;

/// The query from the newest record on, and its parameters. It reads indexes alone, and ends when it has found enough.
/// Conditions that are not asked for are not in it, so that SQLite begins where the wanted times do.
pub(super) fn query(wanted: &Wanted, indexes: Indexes) -> (String, Parameters<'_>) {
    let index = match indexes {
        Indexes::ByNumber => OF_ALL_BY_NUMBER,
        Indexes::ByTime if wanted.target.is_some() => OF_TARGET,
        Indexes::ByTime => OF_ALL,
    };
    let (mut conditions, mut parameters) = conditions(wanted);
    conditions.extend(wanted.watched.then_some(OF_A_WATCH));
    let conditions = match &conditions[..] {
        [] => String::new(),
        some => format!("WHERE {}", some.join(" AND ")),
    };
    parameters.push((":limit", &wanted.limit));
    let sql = format!(
        "SELECT {COLUMNS} FROM records AS listed INDEXED BY {index}
         LEFT JOIN described ON described.record = listed.id
         LEFT JOIN measured ON measured.record = listed.id
         {conditions} ORDER BY listed.started DESC, listed.id DESC LIMIT :limit"
    );
    (sql, parameters)
}

/// The conditions that are asked for, and their values.
fn conditions(wanted: &Wanted) -> (Vec<&'static str>, Parameters<'_>) {
    let texts = [
        ("listed.target = :target", ":target", &wanted.target),
        ("listed.kind = :kind", ":kind", &wanted.kind),
        ("instr(lower(listed.target), lower(:text)) > 0", ":text", &wanted.text),
        ("listed.rule = :limited_by", ":limited_by", &wanted.limited_by),
        (OF_ONE_WHO_MEASURED, ":measured_by", &wanted.measured_by),
        ("listed.started >= :from", ":from", &wanted.from),
        ("listed.started < :until", ":until", &wanted.until),
    ];
    let given = texts.into_iter().filter_map(|(condition, name, value)| {
        Some((condition, (name, value.as_ref()? as &dyn ToSql)))
    });
    let (mut conditions, mut parameters): (Vec<_>, Parameters<'_>) = given.unzip();
    if let Some(Position { started, id }) = &wanted.before {
        conditions.push("(listed.started, listed.id) < (:started, :id)");
        parameters.extend([(":started", started as &dyn ToSql), (":id", id)]);
    }
    (conditions, parameters)
}

/// The query for the values of a column that a person may choose from.
pub(super) fn names(table: &str, column: &str) -> String {
    format!("{} LIMIT {MAX_NAMES}", occurring(table, column))
}

/// Targets that contain a text, no more than `most`.
pub(super) fn targets_with(
    db: &Connection,
    text: &str,
    most: usize,
) -> rusqlite::Result<Vec<String>> {
    // As SQLite's lower().
    let text = text.to_ascii_lowercase();
    let mut all = db.prepare(TARGETS)?;
    let targets = all.query_map([], |row| row.get::<_, String>(0))?;
    let has = |target: &String| target.to_ascii_lowercase().contains(&text);
    targets.filter(|target| target.as_ref().map_or(true, has)).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::sqlite::days::{OLD, OLD_WATCHED, counts, sum_up};
    use crate::sqlite::old::{
        BEGUN_AFTER, DELETE_ALL, DELETE_SPENT, DELETE_WATCHED, WATCHED_AFTER,
    };
    use crate::sqlite::watched::{CHANGES, SPENT};

    /// The steps in which SQLite answers a query.
    fn steps(query: &str, parameters: &[(&str, &dyn ToSql)]) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        drop(Store::open(&path).unwrap());
        let db = rusqlite::Connection::open(&path).unwrap();
        let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
        let steps = plan.query_map(parameters, |row| row.get(3)).unwrap();
        steps.map(Result::unwrap).collect()
    }

    /// The pages of the table hold the JSON: reading them takes a hundred times as long. A page far down begins at its first
    /// record.
    #[test]
    fn a_search_reads_indexes_in_their_order_and_no_record() {
        let before = || Some(Position { started: "2026".into(), id: 7 });
        let from_there = Wanted { before: before(), ..Wanted::default() };
        let of_days =
            Wanted { from: Some("2026".into()), until: Some("2027".into()), ..Wanted::default() };
        let of_target = Wanted { target: Some("nas".into()), ..Wanted::default() };
        let of_target_from_there = Wanted { before: before(), ..of_target.clone() };
        let of_watches = Wanted { watched: true, ..Wanted::default() };
        let by_time = "listed USING COVERING INDEX records_by_time";
        let by_target = "SEARCH listed USING COVERING INDEX records_of_target";
        for (wanted, first) in [
            (Wanted::default(), format!("SCAN {by_time}")),
            (from_there, format!("SEARCH {by_time} (started<?)")),
            (of_days, format!("SEARCH {by_time} (started>? AND started<?)")),
            (of_target, format!("{by_target} (target=?)")),
            (of_target_from_there, format!("{by_target} (target=? AND started<?)")),
            (of_watches, format!("SCAN {by_time}")),
        ] {
            let described = "SEARCH described USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN";
            let measured = "SEARCH measured USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN";
            let watched = "SEARCH watched EXISTS USING INTEGER PRIMARY KEY (rowid=?)";
            let mut expected = vec![first, described.into(), measured.into()];
            expected.extend(wanted.watched.then(|| watched.to_owned()));
            let (sql, parameters) = query(&wanted, Indexes::ByTime);
            assert_eq!(steps(&sql, &parameters), expected, "no sorting");
        }
    }

    /// A watch with `--keep` deletes after each test, and asks at its beginning what was spent.
    #[test]
    fn old_records_and_what_was_spent_are_found_by_indexes() {
        let sums = [OLD, OLD_WATCHED].map(sum_up);
        let queries = [
            DELETE_ALL,
            BEGUN_AFTER,
            DELETE_WATCHED,
            WATCHED_AFTER,
            SPENT,
            DELETE_SPENT,
            &sums[0],
            &sums[1],
        ];
        for query in queries {
            let parameters: &[(&str, &dyn ToSql)] = &[("?1", &"2026"), ("?2", &10)];
            let given = if query.contains("?2") { parameters } else { &parameters[..1] };
            let steps = steps(query, given);
            let by_index = |step: &String| {
                step.contains("COVERING INDEX") || step.contains("INTEGER PRIMARY KEY")
            };
            let tables = ["records", "watched", "spent", "listed", "described", "figures"];
            let reading =
                steps.iter().filter(|step| tables.iter().any(|table| step.contains(table)));
            assert!(reading.clone().count() > 0 && reading.clone().all(by_index), "{steps:?}");
            let sorts = steps.iter().any(|step| step.contains("TEMP B-TREE"));
            assert!(!sorts || sums.iter().any(|sum| sum == query), "it sorts: {steps:?}");
        }
    }

    /// A question after the changes of a path costs as much after years as after days: it reads what was said of them, and
    /// no test.
    #[test]
    fn changes_are_read_without_the_tests_among_which_they_were_found() {
        let steps = steps(CHANGES, &[("?1", &"nas"), ("?2", &10)]);
        assert_eq!(steps, ["SCAN changes"], "by its number, and without sorting");
    }

    /// A year of a target may have a hundred thousand counts, and a history has many targets.
    #[test]
    fn days_are_found_by_their_key_and_only_what_is_of_one_day_is_sorted() {
        let steps = steps(&counts(), &[("?1", &"nas"), ("?3", &""), ("?4", &"2027"), ("?5", &31)]);
        let reading: Vec<_> = steps.iter().filter(|step| step.contains(" days")).collect();
        let by_key = |step: &&String| {
            step.starts_with("SEARCH days USING PRIMARY KEY (target=? AND day>? AND day<?)")
        };
        assert!(reading.len() == 2 && reading.iter().all(by_key), "{steps:?}");
        let sorts_all = |step: &String| {
            step.ends_with("TEMP B-TREE FOR ORDER BY") || step.contains("FOR DISTINCT")
        };
        assert!(!steps.iter().any(sorts_all), "{steps:?}");
    }

    #[test]
    fn names_are_found_without_reading_what_is_between() {
        for (table, column, index) in [
            ("records", "target", "records_by_target"),
            ("records", "rule", "records_by_rule"),
            ("measured", "measured_by", "measured_by_whom"),
        ] {
            let steps = steps(&names(table, column), &[]);
            let reading = steps.iter().filter(|step| step.contains(index));
            let by_index = |step: &String| {
                step.starts_with(&format!("SEARCH {table}"))
                    && step.contains(&format!("COVERING INDEX {index}"))
            };
            assert!(reading.clone().count() == 2 && reading.clone().all(by_index), "{steps:?}");
        }
    }
}
