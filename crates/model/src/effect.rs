//! How much better or worse one arm of a comparison is than another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A relative difference with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// Median paired difference, percent of the baseline.
    pub percent: f64,
    /// Lower end of the interval, percent.
    pub low_percent: f64,
    /// Upper end of the interval, percent.
    pub high_percent: f64,
    /// Confidence level of the interval, percent, after correction for looks and arms. "No difference" has
    /// an interval of its own, of twice the error: two one-sided tests (Schuirmann, 1987).
    pub confidence_percent: f64,
    /// Pairs it stands on.
    pub n: usize,
    /// The conditions beside the runs whose differences were taken out of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjusted_for: Vec<String>,
    /// What it means.
    pub judgement: Judgement,
}

/// The outcome for one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The whole interval is on the good side of the threshold.
    Better,
    /// The whole interval is on the bad side.
    Worse,
    /// The whole interval is on the good side of zero, and reaches into the threshold: an effect that may
    /// be too small to count.
    BetterPerhapsBelowThreshold,
    /// The whole interval is on the bad side of zero, and reaches into the threshold.
    WorsePerhapsBelowThreshold,
    /// The whole interval is within the threshold.
    NoDifference,
    /// The interval is too wide to decide.
    Inconclusive,
}
