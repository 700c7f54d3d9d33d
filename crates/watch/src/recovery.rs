//! Whether a path is as before a change again.
//!
//! Of such a change, the direction and the size are known. So it needs less evidence than a change of which nothing is
//! known: neither a long reference since the last change, nor a probability that allows for months of tests. The newest
//! tests must lie too far from those since the change for chance, and among those before it. The path's usual noise says
//! how far chance goes, because a few tests since a change can't.

use std::f64::consts::TAU;

use goodput_model::Estimate;

use crate::beginning::Beginning;
use crate::noise::Noise;
use crate::ranks::{place, probability, standard_sum};
use crate::shift::{is_sure, ratio, shift};
use crate::step::Step;
use crate::window::{MAX_WINDOW, MIN_WINDOW};

/// Probability, for one window, below which the newest tests are not like those since the change. `tests/months.rs` counts
/// what this means for recoveries that are found, and for changes that last.
const LEVEL: f64 = 3e-4;
/// Probability above which they are like the tests before the change.
const AS_BEFORE: f64 = 0.01;

/// Tests since a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since<'a> {
    /// Logarithms without the daily rhythm, oldest first.
    pub(crate) values: &'a [f64],
    /// When each of them began, seconds since 1970.
    pub(crate) at_s: &'a [f64],
    /// When the first test after the change began.
    pub(crate) began_s: f64,
    /// How long the change may have lasted, seconds.
    pub(crate) most_s: f64,
}

/// The newest tests, which are as before a change again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Recovery {
    /// Their number.
    pub(crate) tests: usize,
    /// The first of them at the earliest and at the latest, as places among the tests since the change.
    pub(crate) between: [usize; 2],
    /// Goodput of them, divided by that since the change, as logarithm.
    pub(crate) shift: Estimate,
    /// Probability that tests like those since the change are as much like those before it.
    pub(crate) probability: f64,
}

impl Recovery {
    /// The likeliest number of tests that are as before again, if any are. `before` are tests before the change: logarithms
    /// without the daily rhythm.
    pub(crate) fn find(before: &[f64], since: Since, noise: &Noise) -> Option<Self> {
        let before_it = Before::of(before, noise)?;
        let level = before_it.level;
        let longest = MAX_WINDOW.min(since.values.len().saturating_sub(MIN_WINDOW));
        let split = |tests: usize| since.values.split_at(since.values.len() - tests);
        // Nearly always this is the answer, and costs least.
        if longest < MIN_WINDOW || !before_it.has(split(MIN_WINDOW).1, noise) {
            return None;
        }
        let by_how_much = |tests: &usize| {
            let (other, newest) = split(*tests);
            nearer(newest, level, noise.mean(other).unwrap_or(level))
        };
        let tests =
            (MIN_WINDOW..=longest).max_by(|a, b| by_how_much(a).total_cmp(&by_how_much(b)))?;
        let (other, newest) = split(tests);
        // The shortest window may begin with a test that is still like those since the change: then the next one decides.
        if nearer(&newest[..1], level, noise.mean(other)?) <= 0.0 {
            return None;
        }
        let probability = by_chance(other, newest, level, noise)?;
        if probability >= LEVEL || !before_it.has(newest, noise) {
            return None;
        }
        let inflation = noise.of_means();
        let drop = shift(before, other, inflation)?;
        let shift = shift(other, newest, inflation).filter(is_sure)?;
        let drop = Step { at_s: since.began_s, ratio: ratio(drop) };
        let back = Step { at_s: *since.at_s.get(other.len())?, ratio: ratio(shift) };
        if !back.takes_back(&drop, since.most_s) {
            return None;
        }
        let (all, levels) = (since.values, [noise.mean(other)?, level]);
        let among = all.len() - longest..=all.len() - MIN_WINDOW;
        let Beginning { earliest, latest, .. } = Beginning::between(all, levels, among, noise)?;
        Some(Self { tests, between: [earliest, latest], shift, probability })
    }
}

/// Probability that tests like those since the change lie as far towards `level` as the newest ones.
fn by_chance(since: &[f64], newest: &[f64], level: f64, noise: &Noise) -> Option<f64> {
    let (from, to) = (noise.mean(since)?, noise.mean(newest)?);
    let error = noise.error_of_mean(since.len()).hypot(noise.error_of_mean(newest.len()));
    Some(above((to - from) * (level - from).signum() / error))
}

