//! The cells of the matrix: what the tests from one site to another say together.

use goodput_model::{BitRate, Known, median};
use serde::Serialize;

use super::packed::{Packed, Tests, weeks};
use super::part::Part;
use super::scale::scale;

/// Fewest tests that show how much tests vary, and whose median survives one bad test.
pub(super) const MIN_TESTS: usize = 3;
/// Why a cell has no value.
const NO_TEST: &str = "no test";

/// What is known of the path from one site to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell<'a> {
    /// The numbers of its sites.
    #[serde(skip)]
    pub(super) pair: [u32; 2],
    /// The site that sends.
    pub sender: &'a str,
    /// The site that receives.
    pub receiver: &'a str,
    /// Tests in the week up to the newest one.
    pub tests: usize,
    /// Median goodput of that week, bits per second.
    pub goodput_bits_per_s: Known<BitRate>,
    /// How much the tests of that week vary: one standard deviation, robustly, percent.
    pub spread_percent: Known<f64>,
    /// Median of the smallest round-trip times of that week, microseconds.
    pub rtt_us: Known<f64>,
    /// The rule that limited the newest test, or `none`.
    pub limit: Known<&'a str>,
    /// Where that limit was.
    pub limit_at: Known<Part>,
    /// Whether an agent's limit (`--max-rate`) capped the tests: the path may be faster.
    pub is_capped: bool,
    /// How much of an agent's limit the newest test gave, if one held it, percent.
    pub percent_of_limit: Known<u8>,
    /// Whether the goodput is above the rate that the mesh file expects: the tests cost more than the plan counts.
    pub is_above_expected: bool,
    /// Whether all tests ended early: the values are of parts of them.
    pub is_partial: bool,
    /// Goodput of that week compared with the week before, percent.
    pub change_percent: Known<f64>,
    /// Time since the newest test, seconds.
    pub age_s: Known<f64>,
    /// Number of the newest test's record.
    pub record: Known<i64>,
}

impl<'a> Cell<'a> {
    /// The cell of the sites of these numbers and names, of all tests, at `now_s` seconds since 1970.
    pub(super) fn of(tests: &'a Tests, pair: [u32; 2], names: [&'a str; 2], now_s: f64) -> Self {
        let mine = tests.of_cell(pair);
        let Some(newest) = mine.last() else { return Self::empty(pair, names) };
        let [week, before] = weeks(mine);
        let change = goodput(week).zip(goodput(before));
        let change = change.map(|(now, before)| (now / before - 1.0) * 100.0);
        Cell {
            tests: week.len(),
            goodput_bits_per_s: known(goodput(week).map(BitRate), NO_TEST),
            spread_percent: known(
                deviation(week).map(|log| (log.exp() - 1.0) * 100.0),
                "the week has fewer than three tests",
            ),
            rtt_us: known(
                median(week.iter().filter_map(Packed::known_rtt_us)),
                "no test of the week reports it",
            ),
            limit: Known::Value(tests.limit(newest)),
            limit_at: Known::Value(newest.limit_at),
            is_capped: newest.is_capped(),
            percent_of_limit: known(
                Some(newest.percent_of_limit).filter(|percent| *percent > 0),
                "no agent's limit held it",
            ),
            is_partial: newest.is_partial,
            change_percent: known(change, "no test in the week before"),
            age_s: known(
                Some(now_s - newest.at_s).filter(|age| *age >= 0.0),
                "the newest test lies in the future: the clocks of the hosts differ",
            ),
            record: Known::Value(newest.record),
            ..Self::empty(pair, names)
        }
    }

    fn empty(pair: [u32; 2], [sender, receiver]: [&'a str; 2]) -> Self {
        Cell {
            pair,
            sender,
            receiver,
            tests: 0,
            goodput_bits_per_s: Known::missing(NO_TEST),
            spread_percent: Known::missing(NO_TEST),
            rtt_us: Known::missing(NO_TEST),
            limit: Known::missing(NO_TEST),
            limit_at: Known::missing(NO_TEST),
            is_capped: false,
            percent_of_limit: Known::missing(NO_TEST),
            is_above_expected: false,
            is_partial: false,
            change_percent: Known::missing(NO_TEST),
            age_s: Known::missing(NO_TEST),
            record: Known::missing(NO_TEST),
        }
    }
}

