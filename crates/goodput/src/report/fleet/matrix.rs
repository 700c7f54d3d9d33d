//! The report of `goodput fleet matrix`: the goodput of each pair, and what explains the slow ones.

use std::collections::BTreeMap;

use goodput_fleet::{Cell, Explanation, Matrix, QUANTITIES, Unusable, left_out_in_words};
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
/// A site with itself.
const ITSELF: &str = "–";

/// The whole report. `every_cell`: describe each pair, not only the slow ones. `columns`: those of the screen.
pub fn text(matrix: &Matrix, every_cell: bool, columns: u16) -> String {
    let mut out = String::new();
    line(&mut out, "mesh", &style::strong(matrix.in_words()));
    match &matrix.explanation {
        Known::Missing(why) => line(&mut out, "because", &format!("unknown: {why}")),
        Known::Value(explanation) => explained(&mut out, matrix, explanation),
    }
    out += &format!("\n{}", grid(matrix, columns.into()));
    let described = cells(matrix, every_cell);
    if described.is_empty() { out } else { out + "\n" + &described }
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

fn arrow([sender, receiver]: &[String; 2]) -> String {
    format!("{sender} → {receiver}")
}

/// Goodput of all pairs in one unit, in several tables if the screen is too narrow for one.
fn grid(matrix: &Matrix, columns: usize) -> String {
    let largest = matrix.cells.iter().filter_map(|cell| cell.goodput_bits_per_s.value());
    let largest = largest.fold(BitRate(0.0), |most, rate| if *rate > most { *rate } else { most });
    let (scale, unit) = largest.unit();
    let slow = matrix.slow();
    let shown = |cell: &Option<&Cell>| {
        let Some(cell) = cell else { return ITSELF.to_string() };
        let rate = cell.goodput_bits_per_s.value();
        let text = rate.map_or(NO_TEST.into(), |rate| digits(rate.0 / scale));
        let is_slow = slow.contains(&[cell.sender.as_str(), cell.receiver.as_str()]);
        if is_slow { style::bad(text) } else { text }
    };
    let names = matrix.sites.iter().map(|name| width(name)).max().unwrap_or(0);
    let cell_columns = names.max(NUMBER_COLUMNS) + GAP_COLUMNS;
    let room = columns.saturating_sub(names.max(width(unit))) / cell_columns;
    let rows: Vec<_> = matrix.rows().collect();
    let tables = matrix.sites.chunks(room.max(1)).enumerate().map(|(number, receivers)| {
        let from = number * room.max(1);
        let to = receivers.iter().map(|name| (String::new(), name.clone()));
        let corner = (unit.to_string(), "from".to_string());
        let headings: Vec<_> = [corner].into_iter().chain(to).collect();
        let mut table = Table::of_numbers(&headings, 1);
        for (sender, cells) in &rows {
            let row = cells[from..from + receivers.len()].iter().map(&shown);
            let row: Vec<_> = [sender.to_string()].into_iter().chain(row).collect();
            table.row(&row.iter().map(String::as_str).collect::<Vec<_>>());
        }
        table.within(Some(columns))
    });
    tables.collect::<Vec<_>>().join("\n")
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

/// What is known of the slow pairs, or of all.
fn cells(matrix: &Matrix, every_cell: bool) -> String {
    let slow = matrix.slow();
    let is_slow = |cell: &Cell| slow.contains(&[cell.sender.as_str(), cell.receiver.as_str()]);
    let shown: Vec<_> = matrix.cells.iter().filter(|cell| every_cell || is_slow(cell)).collect();
    if shown.is_empty() {
        return String::new();
    }
    let columns = ["from", "to"].into_iter().chain(QUANTITIES.map(|one| one.id));
    let mut table = Table::new(&columns.collect::<Vec<_>>());
    for cell in shown {
        let known = QUANTITIES.map(|one| (one.shown)(cell, &str::to_owned));
        let known = known.iter().map(|value| value.as_deref().unwrap_or(NO_TEST));
        let sites = [cell.sender.as_str(), cell.receiver.as_str()];
        table.row(&sites.into_iter().chain(known).collect::<Vec<_>>());
    }
    table.text()
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
            })
            .collect();
        let question = Question { now_s: 7200.0, slow_percent: 10.0 };
        goodput_fleet::matrix(names.map(String::from).to_vec(), &seen, question)
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn the_slow_sender_and_the_slow_path_are_named_with_their_evidence() {
        let text = plain(&text(&matrix(), false, 80));
        for words in [
            "6 sites, 29 of 30 pairs tested, typical 90",
            "6 pairs are at least 10 % slower than typical",
            "c's sending side explains 5 of 6 slow pairs: -5",
            "5 of 5 newest records name sender-cpu (sender)",
            "a → f is a path of its own: -7",
            "their newest records name no limit",
        ] {
            assert!(text.contains(words), "{words:?} in {text}");
        }
        let slow = text.lines().filter(|line| line.contains("sender-cpu (sender)"));
        assert_eq!(slow.count(), 6, "one in the reason, five in the table: {text}");
    }

    #[test]
    fn what_is_absent_is_a_dot_and_a_narrow_screen_has_several_tables() {
        let whole = plain(&grid(&matrix(), 80));
        assert_eq!(whole.lines().count(), 8, "{whole}");
        let b = whole.lines().find(|line| line.starts_with('b')).unwrap();
        assert_eq!(b.split_whitespace().filter(|cell| *cell == NO_TEST).count(), 1, "{whole}");
        assert_eq!(b.split_whitespace().filter(|cell| *cell == ITSELF).count(), 1, "{whole}");
        let narrow = plain(&grid(&matrix(), 40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(narrow.matches("Mbit/s").count() > 1, "{narrow}");
    }

    #[test]
    fn every_cell_can_be_described() {
        let text = plain(&cells(&matrix(), true));
        assert_eq!(text.lines().count(), 31, "{text}");
        assert!(text.contains("2 h") && text.contains("2 ms"), "{text}");
    }

    #[test]
    fn tests_that_say_nothing_are_counted() {
        let tests = BTreeMap::from([(Unusable::Datagrams, 1)]);
        let text = plain(&left_out(&tests));
        assert!(text.contains("left out") && text.contains("1 test, datagrams"), "{text}");
        assert_eq!(left_out(&BTreeMap::new()), "");
    }
}
