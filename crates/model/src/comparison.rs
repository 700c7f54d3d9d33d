//! A comparison: trials of two or more arms, and what they prove. The run is the unit.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Permanent;
use crate::known::Known;
use crate::latency::{ArmLatency, Latency};
use crate::setting::SettingRef;
use crate::units::BitRate;

/// One run of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Number of the block; each block runs the baseline and every arm that is still open once, in random
    /// order.
    pub block: u32,
    /// Number of the arm; 0 is the baseline.
    pub arm: usize,
    /// Goodput of the run, or why it has none: a run that failed.
    pub goodput_bits_per_s: Known<BitRate>,
    /// CPU seconds of both ends per 10^9 payload bytes.
    pub cpu_s_per_gb: Known<f64>,
    /// How long round trips took, if the plan has them probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Limiting rule of the run's own verdict.
    pub limit: String,
    /// What each rule's witness read, by rule id, if it could be read.
    pub witnesses: BTreeMap<String, f64>,
    /// Why the run does not count (a guard tripped, it broke off), if it does not.
    pub discarded: Option<String>,
}

/// Everything a comparison showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The settings that differ between the arms.
    pub settings: Vec<SettingRef>,
    /// The arms; the first is the baseline.
    pub arms: Vec<ArmResult>,
    /// Every run, in the order it was made.
    pub trials: Vec<Trial>,
    /// Smallest effect that counts as one, percent.
    pub threshold_percent: f64,
    /// Why it stopped.
    pub stopped: String,
}

/// One arm against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmResult {
    /// The values of the settings, in their order.
    pub values: Vec<String>,
    /// Runs that count: those beside a run of the baseline that counts. An arm that is decided is no longer
    /// run, so that arms differ in it.
    pub n: usize,
    /// Median goodput of its runs.
    pub goodput_bits_per_s: Known<BitRate>,
    /// Median CPU seconds of both ends per 10^9 payload bytes.
    pub cpu_s_per_gb: Known<f64>,
    /// Goodput against the baseline; `None` for the baseline itself.
    pub goodput: Option<Effect>,
    /// CPU cost against the baseline; `None` for the baseline itself.
    pub cpu: Option<Effect>,
    /// Round trips under load, if the plan has them probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<ArmLatency>,
    /// Whether the mechanism that the diagnosis named really moved.
    pub mechanism: Option<Mechanism>,
    /// How its values outlive a reboot, if it is the best of those that are better than the
    /// baseline: files to write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permanent: Vec<Permanent>,
}

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

/// What makes a difference a proof: the named witness moved and the next limit took over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mechanism {
    /// The rule that limited the baseline.
    pub rule: String,
    /// Its witness in the baseline's runs, median.
    pub witness_before: Known<f64>,
    /// Its witness in this arm's runs, median.
    pub witness_after: Known<f64>,
    /// Whether the witness moved away from the limit.
    pub moved: Known<bool>,
    /// What limits this arm's runs most often.
    pub next_limit: String,
}
