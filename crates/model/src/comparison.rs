//! A comparison: trials of two or more arms, and what they prove. The run is the unit.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::finding::Permanent;
use crate::known::Known;
use crate::latency::{ArmLatency, Latency};
use crate::mechanism::{LimitAmount, Mechanism};
use crate::response::Response;
use crate::setting::SettingRef;
use crate::shown_run::ShownRun;
use crate::units::{BitRate, Bytes};
use crate::verdict::Verdict;

/// One run of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Number of the block; each block runs the baseline and every arm that is still open once, in random
    /// order.
    pub block: u32,
    /// Number of the arm; 0 is the baseline.
    pub arm: usize,
    /// Goodput of the run, bits per second, or why the run failed.
    pub goodput_bits_per_s: Known<BitRate>,
    /// CPU seconds of both ends per 10^9 payload bytes; only of this end if the target is a file.
    pub cpu_s_per_gb: Known<f64>,
    /// Round-trip times, if the plan measures them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Rates of the run's files without the network, just before the run; absent without files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_alone: Option<FilesAlone>,
    /// Limiting rule of the run's own verdict; empty if the run shared its connection, and so its verdict, with other runs.
    pub limit: String,
    /// Value of each rule's witness, by rule id, if known: the number that falls when the rule's cause is removed.
    pub witnesses: BTreeMap<String, f64>,
    /// Of the witnesses that count events: how many there were, and among how many, by rule id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub witness_counts: BTreeMap<String, WitnessCount>,
    /// The amount of the limiting rule's cause, if it has one and this is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<LimitAmount>,
    /// Responses that have no field of their own, in their units, if known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub responses: BTreeMap<Response, f64>,
    /// Conditions of the host during the run that no arm can change, by name, if known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, f64>,
    /// Goodput that the run's verdict predicts without its limit, bits per second, if it predicts one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_bits_per_s: Option<BitRate>,
    /// Why the run does not count, if so: for example a guard tripped, or the run was interrupted.
    pub discarded: Option<String>,
}

impl Trial {
    /// A run of which only the goodput is known.
    pub fn new(block: u32, arm: usize, goodput_bits_per_s: Known<BitRate>) -> Self {
        Self {
            block,
            arm,
            goodput_bits_per_s,
            cpu_s_per_gb: Known::missing("not read"),
            latency: None,
            files_alone: None,
            limit: Verdict::NO_LIMIT.into(),
            witnesses: BTreeMap::new(),
            witness_counts: BTreeMap::new(),
            amount: None,
            responses: BTreeMap::new(),
            conditions: BTreeMap::new(),
            predicted_bits_per_s: None,
            discarded: None,
        }
    }
}

/// A witness that counts events: `events * per / of` is its value. A run may see none although the cause is there, so runs
/// are judged by all their events together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WitnessCount {
    /// Events, such as dropped packets.
    pub events: f64,
    /// Among how many: packets, or 1 if a run counts as a whole. Above 0.
    pub of: f64,
    /// The number of these to which the witness refers: 100 for percent, 1000000 for a rate per million.
    pub per: f64,
}

/// Rates of files without the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesAlone {
    /// Rate at which the source was read, bits per second; absent if the source is memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_bits_per_s: Option<Known<BitRate>>,
    /// Rate at which the sink was written, bits per second; absent without a sink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink_bits_per_s: Option<Known<BitRate>>,
}

/// Results of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The settings that differ between the arms.
    pub settings: Vec<SettingRef>,
    /// The arms; the first is the baseline.
    pub arms: Vec<ArmResult>,
    /// Responses by which the arms are judged; the first one decides. Empty in older records, which mean throughput.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<Response>,
    /// Goodput as a function of the value, if one setting was compared with at least three values above zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<DoseCurve>,
    /// Effect of each value over all combinations of the others, and interactions of values, if several settings
    /// were combined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<FactorEffect>,
    /// Every run, in order.
    pub trials: Vec<Trial>,
    /// Smallest effect that counts, percent.
    pub threshold_percent: f64,
    /// Why the comparison stopped.
    pub stopped: String,
}

