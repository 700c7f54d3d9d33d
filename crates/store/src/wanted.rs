//! What a search of the history looks for.

/// Most targets, and most limits, that a person is offered to choose from.
pub const MAX_NAMES: usize = 200;

/// What lists call the kind of a watch's test, whose record is one of a test.
pub const WATCH: &str = "watch";

/// A place in the list of the history: that of a record. It stays where it is, whatever is added or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// When the record began, as it has it.
    pub started: String,
    /// Its number.
    pub id: i64,
}

/// Which records of the history to find. Absent: all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Only records that began before this one, or at the same time with a smaller number.
    pub before: Option<Position>,
    /// Only of this kind of command, as in the record's JSON: `test`, `compare`.
    pub kind: Option<String>,
    /// Only tests of a watch.
    pub watched: bool,
    /// Only of exactly this target.
    pub target: Option<String>,
    /// Only of targets that contain this text, in capitals or not (ASCII).
    pub text: Option<String>,
    /// Only with this limiting rule.
    pub limited_by: Option<String>,
    /// Only those that this site of a fleet measured, or this host if no fleet did.
    pub measured_by: Option<String>,
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
        let [kind, target, text, limited_by, measured_by, from, until] = [const { None }; 7];
        let (before, watched, limit) = (None, false, u32::MAX);
        Self { before, kind, watched, target, text, limited_by, measured_by, from, until, limit }
    }
}

impl Wanted {
    /// The same, but only of the kind with this name in lists: that of a command, or [`WATCH`]. Tests of watches are tests,
    /// too.
    #[must_use]
    pub fn of_kind(self, name: Option<&str>) -> Self {
        let watched = name == Some(WATCH);
        let kind = name.filter(|_| !watched).map(str::to_owned);
        Self { kind, watched, ..self }
    }

    /// The same without what began at `now` (RFC 3339, UTC) or later, unless it says itself until when: results of a clock that
    /// was ahead would be the newest ones for as long as it was ahead, which may be years.
    #[must_use]
    pub fn by(self, now: &str) -> Self {
        match self.has_no_end(now) {
            true => Self { until: Some(now.into()), ..self },
            false => self,
        }
    }

    /// What [`Wanted::by`] leaves out; `None`: nothing.
    pub fn later(&self, now: &str) -> Option<Self> {
        self.has_no_end(now).then(|| Self { from: Some(now.into()), ..self.clone() })
    }

    /// Whether it asks for what is before `now`, and says no time at which that ends.
    fn has_no_end(&self, now: &str) -> bool {
        self.until.is_none() && self.from.as_deref().is_none_or(|from| from < now)
    }

    /// Whether a target has the text that is asked for, if one is.
    pub(crate) fn has_text(&self, target: &str) -> bool {
        let has = |text: &String| target.to_ascii_lowercase().contains(&text.to_ascii_lowercase());
        self.text.as_ref().is_none_or(has)
    }

    /// Whether it asks for what the days of deleted results don't know: the watch, the verdict and the host of each result,
    /// and its number.
    pub(crate) fn asks_for_single_results(&self) -> bool {
        let of_each = [&self.limited_by, &self.measured_by].into_iter().any(Option::is_some);
        self.watched || of_each || self.before.is_some()
    }

    /// Whether it asks for a time that ends before it begins, so that no record can fit.
    pub fn ends_before_it_begins(&self) -> bool {
        self.from.as_ref().zip(self.until.as_ref()).is_some_and(|(from, until)| from >= until)
    }
}

/// What a person may search for: at most [`MAX_NAMES`] of each, in alphabetical order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Targets.
    pub targets: Vec<String>,
    /// Ids of limiting rules, or `none`.
    pub limits: Vec<String>,
    /// Sites and hosts that measured.
    pub measured_by: Vec<String>,
}

/// The values of a column that has an index, in SQL. Each step leads to the next value, past all records that have the
/// same: `DISTINCT` would read all of them.
pub(crate) fn occurring(table: &str, column: &str) -> String {
    format!(
        "WITH RECURSIVE found(value) AS (
            SELECT min({column}) FROM {table}
            UNION ALL
            SELECT (SELECT min({column}) FROM {table} WHERE {column} > found.value) FROM found WHERE value IS NOT NULL
         )
         SELECT value FROM found WHERE value IS NOT NULL"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_names_its_end_is_left_as_it_is() {
        let now = "2026-01-31T12:00:00Z";
        let from = |from: &str| Wanted { from: Some(from.into()), ..Wanted::default() };
        let until = Wanted { until: Some("2027".into()), ..Wanted::default() };
        for wanted in [until, from("2026-02-01")] {
            assert_eq!((wanted.clone().by(now), wanted.later(now)), (wanted, None));
        }
        let wanted = from("2026-01-30");
        assert_eq!(wanted.later(now), Some(from(now)));
        assert_eq!(wanted.clone().by(now), Wanted { until: Some(now.into()), ..wanted });
    }
}
