//! The median, with an interval that assumes nothing about the distribution.

/// Minimum confidence of an interval, percent.
pub const MIN_CONFIDENCE_PERCENT: f64 = 95.0;

/// A median and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The interval of at least 95 % confidence; `None` if there are too few values.
    pub interval: Option<(f64, f64)>,
}

/// The median of `values` with the narrowest symmetric order-statistic interval; `None` without any.
///
/// The interval from the k-th smallest to the k-th largest of n values misses the median of
/// their distribution with probability 2 P(B < k), B binomial with n and 1/2 (David and
/// Nagaraja, Order Statistics, section 7.1). Six values are the fewest that give 95 %.
pub fn estimate(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 {
        return None;
    }
    let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
    let interval = rank(n).map(|k| (sorted[k - 1], sorted[n - k]));
    Some(Estimate { median, interval })
}

/// The largest k, starting at 1, whose interval still has the confidence.
fn rank(n: usize) -> Option<usize> {
    let mut probability = 0.5f64.powi(n as i32);
    let mut below = 0.0;
    let mut found = None;
    for k in 1..=n / 2 {
        below += probability;
        if 2.0 * below > 1.0 - MIN_CONFIDENCE_PERCENT / 100.0 {
            break;
        }
        found = Some(k);
        probability *= (n - k + 1) as f64 / k as f64;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_tables() {
        // Conover, Practical Nonparametric Statistics, table of the sign test at 0.025.
        let expected =
            [(5, None), (6, Some(1)), (8, Some(1)), (9, Some(2)), (12, Some(3)), (20, Some(6))];
        for (n, k) in expected {
            assert_eq!(rank(n), k, "n = {n}");
        }
    }

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(estimate([3.0, 1.0, 2.0]), Some(Estimate { median: 2.0, interval: None }));
        let six = estimate([6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
        assert_eq!(six, Some(Estimate { median: 3.5, interval: Some((1.0, 6.0)) }));
        assert_eq!(estimate([]), None);
    }
}
