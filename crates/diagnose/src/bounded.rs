//! Values with error bounds, and the decisions that they allow.

use std::ops::{Add, Mul, Sub};

use goodput_model::{Missing, median};

/// The fewest values whose extremes enclose the median with 95 % (1 − 2·2⁻ⁿ).
const MIN_VALUES: usize = 6;

/// A value, and how far the truth may be from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounded {
    /// The value.
    pub value: f64,
    /// By how much the truth may be less, not negative.
    below: f64,
    /// By how much it may be more, not negative.
    above: f64,
}

impl Bounded {
    /// A value that is accurate to `error`.
    pub fn new(value: f64, error: f64) -> Self {
        Self { value, below: error, above: error }
    }

    /// The largest possible error, not negative.
    pub fn error(self) -> f64 {
        self.below.max(self.above)
    }

    /// The median of values, and its 95 % interval by order statistics: of n values, ranks n/2 ± 0.98 √n enclose it
    /// (Conover, "Practical Nonparametric Statistics", section 3.2). Of values that are far apart on one side only, the
    /// interval is wide on that side only.
    pub fn median(mut values: Vec<f64>, what: &str) -> Result<Self, Missing> {
        let count = values.len();
        let value =
            median(values.iter().copied()).filter(|_| count >= MIN_VALUES).ok_or_else(|| {
                Missing::because(format!(
                    "{what} was seen {count} times in the window; {MIN_VALUES} are needed"
                ))
            })?;
        values.sort_by(f64::total_cmp);
        let (middle, reach) = (count as f64 / 2.0, 0.98 * (count as f64).sqrt());
        let below = values[(middle - reach).max(0.0) as usize];
        let above = values[((middle + reach) as usize).min(count - 1)];
        Ok(Self { value, below: value - below, above: above - value })
    }

    /// The same value with a bound wider by this much.
    pub fn wider(self, by: f64) -> Self {
        Self { below: self.below + by, above: self.above + by, ..self }
    }

    /// Whether the truth is above `threshold`; unknown within the bound.
    pub fn exceeds(self, threshold: f64, what: &str) -> Result<bool, Missing> {
        let Self { value, below, above } = self;
        if value - below > threshold {
            Ok(true)
        } else if value + above < threshold {
            Ok(false)
        } else {
            let error = self.error();
            Err(Missing::because(format!(
                "{what} is {value:.6} ± {error:.6}, too close to {threshold:.6}"
            )))
        }
    }
}

impl Add for Bounded {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (below, above) = (self.below + other.below, self.above + other.above);
        Self { value: self.value + other.value, below, above }
    }
}

impl Sub for Bounded {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let (below, above) = (self.below + other.above, self.above + other.below);
        Self { value: self.value - other.value, below, above }
    }
}

impl Mul<f64> for Bounded {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        let (below, above) = (self.below * by.abs(), self.above * by.abs());
        let (below, above) = if by < 0.0 { (above, below) } else { (below, above) };
        Self { value: self.value * by, below, above }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_lies_within_the_bound_is_not_decided() {
        let queue = Bounded::new(7.5, 0.4);
        assert_eq!(queue.exceeds(4.0, "it"), Ok(true));
        assert_eq!((queue * 0.5).exceeds(4.0, "it"), Ok(false));
        let unsure = Bounded::new(4.0, 5.0);
        let why = unsure.exceeds(4.0, "the queue").unwrap_err().to_string();
        assert!(why.contains("the queue is 4.000000 ± 5.000000"), "{why}");
    }

    #[test]
    fn a_median_that_may_be_far_more_is_still_known_to_exceed_what_is_below_it() {
        // A queue that comes and goes: 20 to 54 ms at first, then up to 292 ms.
        let values = (20..55).map(f64::from).chain((0..25).map(|n| 100.0 + 8.0 * f64::from(n)));
        let median = Bounded::median(values.collect(), "it").unwrap();
        assert_eq!((median - Bounded::new(10.0, 1.0)).exceeds(0.0, "it"), Ok(true));
        assert!((median * -1.0).exceeds(-60.0, "it").is_err());
        assert!(median.exceeds(60.0, "it").is_err());
    }

    #[test]
    fn a_median_of_few_values_is_not_known_and_of_equal_ones_exactly() {
        assert!(Bounded::median(vec![1.0; 5], "it").is_err());
        assert_eq!(Bounded::median(vec![1.0; 6], "it"), Ok(Bounded::new(1.0, 0.0)));
    }

    proptest! {
        #[test]
        fn a_median_lies_among_its_values(values in proptest::collection::vec(-1e9f64..1e9, 6..200)) {
            let (least, most) = (values.iter().copied().fold(f64::INFINITY, f64::min),
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            let median = Bounded::median(values, "it").unwrap();
            prop_assert!((least..=most).contains(&median.value));
            prop_assert!(median.exceeds(least - 1.0, "it").unwrap());
            prop_assert!((0.0..=most - least).contains(&median.error()));
        }
    }
}
