//! Lines over time as a table: a column for each, and a row for each of some moments.

use std::cmp::Ordering;

use crate::clip::Point;
use crate::figure::Table;
use crate::words;

/// Most moments that a table has. Its first rows say what is least and most of all that the picture shows.
const MAX_MOMENTS: usize = 60;

/// Moments closer to each other are one, seconds: some lines have whole milliseconds, others the same instants exactly.
const APART_S: f64 = 1e-3;

/// What the points of a line are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Each was read at its moment. Until the next one, it is the newest that is known.
    Readings,
    /// Each is the rate of the time before it, back to the point before.
    Rates,
}

/// A line with the heading of its column.
pub struct Column<'a> {
    /// The heading.
    pub name: String,
    /// The line.
    pub points: &'a [Point],
    /// What its points are.
    pub values: Values,
    /// What stands in the rows before the moments, beside the least and the most.
    pub first: Vec<String>,
}

impl<'a> Column<'a> {
    /// A line of readings without rows of its own before the least and the most.
    pub fn of(name: impl Into<String>, points: &'a [Point]) -> Self {
        Self { name: name.into(), points, values: Values::Readings, first: Vec::new() }
    }

    /// The value at a moment; `None` before the first reading, and after the end of the line.
    fn at(&self, at_s: f64) -> Option<f64> {
        let after = self.points.iter().filter(|(at, _)| *at >= at_s).min_by(by_time)?;
        let point = match self.values {
            Values::Readings => self.points.iter().filter(|(at, _)| *at <= at_s).max_by(by_time)?,
            Values::Rates => after,
        };
        Some(point.1)
    }
}

fn by_time(one: &&Point, other: &&Point) -> Ordering {
    one.0.total_cmp(&other.0)
}

/// The table: `first` names the first rows, then come the least and the most of each line, then moments.
pub fn table(first: &[&str], columns: &[Column<'_>], written: fn(f64) -> String) -> Table {
    let mut table = Table::new(["at"]);
    table.columns.extend(columns.iter().map(|column| column.name.clone()));
    for (number, name) in first.iter().enumerate() {
        let cells = columns.iter().map(|one| one.first.get(number).cloned().unwrap_or_default());
        table.rows.push(row(name, cells));
    }
    let extreme = |choose: fn(f64, f64) -> f64| {
        let of = move |column: &Column<'_>| {
            let values = column.points.iter().map(|(_, value)| *value);
            cell(values.reduce(choose), written)
        };
        columns.iter().map(of)
    };
    table.rows.push(row("least", extreme(f64::min)));
    table.rows.push(row("most", extreme(f64::max)));
    for at_s in moments(columns) {
        let cells = columns.iter().map(|column| cell(column.at(at_s), written));
        table.rows.push(row(&words::seconds(at_s), cells));
    }
    table
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

fn cell(value: Option<f64>, written: fn(f64) -> String) -> String {
    value.map_or("unknown".into(), written)
}

/// Moments at which a line has a point: all of them, or some with the same number between them, and the last one.
fn moments(columns: &[Column<'_>]) -> Vec<f64> {
    let mut all: Vec<f64> =
        columns.iter().flat_map(|column| column.points.iter().map(|(at_s, _)| *at_s)).collect();
    all.sort_by(f64::total_cmp);
    // The earlier one, at which no line has ended.
    all.dedup_by(|later, earlier| *later - *earlier < APART_S);
    let step = all.len().div_ceil(MAX_MOMENTS).max(1);
    all.reverse();
    let mut some: Vec<f64> = all.into_iter().step_by(step).collect();
    some.reverse();
    some
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_extremes_of_all_points_and_the_last_moment() {
        let long: Vec<Point> = (0..=1000_u32).map(|n| (f64::from(n), f64::from(n % 7))).collect();
        let late = [(500.0, 3.0)];
        let counted = Column { first: vec!["5".into()], ..Column::of("long", &long) };
        let table = table(&["mean"], &[counted, Column::of("late", &late)], words::percent);
        assert_eq!(table.columns, ["at", "long", "late"]);
        assert_eq!(table.rows[0], ["mean", "5", ""]);
        assert_eq!(table.rows[1], ["least", "0 %", "3 %"]);
        assert_eq!(table.rows[2], ["most", "6 %", "3 %"]);
        assert!((50..=MAX_MOMENTS + 3).contains(&table.rows.len()), "{}", table.rows.len());
        assert_eq!(table.rows[3][2], "unknown", "nothing was counted by then");
        assert_eq!(table.rows.last().unwrap(), &["1000 s", "6 %", "unknown"]);
    }

    #[test]
    fn lines_that_end_together_are_all_known_at_the_end() {
        let (rounded, exact) = ([(1.0, 1.0), (3.0, 2.0)], [(1.0004, 3.0), (2.9996, 4.0)]);
        let rates = |name, points| Column { values: Values::Rates, ..Column::of(name, points) };
        let columns = [rates("host", &rounded), rates("flows", &exact)];
        let rows = table(&[], &columns, words::percent).rows;
        let cells: Vec<_> = rows[2..].iter().map(|row| [&*row[1], &*row[2]]).collect();
        assert_eq!(cells, [["1 %", "3 %"], ["2 %", "4 %"]]);
    }

    #[test]
    fn a_rate_is_of_the_time_before_it_and_a_reading_holds_until_the_next_one() {
        let points = [(2.0, 10.0), (4.0, 20.0)];
        let clock = [(1.0, 0.0), (3.0, 0.0), (5.0, 0.0)];
        let rate = Column { values: Values::Rates, ..Column::of("rate", &points) };
        let columns = [rate, Column::of("reading", &points), Column::of("clock", &clock)];
        let rows = table(&[], &columns, words::percent).rows;
        let cells: Vec<_> = rows[2..].iter().map(|row| [&*row[0], &*row[1], &*row[2]]).collect();
        let expected = [
            ["1 s", "10 %", "unknown"],
            ["2 s", "10 %", "10 %"],
            ["3 s", "20 %", "10 %"],
            ["4 s", "20 %", "20 %"],
            ["5 s", "unknown", "unknown"],
        ];
        assert_eq!(cells, expected);
    }

    #[test]
    fn lines_without_points_have_no_moment() {
        let table = table(&[], &[Column::of("none", &[])], words::percent);
        assert_eq!(table.rows, [["least", "unknown"], ["most", "unknown"]]);
    }
}