/// Median goodput of tests, bits per second.
pub(super) fn goodput(tests: &[Packed]) -> Option<f64> {
    median(tests.iter().map(|test| test.goodput.0))
}

/// How much tests vary: one standard deviation of the logarithm of their goodput. None: they are too few.
pub(super) fn deviation(tests: &[Packed]) -> Option<f64> {
    let logs = tests.iter().map(|test| test.goodput.0.ln());
    let middle = median(logs.clone()).filter(|_| tests.len() >= MIN_TESTS)?;
    scale(logs.map(|log| log - middle), 1)
}

fn known<T>(value: Option<T>, why: &'static str) -> Known<T> {
    value.map_or(Known::missing(why), Known::Value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::seen::Observation;
    use crate::matrix::tally::Tally;
    use crate::matrix::whole::{Matrix, Question};

    const DAY_S: f64 = 86_400.0;

    fn test(days: f64, rate: f64, record: i64) -> Observation {
        Observation {
            record,
            sender: "a".into(),
            receiver: "b".into(),
            at_s: days * DAY_S,
            goodput: BitRate(rate),
            rtt_us: Known::missing("x"),
            limit: format!("rule-{record}"),
            limit_at: Part::Path,
            share_of_limit: None,
            is_partial: false,
        }
    }

    fn of(seen: &[Observation], now_days: f64) -> Matrix {
        let mut tally = Tally::of(["a", "b"].map(String::from));
        seen.iter().for_each(|seen| tally.add(seen));
        tally.matrix(Question { now_s: now_days * DAY_S, slow_percent: 10.0 })
    }

    #[test]
    fn the_newest_week_is_compared_with_the_one_before() {
        let seen =
            [test(20.0, 60.0, 3), test(12.0, 90.0, 1), test(12.5, 110.0, 2), test(19.0, 40.0, 4)];
        let matrix = of(&seen, 21.0);
        let cell = matrix.cell(0, 1);
        assert_eq!((cell.tests, &cell.goodput_bits_per_s), (2, &Known::Value(BitRate(50.0))));
        assert_eq!((&cell.limit, &cell.record), (&Known::Value("rule-3"), &Known::Value(3)));
        assert_eq!(cell.change_percent, Known::Value(-50.0));
        assert_eq!(cell.age_s, Known::Value(DAY_S));
        assert!(matches!(cell.rtt_us, Known::Missing(_)));
    }

    #[test]
    fn the_median_round_trip_is_that_of_the_tests_that_report_one() {
        let with = |us| Observation { rtt_us: Known::Value(us), ..test(1.0, 1e9, 1) };
        let matrix = of(&[with(100.25), test(1.0, 1e9, 2), with(300.5)], 1.0);
        assert_eq!(matrix.cell(0, 1).rtt_us, Known::Value(200.375));
    }

    #[test]
    fn three_tests_show_how_much_tests_vary() {
        let of = |rates: &[f64]| {
            let seen: Vec<_> = rates.iter().map(|rate| test(1.0, *rate, 1)).collect();
            of(&seen, 1.0).cell(0, 1).spread_percent
        };
        let Known::Value(percent) = of(&[90.0, 100.0, 111.0]) else { panic!("there are three") };
        assert!((15.0..18.0).contains(&percent), "{percent}");
        assert!(matches!(of(&[90.0, 100.0]), Known::Missing(_)));
    }

    #[test]
    fn what_is_absent_is_not_zero() {
        let matrix = of(&[test(20.0, 60.0, 3)], 19.0);
        let [there, back] = [matrix.cell(0, 1), matrix.cell(1, 0)];
        assert!(matches!(there.age_s, Known::Missing(_)), "a clock differs");
        assert!(matches!(there.change_percent, Known::Missing(_)));
        assert_eq!((back.sender, back.tests), ("b", 0));
        assert_eq!(back.goodput_bits_per_s, Known::missing(NO_TEST));
    }
}
