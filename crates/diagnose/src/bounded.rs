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
    /// The largest possible error, not negative.
    pub error: f64,
}

impl Bounded {
    /// A value that is accurate to `error`.
    pub fn new(value: f64, error: f64) -> Self {
        Self { value, error }
    }

    /// The median of values, and the half-width of its 95 % interval by order statistics: of n values,
    /// ranks n/2 ± 0.98 √n enclose it (Conover, "Practical Nonparametric Statistics", section 3.2).
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
        Ok(Self::new(value, (value - below).max(above - value)))
    }

    /// The same value with a bound wider by this much.
    pub fn wider(self, by: f64) -> Self {
        Self { error: self.error + by, ..self }
    }

    /// Whether the truth is above `threshold`; unknown within the bound.
    pub fn exceeds(self, threshold: f64, what: &str) -> Result<bool, Missing> {
        let Self { value, error } = self;
        if value - error > threshold {
            Ok(true)
        } else if value + error < threshold {
            Ok(false)
        } else {
            Err(Missing::because(format!(
                "{what} is {value:.6} ± {error:.6}, too close to {threshold:.6}"
            )))
        }
    }
}

impl Add for Bounded {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(self.value + other.value, self.error + other.error)
    }
}

impl Sub for Bounded {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::new(self.value - other.value, self.error + other.error)
    }
}

impl Mul<f64> for Bounded {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        Self::new(self.value * by, self.error * by.abs())
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
            prop_assert!((0.0..=most - least).contains(&median.error));
        }
    }
}
