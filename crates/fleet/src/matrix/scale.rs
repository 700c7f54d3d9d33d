//! Robust standard deviations: how much values vary, whatever a few of them do.

use goodput_model::median;

/// Median absolute deviation of normal noise, in standard deviations.
const MAD: f64 = 0.674_49;

/// The standard deviation of what a fit with so many parameters has left, without as many of the smallest values: a fit by
/// medians goes through as many, where nothing is left by construction (Maronna, Martin and Yohai 2006, "Robust
/// Statistics", section 4.4.2). `None`: there are not more values than parameters.
pub(super) fn scale(left: impl IntoIterator<Item = f64>, parameters: usize) -> Option<f64> {
    let mut sizes: Vec<f64> = left.into_iter().map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    Some(median(sizes.into_iter().skip(parameters))? / MAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_wild_values_and_those_that_fit_by_construction_do_not_count() {
        let found = scale([0.0, -1.0, 1.0, 1.0, -1.0, 900.0], 1).unwrap();
        assert!((found - 1.0 / MAD).abs() < 1e-9, "{found}");
        assert_eq!(scale([0.0, 0.0], 2), None);
    }
}
