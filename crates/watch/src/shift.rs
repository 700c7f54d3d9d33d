//! By how much a path changed: the Hodges-Lehmann estimate, and its interval by ranks.
//!
//! The estimate is the median of all differences between a test after the change and one before it. The interval holds
//! every shift that the Mann-Whitney test does not reject at 5 % (Hollander, Wolfe and Chicken, section 4.3).

use goodput_model::Estimate;

/// Standard deviations from the mean to the ends of 95 % of a normal distribution.
const NORMAL_95: f64 = 1.96;

/// The shift of `after` against `before`, both logarithms. `inflation` is how many times the variance of sums exceeded
/// that of independent tests.
pub(crate) fn shift(before: &[f64], after: &[f64], inflation: f64) -> Option<Estimate> {
    let mut differences: Vec<f64> =
        after.iter().flat_map(|after| before.iter().map(move |before| after - before)).collect();
    differences.sort_by(f64::total_cmp);
    let (m, n) = (after.len() as f64, before.len() as f64);
    let spread = NORMAL_95 * (m * n * (m + n + 1.0) / 12.0 * inflation).sqrt();
    let outside = (m * n / 2.0 - spread).max(0.0) as usize;
    let last = differences.len().checked_sub(1)?;
    let value = f64::midpoint(differences[last / 2], differences[last.div_ceil(2)]);
    let outside = outside.min(last / 2);
    Some(Estimate { value, low: differences[outside], high: differences[last - outside] })
}

/// Whether the interval of a shift leaves out that there is none. What is said of a path has such an interval.
pub(crate) fn is_sure(shift: &Estimate) -> bool {
    shift.low > 0.0 || shift.high < 0.0
}

/// A shift of logarithms as the ratio that it is.
pub(crate) fn ratio(shift: Estimate) -> Estimate {
    Estimate { value: shift.value.exp(), low: shift.low.exp(), high: shift.high.exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_shift() {
        let before: Vec<f64> = (0..100).map(|n| f64::from(n % 10) / 100.0).collect();
        let after: Vec<f64> = before[..8].iter().map(|value| value - 0.5).collect();
        let found = shift(&before, &after, 1.0).unwrap();
        assert!((found.value + 0.5).abs() < 0.02, "{found:?}");
        assert!(found.low < -0.5 && found.high > -0.5, "{found:?}");
        assert!(is_sure(&found) && is_sure(&shift(&after, &before, 1.0).unwrap()));
        assert!(!is_sure(&shift(&before, &before[..8], 1.0).unwrap()));
        let wider = shift(&before, &after, 4.0).unwrap();
        assert!(wider.low < found.low && wider.high > found.high, "{wider:?}");
        assert_eq!(shift(&[], &after, 1.0), None);
    }
}
