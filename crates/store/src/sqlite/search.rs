//! How a search of the history is asked of SQLite.

use rusqlite::{Connection, ToSql};

use crate::wanted::{MAX_NAMES, Wanted, occurring};

/// What is read of each record, and which records are wanted: all of it is in the index `records_listed`, and in a small
/// table beside the records.
const COLUMNS: &str =
    "listed.id, listed.started, listed.kind, listed.target, listed.goodput_bits_per_s, listed.rule,
     listed.format, described.transport, described.direction, described.flows, described.answer";

/// Follows where the records come from.
const DESCRIBED: &str = "LEFT JOIN described ON described.record = listed.id WHERE";

const CONDITIONS: &str = "(:before IS NULL OR listed.id < :before)
       AND (:kind IS NULL OR listed.kind = :kind)
       AND (:target IS NULL OR listed.target = :target)
       AND (:text IS NULL OR instr(lower(listed.target), lower(:text)) > 0)
       AND (:limited_by IS NULL OR listed.rule = :limited_by)
       AND (:from IS NULL OR listed.started >= :from)
       AND (:until IS NULL OR listed.started < :until)";

/// Follows the conditions.
const OF_A_WATCH: &str = "AND EXISTS (SELECT 1 FROM watched WHERE watched.record = listed.id)";

/// All records. Without `INDEXED BY`, SQLite would read the table, whose pages hold the JSON.
const OF_ALL: &str = "records AS listed INDEXED BY records_listed";

/// The records of a target, to which its index leads past all others.
const OF_TARGET: &str = "records AS found INDEXED BY records_by_target
     CROSS JOIN records AS listed INDEXED BY records_listed
        ON listed.id = found.id AND found.target = :target";

/// Each target once. This index is smaller than that of the list, and equal targets stand together.
const TARGETS: &str = "SELECT DISTINCT target FROM records INDEXED BY records_by_target";

/// Deletes what began before a time. Without the index, SQLite would look at each record.
pub(super) const DELETE_ALL: &str = "DELETE FROM records
     WHERE id IN (SELECT id FROM records INDEXED BY records_listed WHERE started < ?1)";

/// Deletes what was spent before a time, but not within the last day, for which a watch's budget is.
pub(super) const DELETE_SPENT: &str = "DELETE FROM spent WHERE id IN (
        SELECT id FROM spent INDEXED BY spent_by_start
        WHERE started < min(?1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-1 day'))
     )";

/// The query, from the newest record on. It reads indexes alone, and ends when it has found enough.
pub(super) fn query(wanted: &Wanted) -> String {
    let (records, newest) = match wanted.target {
        Some(_) => (OF_TARGET, "found.id"),
        None => (OF_ALL, "listed.id"),
    };
    let watched = if wanted.watched { OF_A_WATCH } else { "" };
    format!(
        "SELECT {COLUMNS} FROM {records} {DESCRIBED} {CONDITIONS} {watched} ORDER BY {newest} DESC LIMIT :limit"
    )
}

/// The values of the parameters of the query.
pub(super) fn parameters(wanted: &Wanted) -> [(&str, &dyn ToSql); 8] {
    [
        (":before", &wanted.before),
        (":kind", &wanted.kind),
        (":target", &wanted.target),
        (":text", &wanted.text),
        (":limited_by", &wanted.limited_by),
        (":from", &wanted.from),
        (":until", &wanted.until),
        (":limit", &wanted.limit),
    ]
}

/// The query for the values of a column that a person may choose from.
pub(super) fn names(column: &str) -> String {
    format!("{} LIMIT {MAX_NAMES}", occurring("records", column))
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
    use crate::sqlite::watched::{CHANGES, DELETE_WATCHED, SPENT};

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

    /// The pages of the table hold the JSON: reading them takes a hundred times as long.
    #[test]
    fn a_search_reads_indexes_in_their_order_and_no_record() {
        let of_target = Wanted { target: Some("nas".into()), ..Wanted::default() };
        let of_watches = Wanted { watched: true, ..Wanted::default() };
        let searches: [(_, &[&str]); 3] = [
            (
                Wanted::default(),
                &[
                    "SCAN listed USING COVERING INDEX records_listed",
                    "SEARCH described USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
                ],
            ),
            (
                of_target,
                &[
                    "SEARCH found USING COVERING INDEX records_by_target (target=?)",
                    "SEARCH listed USING COVERING INDEX records_listed (id=?)",
                    "SEARCH described USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
                ],
            ),
            (
                of_watches,
                &[
                    "SCAN listed USING COVERING INDEX records_listed",
                    "SEARCH described USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
                    "SEARCH watched EXISTS USING INTEGER PRIMARY KEY (rowid=?)",
                ],
            ),
        ];
        for (wanted, expected) in searches {
            assert_eq!(steps(&query(&wanted), &parameters(&wanted)), expected, "no sorting");
        }
        let expected = ["SCAN records USING COVERING INDEX records_by_target"];
        assert_eq!(steps(TARGETS, &[]), expected);
    }

    /// A watch with `--keep` deletes after each test, and asks at its beginning what was spent.
    #[test]
    fn old_records_and_what_was_spent_are_found_by_indexes() {
        let sums = [OLD, OLD_WATCHED].map(sum_up);
        let queries = [DELETE_ALL, DELETE_WATCHED, SPENT, DELETE_SPENT, &sums[0], &sums[1]];
        for query in queries {
            let parameters: &[(&str, &dyn ToSql)] = &[("?1", &"2026")];
            let steps = steps(query, parameters);
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
        for (column, index) in [("target", "records_by_target"), ("rule", "records_by_rule")] {
            let steps = steps(&names(column), &[]);
            let reading = steps.iter().filter(|step| step.contains("records"));
            let by_index = |step: &String| {
                step.starts_with("SEARCH records")
                    && step.contains(&format!("COVERING INDEX {index}"))
            };
            assert!(reading.clone().count() == 2 && reading.clone().all(by_index), "{steps:?}");
        }
    }
}
