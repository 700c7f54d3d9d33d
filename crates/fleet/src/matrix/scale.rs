//! Robust standard deviations: how much values vary, whatever a few of them do.

use goodput_model::median;

/// Median absolute deviation of normal noise, in standard deviations.
const MAD: f64 = 0.674_49;

/// The standard deviation of what a fit with so many parameters has left, without as many of the smallest values: a fit by
/// medians goes through as many, where nothing is left by construction (Maronna, Martin and Yohai 2006, "Robust
/// Statistics", section 4.4.2). `None`: there are not more values than parameters.
pub(super) fn scale(left: impl IntoIterator<Item = f64>, parameters: usize) -> Option<f64> {
    Some(middle(left.into_iter().map(f64::abs).collect(), parameters)? / MAD)
}

/// The median of values without so many of the smallest ones. It sorts in place: a mesh of a thousand sites has a million,
/// and room for them once more would be missing.
pub(super) fn middle(mut values: Vec<f64>, without: usize) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let counted = values.get(without..)?;
    let middle = counted.get(counted.len().saturating_sub(1) / 2..=counted.len() / 2)?;
    median(middle.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_wild_values_and_those_that_fit_by_construction_do_not_count() {
        let found = scale([0.0, -1.0, 1.0, 1.0, -1.0, 900.0], 1).unwrap();
        assert!((found - 1.0 / MAD).abs() < 1e-9, "{found}");
        assert_eq!(scale([0.0, 0.0], 2), None);
        assert_eq!(scale([0.0], 2), None);
        assert_eq!(scale([-3.0], 0), Some(3.0 / MAD));
        assert_eq!(scale([2.0, 1.0, 4.0], 1), Some(3.0 / MAD));
    }
}
