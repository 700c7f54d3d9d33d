//! The report of `goodput fleet matrix`: the goodput of each pair, and what explains the slow ones.

use std::collections::BTreeMap;
use std::iter;

use goodput_fleet::{CELL_VALUES, Cell, Explanation, Matrix, Unusable, left_out_in_words};
use goodput_model::{BitRate, Known};

use super::plan::named;
use crate::fit::width;
use crate::report::labelled::{line, lines};
use crate::report::style;
use crate::report::table::Table;

/// Columns between two columns of a table, and those of a number.
const GAP_COLUMNS: usize = 2;
const NUMBER_COLUMNS: usize = 4;
/// A pair without a test.
const NO_TEST: &str = "·";
/// A site with itself, and what the mesh does not have.
const NO_PAIR: &str = "–";
/// Before what the limit of an agent capped.
const AT_LEAST: &str = "≥";
/// Before what tests gave that ended early.
const IN_PART: &str = "~";
/// Before what is more than the mesh file expects.
const ABOVE: &str = "↑";

/// The most rows of a table: its columns are as wide as its widest row, so all of them are in memory.
const MOST_ROWS: usize = 1000;

/// The whole report, part by part: all of it would be large for a thousand sites. `every_cell`: describe each pair, not
/// only the slow ones. `columns`: those of the screen.
pub fn parts(matrix: &Matrix, every_cell: bool, columns: u16) -> impl Iterator<Item = String> {
    let described: Box<dyn Iterator<Item = Cell<'_>>> = match every_cell {
        true => Box::new(matrix.cells()),
        false => Box::new(matrix.slow_cells()),
    };
    let tables = grid(matrix, columns.into()).chain(cells(described));
    iter::once(head(matrix)).chain(tables.map(|table| format!("\n{table}")))
}

fn head(matrix: &Matrix) -> String {
    let mut out = String::new();
    line(&mut out, "mesh", &style::strong(matrix.in_words()));
    if matrix.capped > 0 {
        let meaning = "an agent's --max-rate capped the tests of this pair; its path may be faster";
        line(&mut out, "capped", &format!("{AT_LEAST}: {meaning}"));
    }
    if matrix.partial > 0 {
        let meaning = "each test of this pair ended early, so the pair does not count as tested";
        line(&mut out, "in part", &format!("{IN_PART}: {meaning}"));
    }
    if matrix.has_above_expected() {
        let meaning = "faster than the rate of the mesh file, so tests of this pair cost more than the plan counts";
        line(&mut out, "above", &format!("{ABOVE}: {meaning}"));
    }
    match &matrix.explanation {
        Known::Missing(why) => line(&mut out, "because", &format!("unknown: {why}")),
        Known::Value(explanation) => explained(&mut out, matrix, explanation),
    }
    out
}

/// `left out    3 tests: 2 held to a rate, 1 not a single test`
pub fn left_out(tests: &BTreeMap<Unusable, usize>) -> String {
    let mut out = String::new();
    if !tests.is_empty() {
        out.push('\n');
        line(&mut out, "left out", &left_out_in_words(tests));
    }
    out
}

fn explained(out: &mut String, matrix: &Matrix, explanation: &Explanation) {
    let slow = explanation.slow.len();
    lines(out, "slow", matrix.slow_in_words());
    let reasons = explanation.causes.iter().map(|cause| {
        format!("{}: {}", style::bad(cause.claim(slow)), cause.evidence(&str::to_owned))
    });
    lines(out, "because", reasons);
    if !explanation.unexplained.is_empty() {
        let names = named(explanation.unexplained.iter().map(arrow));
        line(out, "no cause", &format!("{names}: {}", explanation.spread_in_words()));
    }
    if !explanation.undecided.is_empty() {
        let (sides, why) = explanation.undecided_in_words();
        line(out, "undecided", &format!("{}: {why}", named(sides.into_iter())));
    }
}

fn arrow([sender, receiver]: [&str; 2]) -> String {
    format!("{sender} → {receiver}")
}