/// A curve of goodput that grows with a value up to a knee and is constant beyond it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoseCurve {
    /// The value beyond which goodput does not grow, in the unit of the setting. Missing if the runs don't show one, or
    /// if they don't follow such a curve.
    pub knee: Known<f64>,
    /// The smallest and the largest knee that the runs don't exclude, at 95 %; absent without a knee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee_between: Option<[f64; 2]>,
    /// Goodput beyond the knee, bits per second.
    pub asymptote_bits_per_s: Known<BitRate>,
    /// Distance of the arms' medians from the closest curve, root mean square, percent.
    pub misfit_percent: f64,
    /// Whether goodput grows with the value below the knee in more blocks than by chance.
    pub rises: Known<bool>,
}

impl Comparison {
    /// A comparison of which nothing is known but its settings and arms. Effects below 3 % don't count.
    #[must_use]
    pub fn new(settings: Vec<SettingRef>, arms: Vec<ArmResult>) -> Self {
        Self {
            settings,
            arms,
            responses: Vec::new(),
            curve: None,
            factors: Vec::new(),
            trials: Vec::new(),
            threshold_percent: 3.0,
            stopped: String::new(),
        }
    }

    /// Whether an arm is the baseline, running once more as an arm of its own (a placebo).
    #[must_use]
    pub fn is_again(&self, arm: &ArmResult) -> bool {
        let is_other = |base: &&ArmResult| !std::ptr::eq(*base, arm);
        self.arms.first().filter(is_other).is_some_and(|base| base.values == arm.values)
    }

    /// The response that decides.
    #[must_use]
    pub fn deciding(&self) -> Response {
        self.responses.first().copied().unwrap_or(Response::Throughput)
    }

    /// Why nothing can be said of an arm: which of its runs there were.
    #[must_use]
    pub fn why_unjudged(&self, arm: usize) -> &'static str {
        let blocks = self.trials.iter().filter(|trial| trial.arm == arm).map(|trial| trial.block);
        // The warm-up is the block before the first one that counts.
        match blocks.max() {
            None => "never run",
            Some(0) => "run in the warm-up alone",
            Some(_) => "too few runs",
        }
    }

    /// Goodput of an arm's runs that count and have one, in the order in which they were made.
    pub fn counted_rates(&self, arm: usize) -> impl Iterator<Item = BitRate> {
        let counted = self.trials.iter().filter(move |t| t.arm == arm && t.discarded.is_none());
        counted.filter_map(|trial| trial.goodput_bits_per_s.value().copied())
    }
}

impl DoseCurve {
    /// A setting's value as a number: as it is read back, or with the units that people write. `None` if it is not
    /// a number above zero.
    #[must_use]
    pub fn number(value: &str) -> Option<f64> {
        let number = value.parse::<f64>().ok();
        let bytes = || Some(value.parse::<Bytes>().ok()?.0 as f64);
        let rate = || Some(value.parse::<BitRate>().ok()?.0);
        number.or_else(bytes).or_else(rate).filter(|number| number.is_finite() && *number > 0.0)
    }

    /// Goodput for a value, bits per second: proportional to the value up to the knee, the asymptote beyond it.
    /// `None` if the largest value was not enough to find the asymptote.
    #[must_use]
    pub fn goodput_at(&self, value: f64) -> Option<f64> {
        let asymptote = self.asymptote_bits_per_s.value()?.0;
        Some(asymptote * self.knee.value().map_or(1.0, |knee| Self::share(value, *knee)))
    }

    /// Share of the asymptote that a value gives, 0 to 1, if the knee is at `knee`. A window lets its size through
    /// per round trip, and a burst its size per tick, until something else is the limit.
    #[must_use]
    pub fn share(value: f64, knee: f64) -> f64 {
        (value / knee).min(1.0)
    }
}

/// One value of one setting, or two values together, in a comparison of combinations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactorEffect {
    /// The value, `NAME=VALUE`.
    pub change: String,
    /// A value of another setting, combined with this one. If absent, `effect` is the mean over all combinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Effect of the value. With `beside`, the ratio of its effects with and without the other value.
    pub effect: Effect,
    /// Effect of the value without the other value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<Effect>,
    /// Effect of the value with the other value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Effect>,
}

