//! The whole matrix: its sites, its cells, and what explains the slow ones.

use goodput_model::Known;
use serde::Serialize;

use super::cells::{Cell, cells};
use super::explain::{Explanation, explain};
use super::seen::Observation;

/// How much slower than typical a slow cell is, percent, unless a person says.
pub const SLOW_PERCENT: f64 = 10.0;

/// What is asked of the tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The present, seconds since 1970.
    pub now_s: f64,
    /// A cell is slow if it is this much slower than typical, percent, above 0 and below 100.
    pub slow_percent: f64,
}

/// What is known of all pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    /// The sites, in the order of rows and columns.
    pub sites: Vec<String>,
    /// A cell for each ordered pair of different sites, row by row.
    pub cells: Vec<Cell>,
    /// How much slower than typical a slow cell is, percent, at least.
    pub slow_percent: f64,
    /// What explains the slow cells, or why nothing can be said.
    pub explanation: Known<Explanation>,
}

/// The matrix of these tests. `sites` are its rows and columns; tests between others are left out.
pub fn matrix(sites: Vec<String>, seen: &[Observation], question: Question) -> Matrix {
    let cells = cells(&sites, seen, question.now_s);
    let explanation = explain(&sites, &cells, question.slow_percent);
    Matrix { sites, cells, slow_percent: question.slow_percent, explanation }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::part::Part;
    use goodput_model::BitRate;

    fn sites(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("s{n}")).collect()
    }

    /// Three tests of each pair, with a little fixed noise.
    fn tests(count: usize, rate: impl Fn(usize, usize) -> Option<f64>) -> Vec<Observation> {
        let pairs = (0..count).flat_map(|one| (0..count).map(move |two| (one, two)));
        let each = pairs.flat_map(|(one, two)| (0..3).map(move |n| (one, two, n)));
        let test = |(one, two, n): (usize, usize, usize)| {
            let noise = 1.0 + ((one * 7 + two * 13 + n * 5) % 11) as f64 / 1000.0;
            Some(Observation {
                record: (one * count + two) as i64,
                sender: format!("s{one}"),
                receiver: format!("s{two}"),
                at_s: 0.0,
                goodput: BitRate(rate(one, two)? * noise),
                rtt_us: Known::Value(1000.0),
                limit: if one == 2 { "sender-cpu".into() } else { "none".into() },
                limit_at: if one == 2 { Part::Sender } else { Part::Path },
            })
        };
        each.filter(|(one, two, _)| one != two).filter_map(test).collect()
    }

    fn of(count: usize, rate: impl Fn(usize, usize) -> Option<f64>) -> Matrix {
        let question = Question { now_s: 60.0, slow_percent: 10.0 };
        matrix(sites(count), &tests(count, rate), question)
    }

    #[test]
    fn a_slow_sender_explains_its_row_with_what_its_records_say() {
        let matrix = of(6, |sender, receiver| match (sender, receiver) {
            (2, _) => Some(4e8),
            (0, 5) => Some(2e8),
            _ => Some(9e8),
        });
        let explanation = matrix.explanation.get().unwrap();
        assert_eq!((explanation.slow.len(), explanation.unexplained.len()), (6, 0));
        let [side, path] = &explanation.causes[..] else { panic!("{explanation:?}") };
        assert_eq!((side.part, side.sender.as_deref()), (Part::Sender, Some("s2")));
        assert_eq!((side.explains.len(), side.cells, &side.receiver), (5, 5, &None));
        assert_eq!((side.limits[0].rule.as_str(), side.limits[0].cells), ("sender-cpu", 5));
        assert!((side.effect_percent + 55.6).abs() < 2.0, "{side:?}");
        let [low, high] = side.between_percent;
        assert!(low < side.effect_percent && side.effect_percent < high && high < 0.0);
        let named = (path.part, path.sender.as_deref(), path.receiver.as_deref());
        assert_eq!(named, (Part::Path, Some("s0"), Some("s5")));
        assert_eq!(path.records, [5]);
    }

    #[test]
    fn two_sites_or_too_few_cells_explain_nothing() {
        let why = of(2, |_, _| Some(9e8)).explanation.get().unwrap_err();
        assert!(why.missing.contains("2 sites"), "{why}");
        let none = of(5, |_, _| None);
        assert!(none.explanation.get().is_err());
        assert_eq!(none.cells.len(), 20);
    }

    /// One slow cell of a site with two: its side and its paths look alike.
    #[test]
    fn a_site_with_few_cells_is_undecided_and_its_path_is_not_blamed() {
        let matrix = of(7, |sender, receiver| match (sender, receiver) {
            (6, 0) => Some(1e8),
            (6, 1) => Some(9e8),
            (6, _) => None,
            _ => Some(9e8),
        });
        let explanation = matrix.explanation.get().unwrap();
        assert_eq!(explanation.undecided, [("s6".to_string(), Part::Sender)]);
        assert!(explanation.causes.is_empty(), "{explanation:?}");
        assert_eq!(explanation.unexplained, [["s6".to_string(), "s0".to_string()]]);
    }

    #[test]
    fn a_path_with_a_single_test_is_not_blamed() {
        let mut seen = tests(6, |_, _| Some(9e8));
        seen.retain(|test| test.record != 3);
        let bad = Observation {
            record: 3,
            receiver: "s3".into(),
            goodput: BitRate(4e8),
            ..seen[0].clone()
        };
        seen.push(bad);
        let question = Question { now_s: 60.0, slow_percent: 10.0 };
        let matrix = matrix(sites(6), &seen, question);
        let explanation = matrix.explanation.get().unwrap();
        assert!(explanation.causes.is_empty(), "{explanation:?}");
        assert_eq!(explanation.unexplained, [["s0".to_string(), "s3".to_string()]]);
    }

    #[test]
    fn a_healthy_mesh_has_no_slow_cell() {
        let matrix = of(5, |_, _| Some(9e8));
        let explanation = matrix.explanation.get().unwrap();
        assert!(explanation.slow.is_empty() && explanation.causes.is_empty());
        assert!((explanation.typical_bits_per_s.0 / 9e8 - 1.0).abs() < 0.02);
    }
}