/// Goodput of all pairs in one unit, in several tables if the screen is too narrow for one.
fn grid(matrix: &Matrix, columns: usize) -> impl Iterator<Item = String> {
    let rates = matrix.cells().filter_map(|cell| cell.goodput_bits_per_s.value().copied());
    let largest = rates.fold(BitRate(0.0), |most, rate| if rate > most { rate } else { most });
    let (scale, unit) = largest.unit();
    let names = matrix.sites.iter().map(|name| width(name)).max().unwrap_or(0);
    let has_marks = matrix.capped + matrix.partial > 0 || matrix.has_above_expected();
    let mark = if has_marks { width(AT_LEAST) } else { 0 };
    let cell_columns = names.max(NUMBER_COLUMNS + mark) + GAP_COLUMNS;
    let room = columns.saturating_sub(names.max(width(unit))) / cell_columns;
    let (sites, room) = (matrix.sites.len(), room.max(1));
    (0..sites).step_by(room).map(move |from| {
        let receivers = from..sites.min(from + room);
        let to = matrix.sites[receivers.clone()].iter().map(|name| (String::new(), name.clone()));
        let corner = (unit.to_string(), "from".to_string());
        let mut table = Table::of_numbers(&iter::once(corner).chain(to).collect::<Vec<_>>(), 1);
        for (number, sender) in matrix.sites.iter().enumerate() {
            let row = matrix.row(number, receivers.clone());
            let row = row.map(|cell| goodput(matrix, cell, scale));
            let row: Vec<_> = iter::once(sender.clone()).chain(row).collect();
            table.row(&row.iter().map(String::as_str).collect::<Vec<_>>());
        }
        table.within(Some(columns))
    })
}

fn goodput(matrix: &Matrix, cell: Option<Cell<'_>>, scale: f64) -> String {
    let Some(cell) = cell else { return NO_PAIR.into() };
    let rate = cell.goodput_bits_per_s.value();
    let mark = match (cell.is_partial, cell.is_capped, cell.is_above_expected) {
        (true, _, _) => IN_PART,
        (false, true, _) => AT_LEAST,
        (false, false, true) => ABOVE,
        (false, false, false) => "",
    };
    let text = rate.map_or(NO_TEST.into(), |rate| format!("{mark}{}", digits(rate.0 / scale)));
    if matrix.is_slow(&cell) { style::bad(text) } else { text }
}

/// Three digits: 941, 94.1, 9.41.
fn digits(value: f64) -> String {
    let places = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.places$}")
}