/// Results of one arm, compared with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmResult {
    /// The values of the settings, in their order.
    pub values: Vec<String>,
    /// What the kernel made of the value, in the unit of the setting, if runs show that it is another number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_effect: Option<f64>,
    /// Number of runs that count: those in a block whose baseline run counts. A decided arm is no longer run, so
    /// arms differ in this number.
    pub n: usize,
    /// Median goodput of the arm's runs, bits per second.
    pub goodput_bits_per_s: Known<BitRate>,
    /// Median CPU seconds of both ends per 10^9 payload bytes; only of this end if the target is a file.
    pub cpu_s_per_gb: Known<f64>,
    /// Goodput against the baseline; absent for the baseline itself.
    pub goodput: Option<Effect>,
    /// CPU cost against the baseline; absent for the baseline itself.
    pub cpu: Option<Effect>,
    /// Round trips under load, if the plan measures them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<ArmLatency>,
    /// Each requested response, in the given order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<ResponseResult>,
    /// Whether the change acted by the mechanism that the diagnosis named.
    pub mechanism: Option<Mechanism>,
    /// Of the runs that count, the one with the median goodput, over time. Only of the baseline and of the arm that differs
    /// most from it, and absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<ShownRun>,
    /// Files to write so that the values outlive a reboot, if the arm is the best of those better than the
    /// baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permanent: Vec<Permanent>,
}

impl ArmResult {
    /// An arm of which nothing is known but its values.
    pub fn new(values: Vec<String>) -> Self {
        Self {
            values,
            in_effect: None,
            n: 0,
            goodput_bits_per_s: Known::missing("no run counts"),
            cpu_s_per_gb: Known::missing("no run counts"),
            goodput: None,
            cpu: None,
            latency: None,
            responses: Vec::new(),
            mechanism: None,
            shown: None,
            permanent: Vec::new(),
        }
    }

    /// The value of the only setting as a number, as it was in effect.
    pub fn number(&self) -> Option<f64> {
        self.in_effect.or_else(|| DoseCurve::number(self.values.first()?))
    }

    /// Median of a response over the arm's runs, in its unit.
    pub fn median(&self, response: Response) -> Known<f64> {
        let of_it = self.responses.iter().find(|result| result.response == response);
        match (of_it, &self.goodput_bits_per_s, response) {
            (Some(result), ..) => result.median.clone(),
            // Older records have no list.
            (None, Known::Value(rate), Response::Throughput) => Known::Value(rate.0),
            (None, Known::Missing(why), _) => Known::Missing(why.clone()),
            (None, Known::Value(_), _) => Known::missing("no counted run could read it"),
        }
    }

    /// Effect against the baseline, measured by the response that decides.
    pub fn primary(&self) -> Option<&Effect> {
        match self.responses.first() {
            Some(primary) => primary.against.as_ref(),
            None => self.goodput.as_ref(),
        }
    }
}

/// One response of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseResult {
    /// Name of the response.
    pub response: Response,
    /// Median over the arm's runs, in the unit of the response.
    pub median: Known<f64>,
    /// Effect against the baseline; absent for the baseline itself and if too few runs have this response.
    pub against: Option<Effect>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_with_or_without_units() {
        assert_eq!(
            (DoseCurve::number("64K"), DoseCurve::number("1500"), DoseCurve::number("on")),
            (Some(65536.0), Some(1500.0), None)
        );
        assert_eq!(DoseCurve::number("100mbit"), Some(1e8));
    }

    #[test]
    fn goodput_rises_up_to_the_knee() {
        let asymptote_bits_per_s = Known::Value(BitRate(9e8));
        let knee = Known::Value(1e5);
        let rises = Known::Value(true);
        let (knee_between, misfit_percent) = (None, 0.0);
        let curve = DoseCurve { knee, knee_between, asymptote_bits_per_s, misfit_percent, rises };
        assert_eq!([5e4, 1e5, 4e5].map(|x| curve.goodput_at(x)), [4.5e8, 9e8, 9e8].map(Some));
        let enough = DoseCurve { knee: Known::missing("the smallest is enough"), ..curve.clone() };
        assert_eq!(enough.goodput_at(1.0), Some(9e8));
        let asymptote_bits_per_s = Known::missing("the largest is not enough");
        assert_eq!(DoseCurve { asymptote_bits_per_s, ..curve }.goodput_at(1.0), None);
    }
}
