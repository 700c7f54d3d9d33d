//! What a search of the history looks for, and how it is asked of SQLite.

use rusqlite::ToSql;

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

/// All records. Without `INDEXED BY`, SQLite would read the table, whose pages hold the JSON.
const OF_ALL: &str = "records AS listed INDEXED BY records_listed";

/// The records of a target, to which its index leads past all others.
const OF_TARGET: &str = "records AS found INDEXED BY records_by_target
     CROSS JOIN records AS listed INDEXED BY records_listed
        ON listed.id = found.id AND found.target = :target";

/// Each target once. This index is smaller than that of the list, and equal targets stand together.
pub(crate) const TARGETS: &str = "SELECT DISTINCT target FROM records INDEXED BY records_by_target";

/// Deletes what began before a time. Without the index, SQLite would look at each record.
pub(crate) const DELETE_ALL: &str = "DELETE FROM records
     WHERE id IN (SELECT id FROM records INDEXED BY records_listed WHERE started < ?1)";

/// Deletes what was spent before a time, but not within the last day, for which a watch's budget is.
pub(crate) const DELETE_SPENT: &str = "DELETE FROM spent WHERE id IN (
        SELECT id FROM spent INDEXED BY spent_by_start
        WHERE started < min(?1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-1 day'))
     )";

/// Most targets, and most limits, that a person is offered to choose from.
pub const MAX_NAMES: usize = 200;

/// Which records of the history to find. Absent: all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Only records with a smaller number.
    pub before: Option<i64>,
    /// Only of this kind of command, as in the record's JSON: `test`, `compare`.
    pub kind: Option<String>,
    /// Only of exactly this target.
    pub target: Option<String>,
    /// Only of targets that contain this text, in capitals or not (ASCII).
    pub text: Option<String>,
    /// Only with this limiting rule.
    pub limited_by: Option<String>,
    /// Only those that began at this time or later, RFC 3339, UTC, or the beginning of such a time.
    pub from: Option<String>,
    /// Only those that began before this time.
    pub until: Option<String>,
    /// At most this number of records.
    pub limit: u32,
}

impl Default for Wanted {
    /// Everything.
    fn default() -> Self {
        let [kind, target, text, limited_by, from, until] = [const { None }; 6];
        Self { before: None, kind, target, text, limited_by, from, until, limit: u32::MAX }
    }
}

impl Wanted {
    /// The query, from the newest record on. It reads indexes alone, and ends when it has found enough.
    pub(crate) fn query(&self) -> String {
        let (records, newest) = match self.target {
            Some(_) => (OF_TARGET, "found.id"),
            None => (OF_ALL, "listed.id"),
        };
        format!(
            "SELECT {COLUMNS} FROM {records} {DESCRIBED} {CONDITIONS} ORDER BY {newest} DESC LIMIT :limit"
        )
    }

    /// The values of the parameters of the query.
    pub(crate) fn parameters(&self) -> [(&str, &dyn ToSql); 8] {
        [
            (":before", &self.before),
            (":kind", &self.kind),
            (":target", &self.target),
            (":text", &self.text),
            (":limited_by", &self.limited_by),
            (":from", &self.from),
            (":until", &self.until),
            (":limit", &self.limit),
        ]
    }
}

/// What a person may search for: at most [`MAX_NAMES`] of each, in alphabetical order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Targets.
    pub targets: Vec<String>,
    /// Ids of limiting rules, or `none`.
    pub limits: Vec<String>,
}

/// The values of a column that has an index. Each step leads to the next value, past all records that have the same:
/// `DISTINCT` would read all of them.
pub(crate) fn occurring(column: &str) -> String {
    format!(
        "WITH RECURSIVE found(value) AS (
            SELECT min({column}) FROM records
            UNION ALL
            SELECT (SELECT min({column}) FROM records WHERE {column} > value) FROM found WHERE value IS NOT NULL
         )
         SELECT value FROM found WHERE value IS NOT NULL LIMIT {MAX_NAMES}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::watched::{DELETE_WATCHED, SPENT};

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
        let searches: [(_, &[&str]); 2] = [
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
        ];
        for (wanted, expected) in searches {
            assert_eq!(steps(&wanted.query(), &wanted.parameters()), expected, "no sorting");
        }
        let expected = ["SCAN records USING COVERING INDEX records_by_target"];
        assert_eq!(steps(TARGETS, &[]), expected);
    }

    /// A watch with `--keep` deletes after each test, and asks at its beginning what was spent.
    #[test]
    fn old_records_and_what_was_spent_are_found_by_indexes() {
        let queries = [DELETE_ALL, DELETE_WATCHED, SPENT, DELETE_SPENT];
        for query in queries {
            let parameters: &[(&str, &dyn ToSql)] = &[("?1", &"2026")];
            let steps = steps(query, parameters);
            let by_index = |step: &String| {
                step.contains("COVERING INDEX") || step.contains("INTEGER PRIMARY KEY")
            };
            let tables = ["records", "watched", "spent"];
            let reading =
                steps.iter().filter(|step| tables.iter().any(|table| step.contains(table)));
            assert!(reading.clone().count() > 0 && reading.clone().all(by_index), "{steps:?}");
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "it sorts: {steps:?}");
        }
    }

    #[test]
    fn names_are_found_without_reading_what_is_between() {
        for (column, index) in [("target", "records_by_target"), ("rule", "records_by_rule")] {
            let steps = steps(&occurring(column), &[]);
            let reading = steps.iter().filter(|step| step.contains("records"));
            let by_index = |step: &String| {
                step.starts_with("SEARCH records")
                    && step.contains(&format!("COVERING INDEX {index}"))
            };
            assert!(reading.clone().count() == 2 && reading.clone().all(by_index), "{steps:?}");
        }
    }
}
