//! How surprising the newest tests are, by their places among earlier ones.
//!
//! Ranks need nothing about the noise of a path: if nothing changed, every order of the tests is equally likely, for any
//! distribution. So one level of false alarms holds for every path (Hollander, Wolfe and Chicken, "Nonparametric
//! Statistical Methods", section 4.1).

/// The place of `value` among the sorted `reference`: 0 below all, 1 above all, a half in the middle.
pub(crate) fn place(reference: &[f64], value: f64) -> f64 {
    let below = reference.partition_point(|other| *other < value);
    let not_above = reference.partition_point(|other| *other <= value);
    let rank = f64::midpoint(below as f64, not_above as f64);
    (rank + 0.5) / (reference.len() as f64 + 1.0)
}

/// The sum of the places of `tests` tests, as far from its mean as it would be with a reference without end whose tests
/// know nothing of each other. `inflation` is how many times the variance of such sums exceeded that in the path's past.
pub(crate) fn standard_sum(sum: f64, tests: usize, reference: usize, inflation: f64) -> f64 {
    let (m, n) = (tests as f64, reference as f64);
    // The variance of the Mann-Whitney statistic, compared with that of `tests` independent places.
    let finite = (m + n + 1.0) / n;
    m / 2.0 + (sum - m / 2.0) / (finite * inflation).sqrt()
}

/// Probability, two-sided, that `tests` independent places sum up to something as far from the mean as `sum`.
pub(crate) fn probability(sum: f64, tests: usize) -> f64 {
    let m = tests as f64;
    (2.0 * irwin_hall(sum.min(m - sum), tests)).min(1.0)
}

/// Distribution function of the sum of `n` uniform variables (Irwin 1927, Hall 1927, both in Biometrika 19), at most up to
/// the mean, where its alternating sum loses no more than four digits for 32 variables.
fn irwin_hall(x: f64, n: usize) -> f64 {
    let mut sum = 0.0;
    // (-1)^k * C(n, k)
    let mut binomial = 1.0;
    for k in 0..=n {
        let rest = x - k as f64;
        if rest <= 0.0 {
            break;
        }
        // (x - k)^n / n!, in an order that does not overflow.
        sum += binomial * (1..=n).map(|factor| rest / factor as f64).product::<f64>();
        binomial *= -((n - k) as f64) / (k + 1) as f64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_share_of_the_reference() {
        let reference = [1.0, 2.0, 2.0, 3.0];
        assert_eq!(place(&reference, 0.0), 0.1);
        assert_eq!(place(&reference, 2.0), 0.5);
        assert_eq!(place(&reference, 9.0), 0.9);
    }

    /// Values of Hall (1927), and the exact volumes of corners of a cube.
    #[test]
    fn the_distribution_of_a_sum_of_uniforms_is_exact() {
        assert_eq!(irwin_hall(0.5, 1), 0.5);
        assert!((irwin_hall(1.0, 2) - 0.5).abs() < 1e-12);
        assert!((irwin_hall(0.5, 3) - 0.125 / 6.0).abs() < 1e-12);
        assert!((irwin_hall(1.5, 3) - 0.5).abs() < 1e-12);
        assert!((irwin_hall(16.0, 32) - 0.5).abs() < 1e-9);
        assert_eq!(irwin_hall(0.0, 4), 0.0);
    }

    #[test]
    fn both_sides_count() {
        assert!((probability(0.5, 4) - probability(3.5, 4)).abs() < 1e-12);
        assert!((probability(2.0, 4) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_short_reference_or_a_sticky_path_makes_a_sum_less_surprising() {
        let far = standard_sum(0.4, 8, 2000, 1.0);
        let short = standard_sum(0.4, 8, 20, 1.0);
        let sticky = standard_sum(0.4, 8, 2000, 3.0);
        assert!(far < short && far < sticky && short < 4.0 && sticky < 4.0);
    }
}
