//! The cells of the matrix: what the tests from one site to another say together.

use std::collections::BTreeMap;

use goodput_model::{BitRate, Known, median};
use serde::Serialize;

use super::part::Part;
use super::scale::scale;
use super::seen::Observation;

/// Length of the weeks that are compared, seconds.
const WEEK_S: f64 = 7.0 * 86_400.0;
/// Fewest tests that show how much tests vary, and whose median survives one bad test.
pub(super) const MIN_TESTS: usize = 3;
/// Why a cell has no value.
const NO_TEST: &str = "no test";

/// What is known of the path from one site to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// The site that sends.
    pub sender: String,
    /// The site that receives.
    pub receiver: String,
    /// Tests in the week up to the newest one.
    pub tests: usize,
    /// Median goodput of that week, bits per second.
    pub goodput_bits_per_s: Known<BitRate>,
    /// How much the tests of that week vary: one standard deviation, robustly, percent.
    pub spread_percent: Known<f64>,
    /// Median of the smallest round-trip times of that week, microseconds.
    pub rtt_us: Known<f64>,
    /// The rule that limited the newest test, or `none`.
    pub limit: Known<String>,
    /// Where that limit was.
    pub limit_at: Known<Part>,
    /// Goodput of that week compared with the week before, percent.
    pub change_percent: Known<f64>,
    /// Time since the newest test, seconds.
    pub age_s: Known<f64>,
    /// Number of the newest test's record.
    pub record: Known<i64>,
}

/// A cell for each ordered pair of different sites, row by row.
pub(super) fn cells(sites: &[String], seen: &[Observation], now_s: f64) -> Vec<Cell> {
    let mut tests: BTreeMap<(&str, &str), Vec<&Observation>> = BTreeMap::new();
    for one in seen {
        tests.entry((&one.sender, &one.receiver)).or_default().push(one);
    }
    let mut all = Vec::new();
    for sender in sites {
        for receiver in sites.iter().filter(|receiver| *receiver != sender) {
            let mine = tests.remove(&(sender.as_str(), receiver.as_str())).unwrap_or_default();
            all.push(cell(sender, receiver, mine, now_s));
        }
    }
    all
}

fn cell(sender: &str, receiver: &str, mut tests: Vec<&Observation>, now_s: f64) -> Cell {
    tests.sort_by(|one, two| one.at_s.total_cmp(&two.at_s));
    let Some(newest) = tests.last().copied() else { return empty(sender, receiver) };
    let weeks_ago = |test: &Observation| ((newest.at_s - test.at_s) / WEEK_S) as u64;
    let of_week = |week: u64| tests.iter().copied().filter(move |test| weeks_ago(test) == week);
    let goodput = |week: u64| median(of_week(week).map(|test| test.goodput.0));
    let change = goodput(0).zip(goodput(1)).map(|(now, before)| (now / before - 1.0) * 100.0);
    Cell {
        tests: of_week(0).count(),
        goodput_bits_per_s: known(goodput(0).map(BitRate), NO_TEST),
        spread_percent: spread(&of_week(0).map(|test| test.goodput.0.ln()).collect::<Vec<_>>()),
        rtt_us: known(
            median(of_week(0).filter_map(|test| test.rtt_us.value().copied())),
            "no test of the week reports it",
        ),
        limit: Known::Value(newest.limit.clone()),
        limit_at: Known::Value(newest.limit_at),
        change_percent: known(change, "no test in the week before"),
        age_s: known(
            Some(now_s - newest.at_s).filter(|age| *age >= 0.0),
            "the newest test lies in the future: the clocks of the hosts differ",
        ),
        record: Known::Value(newest.record),
        ..empty(sender, receiver)
    }
}

fn empty(sender: &str, receiver: &str) -> Cell {
    Cell {
        sender: sender.into(),
        receiver: receiver.into(),
        tests: 0,
        goodput_bits_per_s: Known::missing(NO_TEST),
        spread_percent: Known::missing(NO_TEST),
        rtt_us: Known::missing(NO_TEST),
        limit: Known::missing(NO_TEST),
        limit_at: Known::missing(NO_TEST),
        change_percent: Known::missing(NO_TEST),
        age_s: Known::missing(NO_TEST),
        record: Known::missing(NO_TEST),
    }
}

/// How much tests vary, from the logarithms of their goodput.
fn spread(logs: &[f64]) -> Known<f64> {
    let middle = median(logs.iter().copied()).filter(|_| logs.len() >= MIN_TESTS);
    let scale = middle.and_then(|middle| scale(logs.iter().map(|log| log - middle), 1));
    known(scale.map(|scale| (scale.exp() - 1.0) * 100.0), "the week has fewer than three tests")
}

fn known<T>(value: Option<T>, why: &'static str) -> Known<T> {
    value.map_or(Known::missing(why), Known::Value)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
    }

    fn of(seen: &[Observation], now_days: f64) -> Vec<Cell> {
        cells(&["a".into(), "b".into()], seen, now_days * DAY_S)
    }

    #[test]
    fn the_newest_week_is_compared_with_the_one_before() {
        let seen =
            [test(20.0, 60.0, 3), test(12.0, 90.0, 1), test(12.5, 110.0, 2), test(19.0, 40.0, 4)];
        let cell = &of(&seen, 21.0)[0];
        assert_eq!((cell.tests, &cell.goodput_bits_per_s), (2, &Known::Value(BitRate(50.0))));
        assert_eq!((&cell.limit, &cell.record), (&Known::Value("rule-3".into()), &Known::Value(3)));
        assert_eq!(cell.change_percent, Known::Value(-50.0));
        assert_eq!(cell.age_s, Known::Value(DAY_S));
        assert!(matches!(cell.rtt_us, Known::Missing(_)));
    }

    #[test]
    fn three_tests_show_how_much_tests_vary() {
        let of = |rates: &[f64]| spread(&rates.iter().map(|rate| rate.ln()).collect::<Vec<_>>());
        let Known::Value(percent) = of(&[90.0, 100.0, 111.0]) else { panic!("there are three") };
        assert!((15.0..18.0).contains(&percent), "{percent}");
        assert!(matches!(of(&[90.0, 100.0]), Known::Missing(_)));
    }

    #[test]
    fn what_is_absent_is_not_zero() {
        let seen = [test(20.0, 60.0, 3)];
        let all = of(&seen, 19.0);
        assert!(matches!(all[0].age_s, Known::Missing(_)), "a clock differs");
        assert!(matches!(all[0].change_percent, Known::Missing(_)));
        assert_eq!((all[1].sender.as_str(), all[1].tests), ("b", 0));
        assert_eq!(all[1].goodput_bits_per_s, Known::missing(NO_TEST));
    }
}
