//! Whether a series grows, by statistics that are robust against a few outliers.

use goodput_model::median;

/// The line through a series (Sen, Journal of the American Statistical Association 63, 1968), and the probability of
/// such an order of its values by chance (Mann, Econometrica 13, 1945).
#[derive(Debug, Clone, Copy)]
pub struct Trend {
    /// The median of all slopes between two values.
    pub slope: f64,
    /// Median of the values.
    pub median: f64,
    /// Probability of as many increases if there is no trend, one-sided.
    pub p: f64,
    span: f64,
}

/// Minimum number of values: with fewer, the normal approximation of Mann's statistic is poor.
const MIN_SAMPLES: usize = 10;
/// The significance level for a trend.
const MAX_P_VALUE: f64 = 0.01;

impl Trend {
    /// The trend of `values` at `times`, which grow. `None` if there are too few.
    pub fn of(times: &[f64], values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n < MIN_SAMPLES {
            return None;
        }
        let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        let rises = pairs.map(|(i, j)| (values[j] - values[i], times[j] - times[i]));
        let rises: Vec<_> = rises.collect();
        let s: f64 =
            rises.iter().map(|(rise, _)| if *rise == 0.0 { 0.0 } else { rise.signum() }).sum();
        let n = n as f64;
        let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties(values)) / 18.0;
        let z = if s > 0.0 { (s - 1.0) / variance.sqrt() } else { 0.0 };
        Some(Self {
            slope: median(rises.iter().map(|(rise, run)| rise / run))?,
            median: median(values.iter().copied())?,
            p: above(z),
            span: times.last()? - times.first()?,
        })
    }

    /// Whether it rises beyond chance, and over the whole time by more than this share of its median.
    pub fn grows_by_more_than(&self, share: f64) -> bool {
        self.p < MAX_P_VALUE && self.slope * self.span > self.median * share
    }
}

/// The reduction of the variance due to ties.
fn ties(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let groups = sorted.chunk_by(|a, b| a == b).map(|group| group.len() as f64);
    groups.map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum()
}

/// Probability of more than `z`, at least 0, of a standard normal variable: Abramowitz and Stegun, Handbook of
/// Mathematical Functions, 26.2.17, whose error is below 7.5e-8.
fn above(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let b = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = b.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise between -1 and 1 that looks random.
    fn noise(i: usize) -> f64 {
        (i as f64 * 12.9898).sin() * 43_758.547 % 1.0
    }

    fn trend(value: impl Fn(usize) -> f64) -> Trend {
        let times: Vec<_> = (0..40).map(|i| i as f64).collect();
        Trend::of(&times, &(0..40).map(value).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_leak_is_seen_and_noise_steps_and_outliers_are_not() {
        assert!(trend(|i| 100.0 + 0.5 * i as f64 + noise(i)).grows_by_more_than(0.05));
        assert!(!trend(|i| 100.0 + 3.0 * noise(i)).grows_by_more_than(0.05));
        assert!(!trend(|i| if i == 39 { 900.0 } else { 100.0 }).grows_by_more_than(0.05));
        assert!(!trend(|_| 7.0).grows_by_more_than(0.0));
        assert!(!trend(|i| 100.0 - i as f64).grows_by_more_than(0.0));
        let slow = trend(|i| 100.0 + 0.01 * i as f64);
        assert!(slow.p < MAX_P_VALUE && !slow.grows_by_more_than(0.05), "{slow:?}");
    }

    #[test]
    fn probabilities_are_those_of_the_tables() {
        for (z, p) in [(0.0, 0.5), (1.644_854, 0.05), (2.326_348, 0.01)] {
            assert!((above(z) - p).abs() < 1e-6, "{z}");
        }
        assert!(Trend::of(&[0.0; 9], &[0.0; 9]).is_none());
    }
}