/// What is known of these pairs, in several tables if they are many.
fn cells<'a>(all: impl Iterator<Item = Cell<'a>>) -> impl Iterator<Item = String> {
    let mut all = all.peekable();
    iter::from_fn(move || {
        all.peek()?;
        let columns = ["from", "to"].into_iter().chain(CELL_VALUES.map(|one| one.id));
        let mut table = Table::new(&columns.collect::<Vec<_>>());
        for cell in all.by_ref().take(MOST_ROWS) {
            let known = CELL_VALUES.map(|one| (one.shown)(&cell, &str::to_owned));
            let known = known.iter().map(|value| value.as_deref().unwrap_or(NO_TEST));
            let sites = [cell.sender, cell.receiver];
            table.row(&sites.into_iter().chain(known).collect::<Vec<_>>());
        }
        Some(table.text())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_fleet::{Observation, Part, Question};

    /// Six sites, of which c sends slowly, and a – f is slow alone.
    fn matrix() -> Matrix {
        let names = ["a", "b", "c", "d", "e", "f"];
        let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (*from, *to)));
        let rate = |from: &str, to: &str, noise: f64| match (from, to) {
            ("c", _) => 4e8 * noise,
            ("a", "f") => 2e8 * noise,
            _ => 9e8 * noise,
        };
        let seen = pairs.filter(|(from, to)| from != to && (*from, *to) != ("b", "e")).enumerate();
        // Three tests of each.
        let seen: Vec<_> = seen
            .flat_map(|(number, pair)| (0..3).map(move |n| (3 * number + n, pair)))
            .map(|(number, (from, to))| Observation {
                record: number as i64,
                sender: from.into(),
                receiver: to.into(),
                at_s: 0.0,
                goodput: BitRate(rate(from, to, 1.0 + (number * 7 % 11) as f64 / 1000.0)),
                rtt_us: Known::Value(2000.0),
                limit: if from == "c" { "sender-cpu".into() } else { "none".into() },
                limit_at: if from == "c" { Part::Sender } else { Part::Path },
                share_of_limit: ((from, to) == ("d", "e")).then_some(0.97),
                is_partial: (from, to) == ("f", "a"),
            })
            .collect();
        let question = Question { now_s: 7200.0, slow_percent: 10.0 };
        goodput_fleet::matrix(names.map(String::from).to_vec(), &seen, question)
    }

    fn plain(parts: impl IntoIterator<Item = String>) -> String {
        let whole: String = parts.into_iter().collect();
        anstream::adapter::strip_str(&whole).to_string()
    }

    #[test]
    fn the_slow_sender_and_the_slow_path_are_named_with_their_evidence() {
        let text = plain(parts(&matrix(), false, 80));
        for words in [
            "6 sites, 28 of 30 pairs tested (each direction is a pair), 1 of them capped by",
            "an agent, 1 only in part, typical",
            "≥: an agent's --max-rate",
            "~: each test of this pair ended early",
            "6 pairs are at least 10 % slower than typical",
            "c's sending side explains 5 of 6 slow pairs: -5",
            "5 of 5 newest records name sender-cpu (sender)",
            "a → f is a path of its own: -7",
            "its newest record names no limit",
        ] {
            assert!(text.contains(words), "{words:?} in {text}");
        }
        let slow = text.lines().filter(|line| line.contains("sender-cpu (sender)"));
        assert_eq!(slow.count(), 6, "one in the reason, five in the table: {text}");
    }

    #[test]
    fn what_is_absent_is_a_dot_and_a_narrow_screen_has_several_tables() {
        let whole = plain(grid(&matrix(), 80));
        assert_eq!(whole.lines().count(), 8, "{whole}");
        let b = whole.lines().find(|line| line.starts_with('b')).unwrap();
        assert_eq!(b.split_whitespace().filter(|cell| *cell == NO_TEST).count(), 1, "{whole}");
        assert_eq!(b.split_whitespace().filter(|cell| *cell == NO_PAIR).count(), 1, "{whole}");
        for mark in [AT_LEAST, IN_PART] {
            assert_eq!(whole.matches(mark).count(), 1, "{whole}");
        }
        let narrow = plain(grid(&matrix(), 40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(narrow.matches("Mbit/s").count() > 1, "{narrow}");
    }

    #[test]
    fn a_pair_above_the_rate_of_the_file_has_a_mark() {
        let text = "[test]\nrate = \"500mbit\"\n[site.a]\n[site.b]\ntarget = \"b\"\n";
        let mut tally =
            goodput_fleet::Tally::of_mesh(&goodput_fleet::Mesh::parse("x", text).unwrap());
        tally.add(&Observation {
            record: 1,
            sender: "a".into(),
            receiver: "b".into(),
            at_s: 0.0,
            goodput: BitRate(9e8),
            rtt_us: Known::missing("x"),
            limit: "none".into(),
            limit_at: Part::Path,
            share_of_limit: None,
            is_partial: false,
        });
        let matrix = tally.matrix(Question { now_s: 60.0, slow_percent: 10.0 });
        let text = plain(parts(&matrix, true, 80));
        assert!(text.contains("↑900") && text.contains("↑: faster than the rate"), "{text}");
        assert!(text.contains("900 Mbit/s, more than the mesh file expects"), "{text}");
    }

    #[test]
    fn many_pairs_have_several_tables() {
        let matrix = matrix();
        let many = iter::repeat_with(|| matrix.cell(0, 1)).take(MOST_ROWS + 7);
        let tables: Vec<_> = cells(many).map(|table| plain([table])).collect();
        let lines: Vec<_> = tables.iter().map(|table| table.lines().count()).collect();
        assert_eq!(lines, [MOST_ROWS + 1, 8]);
        assert!(tables.iter().all(|table| table.starts_with("from")));
        assert_eq!(cells(iter::empty()).count(), 0);
    }

    #[test]
    fn every_cell_can_be_described() {
        let matrix = matrix();
        let text = plain(cells(matrix.cells()));
        assert_eq!(text.lines().count(), 31, "{text}");
        assert!(text.contains("2 h") && text.contains("2 ms"), "{text}");
    }

    #[test]
    fn tests_that_say_nothing_are_counted() {
        let tests = BTreeMap::from([(Unusable::Datagrams, 1)]);
        let text = plain([left_out(&tests)]);
        assert!(text.contains("left out") && text.contains("1 test, datagrams"), "{text}");
        assert_eq!(left_out(&BTreeMap::new()), "");
    }
}
