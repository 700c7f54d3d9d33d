//! Runs of an arm beside those of the baseline in the same block, and what each of the two read.

use crate::comparison::{Comparison, Trial};
use crate::difference::Difference;
use crate::latency::Latency;
use crate::response::Response;

/// A run of an arm and the baseline's run in the same block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialPair {
    /// Number of the block.
    pub block: u32,
    /// How much more the arm has than the baseline.
    pub difference: Difference,
    /// Whether both runs count.
    pub counts: bool,
}

impl Trial {
    /// A number of the run by which arms are judged, in the unit of the response, not below zero. `None` if it is unknown, or
    /// zero where that only means that the clock is too coarse.
    pub fn reading(&self, response: Response) -> Option<f64> {
        let above_zero = |reading: &f64| *reading > 0.0;
        let reading = match response {
            Response::Throughput => self.goodput_bits_per_s.value().map(|rate| rate.0),
            Response::Cpu => self.cpu_s_per_gb.value().copied().filter(above_zero),
            Response::Latency => {
                self.latency.as_ref().and_then(Latency::loaded_us).filter(above_zero)
            }
            _ => self.responses.get(&response).copied(),
        };
        reading.filter(|reading| reading.is_finite() && *reading >= 0.0)
    }

    /// The same as part of a ratio: above zero.
    pub fn in_ratio(&self, response: Response) -> Option<f64> {
        Some(self.reading(response)?.max(response.least_in_ratio()))
    }
}

impl Comparison {
    /// The differences of an arm from the baseline in each block in which both have this response, in the order of the runs.
    /// None for the baseline.
    pub fn pairs(&self, arm: usize, response: Response) -> Vec<TrialPair> {
        let pair = |trial: &Trial| {
            let is_beside = |other: &&Trial| other.arm == 0 && other.block == trial.block;
            let base = self.trials.iter().find(is_beside)?;
            let ratio = trial.in_ratio(response)? / base.in_ratio(response)?;
            let counts = trial.discarded.is_none() && base.discarded.is_none();
            let difference = Difference((ratio - 1.0) * 100.0);
            Some(TrialPair { block: trial.block, difference, counts })
        };
        let of_arm = self.trials.iter().filter(|trial| trial.arm == arm && arm > 0);
        of_arm.filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::comparison::ArmResult;
    use crate::known::Known;
    use crate::units::BitRate;

    use super::*;

    fn trial(block: u32, arm: usize, rate: f64) -> Trial {
        Trial::new(block, arm, Known::Value(BitRate(rate)))
    }

    #[test]
    fn a_pair_is_of_one_block_and_counts_if_both_runs_do() {
        let warm_up = |trial: Trial| Trial { discarded: Some("warm-up".into()), ..trial };
        let failed = Trial::new(3, 1, Known::missing("refused"));
        let trials = vec![
            warm_up(trial(0, 0, 100.0)),
            warm_up(trial(0, 1, 50.0)),
            trial(1, 1, 150.0),
            trial(1, 0, 100.0),
            trial(2, 1, 100.0),
            trial(3, 0, 100.0),
            failed,
        ];
        let arms = ["a", "b"].map(|value| ArmResult::new(vec![value.into()])).into();
        let comparison = Comparison { trials, ..Comparison::new(Vec::new(), arms) };
        let pairs = comparison.pairs(1, Response::Throughput);
        let seen: Vec<_> =
            pairs.iter().map(|pair| (pair.block, pair.difference.0, pair.counts)).collect();
        assert_eq!(seen, [(0, -50.0, false), (1, 50.0, true)]);
        assert!(comparison.pairs(0, Response::Throughput).is_empty());
        assert!(comparison.pairs(1, Response::Cpu).is_empty(), "nobody read it");
    }

    #[test]
    fn a_reading_of_zero_is_a_small_number_in_a_ratio_or_unknown() {
        let silent = Trial { cpu_s_per_gb: Known::Value(0.0), ..trial(1, 0, 0.0) };
        assert_eq!(silent.reading(Response::Throughput), Some(0.0));
        assert_eq!(silent.in_ratio(Response::Throughput), Some(1.0));
        assert_eq!(silent.in_ratio(Response::Cpu), None, "the clock is too coarse");
        assert_eq!(trial(1, 0, f64::NAN).reading(Response::Throughput), None);
    }
}
