//! How many times as much one sample of runs has as another.

use goodput_model::median;

/// Error of the interval: it misses the true ratio in at most one of twenty cases.
const LEVEL: f64 = 0.05;

/// The ratio of two independent samples, whatever the shape of their noise: Hodges-Lehmann and the exact rank-sum test
/// (H. B. Mann and D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than the
/// other", Annals of Mathematical Statistics 18, 1947; the interval as in Hollander, Wolfe and Chicken, "Nonparametric
/// Statistical Methods", section 4.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Median of all ratios of a value of the one to a value of the other.
    pub estimate: f64,
    /// The 95 % interval; `None` if the samples are too small for one.
    pub interval: Option<(f64, f64)>,
}

impl Ratio {
    /// `None` if a sample is empty, or `to_those` has a value that is not above 0.
    pub fn of(these: &[f64], to_those: &[f64]) -> Option<Self> {
        if to_those.iter().any(|value| *value <= 0.0) {
            return None;
        }
        let ratios = |this: &f64| to_those.iter().map(|that| this / that).collect::<Vec<_>>();
        let mut ratios: Vec<f64> = these.iter().flat_map(ratios).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let rank = widest_rank(these.len(), to_those.len());
        let interval = rank.map(|rank| (ratios[rank], ratios[ratios.len() - 1 - rank]));
        Some(Self { estimate: median(ratios)?, interval })
    }
}

/// Which ratio from either end, from 0, bounds the interval; `None` if even the outermost are too close together.
fn widest_rank(m: usize, n: usize) -> Option<usize> {
    let mut below = 0.0;
    let beyond = rank_sum_probabilities(m, n).into_iter().take_while(|probability| {
        below += probability;
        2.0 * below <= LEVEL
    });
    beyond.count().checked_sub(1)
}

/// Probability that of `m` and `n` values of the same kind, 0, 1, … m·n of all pairs have the larger value in the first
/// sample. A recursion on the sample that has the largest value.
fn rank_sum_probabilities(m: usize, n: usize) -> Vec<f64> {
    let mut of_fewer: Vec<Vec<f64>> = vec![vec![1.0]; n + 1];
    for first in 1..=m {
        let mut row = vec![vec![1.0]];
        for second in 1..=n {
            let share = first as f64 / (first + second) as f64;
            let mut probabilities = vec![0.0; first * second + 1];
            for (pairs, probability) in of_fewer[second].iter().enumerate() {
                probabilities[pairs + second] += share * probability;
            }
            for (pairs, probability) in row[second - 1].iter().enumerate() {
                probabilities[pairs] += (1.0 - share) * probability;
            }
            row.push(probabilities);
        }
        of_fewer = row;
    }
    of_fewer.swap_remove(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Critical values of U for two-sided .05, as in common tables: at most so many pairs.
    #[test]
    fn ranks_are_those_of_the_table() {
        for (m, n, most) in
            [(4, 4, 0), (5, 5, 2), (6, 8, 8), (8, 8, 13), (10, 8, 17), (20, 20, 127)]
        {
            assert_eq!(widest_rank(m, n), Some(most), "{m} and {n}");
        }
        assert_eq!(widest_rank(3, 3), None, "1 of 20 at either end");
    }

    #[test]
    fn probabilities_are_of_all_orders() {
        assert_eq!(rank_sum_probabilities(1, 3), [0.25; 4]);
        let two = rank_sum_probabilities(2, 2);
        let expected = [1.0, 1.0, 2.0, 1.0, 1.0].map(|orders| orders / 6.0);
        assert!(two.iter().zip(expected).all(|(seen, wanted)| (seen - wanted).abs() < 1e-12));
    }

    #[test]
    fn a_ratio_lies_in_its_interval_and_divides_by_nothing_but_values_above_0() {
        let these = [20.0, 21.0, 19.0, 20.0, 22.0];
        let those = [10.0, 10.5, 9.5, 10.0];
        let ratio = Ratio::of(&these, &those).unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert!(low < 2.0 && 2.0 < high && (ratio.estimate - 2.0).abs() < 0.1, "{ratio:?}");
        assert_eq!(Ratio::of(&[20.0], &those).unwrap().interval, None);
        assert_eq!(Ratio::of(&[], &those), None);
        assert_eq!(Ratio::of(&these, &[0.0]), None);
        assert_eq!(Ratio::of(&[0.0], &those).unwrap().estimate, 0.0, "nothing came through");
    }
}
