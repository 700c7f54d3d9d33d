//! What a search of the history looks for, and how it is asked of SQLite.

use rusqlite::ToSql;

/// Reads the index alone, from the newest record on, until it has found enough. Without `INDEXED BY`, SQLite would read
/// the table, whose pages hold the JSON.
pub(crate) const SEARCH: &str = "SELECT id, started, kind, target, goodput_bits_per_s, rule
     FROM records INDEXED BY records_listed
     WHERE (:before IS NULL OR id < :before)
       AND (:target IS NULL OR target = :target)
       AND (:text IS NULL OR instr(lower(target), lower(:text)) > 0)
       AND (:limited_by IS NULL OR rule = :limited_by)
       AND (:from IS NULL OR started >= :from)
       AND (:until IS NULL OR started < :until)
     ORDER BY id DESC LIMIT :limit";

/// Most targets, and most limits, that a person is offered to choose from.
const MAX_NAMES: u32 = 200;

/// Which records of the history to find. Absent: all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Only records with a smaller number.
    pub before: Option<i64>,
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
        let [target, text, limited_by, from, until] = [const { None }; 5];
        Self { before: None, target, text, limited_by, from, until, limit: u32::MAX }
    }
}

impl Wanted {
    /// The values of the parameters of [`SEARCH`].
    pub(crate) fn parameters(&self) -> [(&str, &dyn ToSql); 7] {
        [
            (":before", &self.before),
            (":target", &self.target),
            (":text", &self.text),
            (":limited_by", &self.limited_by),
            (":from", &self.from),
            (":until", &self.until),
            (":limit", &self.limit),
        ]
    }
}

/// What a person may search for: at most 200 of each, in alphabetical order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Targets.
    pub targets: Vec<String>,
    /// Ids of limiting rules, or `none`.
    pub limits: Vec<String>,
}

/// The values of a column of the index.
pub(crate) fn occurring(column: &str) -> String {
    format!(
        "SELECT DISTINCT {column} FROM records INDEXED BY records_listed ORDER BY 1 LIMIT {MAX_NAMES}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    /// The pages of the table hold the JSON: reading them takes a hundred times as long.
    #[test]
    fn a_search_reads_the_index_and_no_record() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        drop(Store::open(&path).unwrap());
        let db = rusqlite::Connection::open(&path).unwrap();
        for query in [SEARCH, &occurring("rule"), &occurring("target")] {
            let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
            let parameters = Wanted::default();
            let parameters = parameters.parameters();
            let given = if query == SEARCH { &parameters[..] } else { &[] };
            let steps = plan.query_map(given, |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<_> = steps.map(Result::unwrap).collect();
            assert!(steps[0].contains("COVERING INDEX records_listed"), "{query}: {steps:?}");
            assert!(query != SEARCH || steps.len() == 1, "it sorts: {steps:?}");
        }
    }
}
