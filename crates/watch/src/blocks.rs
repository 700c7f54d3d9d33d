//! Whether a path changed whose tests depend so strongly on each other that the ranks of a few say little.
//!
//! A busy hour of such a path lasts for hours, and no model says well enough how far a few tests in a row may be off. The path's own
//! past does: it has shown how far the medians of a block of tests and of as many tests before it lie apart. What is far beyond all of
//! them is a change, whatever the noise. Smaller changes are not found by this.

use goodput_model::{Estimate, median};

/// How many times as far apart as ever before two blocks are after a change. `tests/months.rs` counts what this means for a month: of
/// normal noise, the most of 24 blocks is about two standard deviations.
const BEYOND: f64 = 2.5;
/// Blocks that the past has at least: the most of few says little.
const FEWEST_BLOCKS: usize = 20;
/// Share of the past's differences within the interval of a change.
const SURE: f64 = 0.95;

/// By how much the tests `since` a change lie apart from as many tests before it, if that is far beyond all that was `before`:
/// logarithms without the daily rhythm, oldest first, and the number of changes before each of the latter.
pub(crate) fn shift(before: (&[f64], &[usize]), since: &[f64]) -> Option<Estimate> {
    let (values, segments) = before;
    let tests = since.len();
    if tests == 0 || values.len() < FEWEST_BLOCKS * tests {
        return None;
    }
    let value = apart(&values[values.len() - tests..], since)?;
    let in_one = |end: &usize| segments[end - 2 * tests] == segments[end - 1];
    let ends = (2 * tests..=values.len()).filter(in_one);
    let sides = ends.map(|end| values[end - 2 * tests..end].split_at(tests));
    let mut past: Vec<f64> =
        sides.filter_map(|(one, other)| apart(one, other)).map(f64::abs).collect();
    past.sort_by(f64::total_cmp);
    let most = past.last().filter(|_| past.len() >= (FEWEST_BLOCKS - 2) * tests)?;
    let usual = past[(SURE * (past.len() - 1) as f64).ceil() as usize];
    (value.abs() > BEYOND * most).then_some(Estimate {
        value,
        low: value - usual,
        high: value + usual,
    })
}

/// How far the second block lies above the first one, by their medians: one bad test moves neither.
fn apart(one: &[f64], other: &[f64]) -> Option<f64> {
    Some(median(other.iter().copied())? - median(one.iter().copied())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    /// Tests within 0.02 of which each passes on nine tenths.
    fn sticky(tests: usize) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut value = 0.0;
        let next = |_| {
            value = 0.9 * value + 0.02 * (random.random::<f64>() - 0.5);
            20.0 + value
        };
        (0..tests).map(next).collect()
    }

    fn found(tests: usize, drop: f64) -> Option<Estimate> {
        let values = sticky(tests + 8);
        let (before, since) = values.split_at(tests);
        let since: Vec<f64> = since.iter().map(|value| value - drop).collect();
        shift((before, &vec![0; tests]), &since)
    }

    #[test]
    fn what_is_far_beyond_the_past_is_a_change_and_all_else_is_none() {
        let drop = found(400, 0.5).unwrap();
        assert!(drop.low < -0.5 && drop.high > -0.5 && drop.high < 0.0, "{drop:?}");
        assert!(found(400, -0.5).unwrap().low > 0.0);
        for small in [0.0, 0.02, -0.02] {
            assert_eq!(found(400, small), None);
        }
    }

    #[test]
    fn a_short_past_or_one_of_many_changes_says_nothing() {
        assert_eq!(found(100, 0.5), None);
        let values = sticky(400);
        let segments: Vec<usize> = (0..400).map(|n| n / 10).collect();
        assert_eq!(shift((&values, &segments), &[10.0; 8]), None);
        assert_eq!(shift((&[], &[]), &[]), None);
    }

    #[test]
    fn bad_tests_of_the_past_hide_no_change() {
        let mut values = sticky(400);
        values.iter_mut().step_by(37).for_each(|value| *value -= 0.7);
        let since = [values[399] - 0.5; 8];
        assert!(shift((&values, &vec![0; 400]), &since).is_some());
    }
}
