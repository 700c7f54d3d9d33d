//! A number with its confidence interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value and its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The estimated value, in the unit of the field.
    pub value: f64,
    /// Lower end of the confidence interval.
    pub low: f64,
    /// Upper end of the confidence interval.
    pub high: f64,
}

impl Estimate {
    /// The same estimate in another unit.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self { value: self.value * by, low: self.low * by, high: self.high * by }
    }
}

/// What follows a share, such as ` (6 to 19 %)`: all in percent. Nothing if the share is not known more precisely than it is
/// printed, without decimals, or if its range is unknown.
pub fn percent_range(share: f64, between: Option<[f64; 2]>) -> String {
    let Some([low, high]) = between else { return String::new() };
    match [low, share, high].map(|percent| format!("{percent:.0}")) {
        [low, share, high] if low == share && share == high => String::new(),
        [low, _, high] => format!(" ({low} to {high} %)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_printed_if_it_is_wider_than_the_number() {
        assert_eq!(percent_range(12.3, Some([6.2, 18.7])), " (6 to 19 %)");
        assert_eq!(percent_range(12.3, Some([12.1, 12.4])), "");
        assert_eq!(percent_range(12.3, None), "");
    }
}
