//! A number with its interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value and its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// In another unit.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self { value: self.value * by, low: self.low * by, high: self.high * by }
    }
}
