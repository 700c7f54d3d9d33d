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