/// Probability that a normal variable is above `far` standard deviations: an upper bound, which is 10 % too large at 3
/// (Gordon 1941). Nothing is said of less than one.
fn above(far: f64) -> f64 {
    if far > 1.0 { (-far * far / 2.0).exp() / (far * TAU.sqrt()) } else { 1.0 }
}

/// By how much tests are nearer to one level than to the other one, in all. The most is where the path came to this level.
fn nearer(tests: &[f64], level: f64, other: f64) -> f64 {
    tests.iter().map(|test| (test - other).abs() - (test - level).abs()).sum()
}

/// The tests before a change.
struct Before {
    sorted: Vec<f64>,
    level: f64,
}

impl Before {
    fn of(tests: &[f64], noise: &Noise) -> Option<Self> {
        let mut sorted = tests.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self { sorted, level: noise.mean(tests)? })
    }

    /// Whether these tests may be of the same path: by their ranks, which need nothing about its noise, and by their mean,
    /// because few ranks can't tell apart what is a little below all others and what is far below.
    fn has(&self, tests: &[f64], noise: &Noise) -> bool {
        let sum = tests.iter().map(|test| place(&self.sorted, *test)).sum();
        let sum = standard_sum(sum, tests.len(), self.sorted.len(), noise.of_means());
        let off = noise.mean(tests).map(|mean| (mean - self.level).abs());
        let error = noise.error_of_mean(tests.len()).hypot(noise.error_of_mean(self.sorted.len()));
        let is_far = off.is_none_or(|off| 2.0 * above(off / error) < AS_BEFORE);
        probability(sum, tests.len()) > AS_BEFORE && !is_far
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rhythm::{Rhythm, Seen};
    use crate::step::MOST_S;

    /// Noise within ±2 %, the same in each run.
    fn test(n: usize, level: f64) -> f64 {
        level + 0.04 * ((n as f64 * 0.618_033_988_75).fract() - 0.5)
    }

    fn tests(numbers: std::ops::Range<usize>, level: f64) -> Vec<f64> {
        numbers.map(|n| test(n, level)).collect()
    }

    fn noise() -> Noise {
        let seen = |value| Seen { day_share: 0.0, value, segment: 0 };
        let seen: Vec<Seen> = tests(0..500, 20.0).into_iter().map(seen).collect();
        Noise::of(&Rhythm::default(), &seen, MAX_WINDOW)
    }

    /// What is found `since` a change, with a test every quarter of an hour.
    fn find(before: &[f64], since: &[f64]) -> Option<usize> {
        let at_s: Vec<f64> = (0..since.len()).map(|n| n as f64 * 900.0).collect();
        let since = Since { values: since, at_s: &at_s, began_s: 0.0, most_s: MOST_S };
        Recovery::find(before, since, &noise()).map(|found| found.tests)
    }

    /// What is found after `changed` tests at one level and `newest` at another.
    fn found(changed: (usize, f64), newest: (usize, f64)) -> Option<usize> {
        let since = [tests(7..7 + changed.0, changed.1), tests(99..99 + newest.0, newest.1)];
        find(&tests(0..200, 20.0), &since.concat())
    }

    #[test]
    fn four_tests_as_before_are_enough_after_few_and_after_many() {
        for changed in [4, 5, 10, 20, 24, 40, 100] {
            for level in [19.9, 20.1, 19.3] {
                assert_eq!(found((changed, level), (4, 20.0)), Some(4), "{changed} at {level}");
                for few in [2, 3] {
                    assert_eq!(found((changed, level), (few, 20.0)), None, "{changed} at {level}");
                }
            }
        }
    }

    #[test]
    fn a_path_that_stays_or_goes_elsewhere_is_not_as_before() {
        for newest in [19.9, 19.95, 19.7, 20.1] {
            for tests in [4, 8, 20] {
                assert_eq!(found((12, 19.9), (tests, newest)), None, "{tests} at {newest}");
            }
        }
    }

    #[test]
    fn after_two_days_it_is_a_change() {
        assert_eq!(found((180, 19.9), (4, 20.0)), Some(4));
        assert_eq!(found((200, 19.9), (4, 20.0)), None);
    }

    #[test]
    fn a_bad_test_on_either_side_hides_no_recovery() {
        let mut since = [tests(7..17, 19.9), tests(99..105, 20.0)].concat();
        since[3] = 19.0;
        since[13] = 19.0;
        assert!(find(&tests(0..200, 20.0), &since).is_some());
    }

    #[test]
    fn without_tests_nothing_is_found() {
        assert_eq!(find(&[], &tests(0..20, 20.0)), None);
        assert_eq!(find(&tests(0..20, 20.0), &[]), None);
    }
}
