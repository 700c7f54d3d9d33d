//! The report of `goodput fleet matrix`: the goodput of each pair, and what explains the slow ones.

use std::collections::BTreeMap;

use goodput_fleet::{Cause, Cell, Explanation, Matrix, Part, Unusable};
use goodput_model::{BitRate, Known, Seconds};

use super::plan::named;
use super::span::span;
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
    line(&mut out, "mesh", &style::strong(mesh(matrix)));
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
        line(&mut out, "left out", &counts(tests));
    }
    out
}

/// Each reason with its number of tests.
pub fn counts(tests: &BTreeMap<Unusable, usize>) -> String {
    let each = tests.iter().map(|(why, count)| match count {
        1 => format!("1 test, {why}"),
        count => format!("{count} tests, {why}"),
    });
    each.collect::<Vec<_>>().join("; ")
}

fn mesh(matrix: &Matrix) -> String {
    let sites = matrix.sites.len();
    let tested = matrix.cells.iter().filter(|cell| cell.tests > 0).count();
    let typical = matrix.explanation.value().map(|one| one.typical_bits_per_s);
    let typical = typical.map_or_else(String::new, |rate| format!(", typical {rate}"));
    format!("{sites} sites, {tested} of {} pairs tested{typical}", matrix.cells.len())
}

fn explained(out: &mut String, matrix: &Matrix, explanation: &Explanation) {
    let slow = explanation.slow.len();
    let by = matrix.slow_percent;
    let text = match slow {
        0 => format!("no pair is {by:.0} % slower than typical, or more"),
        1 => format!("1 pair is at least {by:.0} % slower than typical"),
        _ => format!("{slow} pairs are at least {by:.0} % slower than typical"),
    };
    line(out, "slow", &text);
    lines(out, "because", explanation.causes.iter().map(|cause| reason(cause, slow)));
    if !explanation.unexplained.is_empty() {
        let names = named(explanation.unexplained.iter().map(arrow));
        let spread = explanation.spread_percent;
        let text = format!("{names}: pairs vary by {spread:.1} % (1 standard deviation)");
        line(out, "no cause", &text);
    }
    if !explanation.undecided.is_empty() {
        let side = |(site, part): &(String, Part)| format!("{site} as {part}");
        let names = named(explanation.undecided.iter().map(side));
        line(out, "undecided", &format!("{names}: fewer than 3 of its pairs have tests"));
    }
}

/// `c's sending side explains 11 of 14 slow pairs: -62 % (-68 to -55 %), of 11 tested; 9 of 11 records name …`
fn reason(cause: &Cause, slow: usize) -> String {
    let [sender, receiver] =
        [&cause.sender, &cause.receiver].map(|name| name.as_deref().unwrap_or("?"));
    let explains = format!("explains {} of {slow} slow pairs", cause.explains.len());
    let subject = match cause.part {
        Part::Sender => style::bad(format!("{sender}'s sending side {explains}")),
        Part::Receiver => style::bad(format!("{receiver}'s receiving side {explains}")),
        Part::Path => style::bad(format!("{sender} → {receiver} is a path of its own")),
    };
    let [low, high] = cause.between_percent;
    let effect = format!("{:+.0} % ({low:+.0} to {high:+.0} %)", cause.effect_percent);
    let of = match cause.part {
        Part::Path => String::new(),
        _ => format!(" in {} tested pairs", cause.cells),
    };
    format!("{subject}: {effect}{of}{}", witness(cause))
}

/// What most records of the explained pairs name.
fn witness(cause: &Cause) -> String {
    let Some(most) = cause.limits.iter().find(|limit| limit.rule != "none") else {
        return "; their newest records name no limit".into();
    };
    let all = cause.records.len();
    format!("; {} of {all} newest records name {} ({})", most.cells, most.rule, most.at)
}

fn arrow([sender, receiver]: &[String; 2]) -> String {
    format!("{sender} → {receiver}")
}

/// Goodput of all pairs in one unit, in several tables if the screen is too narrow for one.
fn grid(matrix: &Matrix, columns: usize) -> String {
    let cells: BTreeMap<_, _> =
        matrix.cells.iter().map(|cell| ((&*cell.sender, &*cell.receiver), cell)).collect();
    let largest = matrix.cells.iter().filter_map(|cell| cell.goodput_bits_per_s.value());
    let largest = largest.fold(BitRate(0.0), |most, rate| if *rate > most { *rate } else { most });
    let (scale, unit) = largest.unit();
    let slow = matrix.explanation.value().map(|one| &one.slow);
    let shown = |sender: &str, receiver: &str| {
        let Some(cell) = cells.get(&(sender, receiver)) else { return ITSELF.to_string() };
        let rate = cell.goodput_bits_per_s.value();
        let text = rate.map_or(NO_TEST.into(), |rate| digits(rate.0 / scale));
        let is_slow =
            slow.is_some_and(|slow| slow.iter().any(|[one, two]| one == sender && two == receiver));
        if is_slow { style::bad(text) } else { text }
    };
    let names = matrix.sites.iter().map(|name| width(name)).max().unwrap_or(0);
    let cell_columns = names.max(NUMBER_COLUMNS) + GAP_COLUMNS;
    let room = columns.saturating_sub(names.max(width(unit))) / cell_columns;
    let tables = matrix.sites.chunks(room.max(1)).map(|receivers| {
        let to = receivers.iter().map(|name| (String::new(), name.clone()));
        let corner = (unit.to_string(), "from".to_string());
        let headings: Vec<_> = [corner].into_iter().chain(to).collect();
        let mut table = Table::of_numbers(&headings, 1);
        for sender in &matrix.sites {
            let row = receivers.iter().map(|receiver| shown(sender, receiver));
            let row: Vec<_> = [sender.clone()].into_iter().chain(row).collect();
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
    let is_slow = |cell: &&Cell| {
        let explanation = matrix.explanation.value();
        explanation.is_some_and(|one| {
            one.slow.iter().any(|[from, to]| *from == cell.sender && *to == cell.receiver)
        })
    };
    let shown: Vec<_> = matrix.cells.iter().filter(|cell| every_cell || is_slow(cell)).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["from", "to", "goodput", "rtt", "week", "age", "limit"]);
    for cell in shown {
        table.row(&[
            &cell.sender,
            &cell.receiver,
            &known(&cell.goodput_bits_per_s, ToString::to_string),
            &known(&cell.rtt_us, |us| Seconds::of_us(*us).to_string()),
            &known(&cell.change_percent, |percent| format!("{percent:+.0} %")),
            &known(&cell.age_s, |age| span(*age)),
            &limit(cell),
        ]);
    }
    table.text()
}

fn limit(cell: &Cell) -> String {
    match (&cell.limit, &cell.limit_at) {
        (Known::Value(rule), Known::Value(at)) if rule != "none" => format!("{rule} ({at})"),
        (Known::Value(rule), _) => rule.clone(),
        _ => NO_TEST.into(),
    }
}

/// A value, or a dot for none.
fn known<T>(value: &Known<T>, shown: impl Fn(&T) -> String) -> String {
    value.value().map_or(NO_TEST.into(), shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_fleet::{Observation, Question};

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
        let tests = BTreeMap::from([(Unusable::Datagrams, 1), (Unusable::Files, 3)]);
        let text = plain(&left_out(&tests));
        assert!(text.contains("1 test, datagrams") && text.contains("3 tests, from or to files"));
        assert_eq!(left_out(&BTreeMap::new()), "");
    }
}
