//! The runs that count, and the paired log-ratios of an arm against the baseline within blocks.

use std::collections::BTreeMap;

use goodput_model::Trial;

use crate::conditions::{Copies, REFERENCE_COPY};
use crate::design::WARM_UP_BLOCK;
use crate::pair::{Beside, Pair};

/// Whether a run counts: not in the warm-up, not discarded, and with a goodput.
pub(crate) fn counts(trial: &Trial) -> bool {
    let goodput = goodput(trial);
    trial.block != WARM_UP_BLOCK
        && trial.discarded.is_none()
        && goodput.is_finite()
        && goodput >= 0.0
}

/// Goodput of a run, bit/s; NaN if it has none.
pub(crate) fn goodput(trial: &Trial) -> f64 {
    trial.goodput_bits_per_s.value().map_or(f64::NAN, |rate| rate.0)
}

/// The runs that count, by block and arm.
pub(crate) struct Runs<'a> {
    arms: usize,
    blocks: BTreeMap<u32, Vec<Option<&'a Trial>>>,
}

impl<'a> Runs<'a> {
    /// The counting runs in `trials`, for `arms` arms. Of several runs of one arm in one block the first counts.
    pub(crate) fn of(trials: &'a [Trial], arms: usize) -> Self {
        let mut blocks: BTreeMap<u32, Vec<Option<&Trial>>> = BTreeMap::new();
        for trial in trials.iter().filter(|trial| counts(trial)) {
            let block = blocks.entry(trial.block).or_insert_with(|| vec![None; arms]);
            if let Some(place) = block.get_mut(trial.arm) {
                place.get_or_insert(trial);
            }
        }
        Self { arms, blocks }
    }

    /// The arms that are compared with the baseline.
    pub(crate) fn candidates(&self) -> std::ops::Range<usize> {
        1..self.arms.max(1)
    }

    /// The runs of the baseline and `arm` in each block in which both count, in the order of the blocks.
    pub(crate) fn beside(&self, arm: usize) -> impl Iterator<Item = (&'a Trial, &'a Trial)> {
        self.blocks
            .values()
            .filter_map(move |block| Some(((*block.first()?)?, (*block.get(arm)?)?)))
    }

    /// Goodput of `one` and `other` in each block in which both count.
    pub(crate) fn of_both(&self, one: usize, other: usize) -> Vec<(f64, f64)> {
        let both = |block: &Vec<Option<&Trial>>| {
            Some((goodput((*block.get(one)?)?), goodput((*block.get(other)?)?)))
        };
        self.blocks.values().filter_map(both).collect()
    }

    /// For each block in which all the `cells` count, the weighted sum of the logarithms that `read` returns for them,
    /// and the same for the [`REFERENCE_COPY`] beside them.
    pub(crate) fn contrast(
        &self,
        cells: &[(usize, f64)],
        read: impl Fn(&Trial) -> Option<f64>,
    ) -> Vec<Pair> {
        // Weighted, and with the sizes of the weights.
        let sums = |block: &[Option<&Trial>], read: &dyn Fn(&Trial) -> Option<f64>| {
            let cell =
                |(arm, weight): &(usize, f64)| Some((*weight, read((*block.get(*arm)?)?)?.ln()));
            let read: Option<Vec<(f64, f64)>> = cells.iter().map(cell).collect();
            read.map(|read| {
                let ratio: f64 = read.iter().map(|(weight, log)| weight * log).sum();
                let sum: f64 = read.iter().map(|(weight, log)| weight.abs() * log).sum();
                (ratio, sum)
            })
        };
        let of_block = |(number, block): (&u32, &Vec<Option<&Trial>>)| {
            let (log_ratio, response_sum) = sums(block, &read)?;
            let beside = sums(block, &reference_copy);
            let beside = beside.map(|(log_ratio, condition_sum)| Beside {
                log_ratio,
                response_sum,
                condition_sum,
            });
            Some(Pair { block: *number, log_ratio, beside })
        };
        self.blocks.iter().filter_map(of_block).collect()
    }

    /// The runs of `arm` that are compared; for the baseline, the runs beside which another arm has one.
    pub(crate) fn compared(&self, arm: usize) -> impl Iterator<Item = &'a Trial> {
        let is_compared = move |block: &&Vec<Option<&'a Trial>>| match arm {
            0 => block.iter().skip(1).any(Option::is_some),
            _ => block.first().is_some_and(Option::is_some),
        };
        self.blocks.values().filter(is_compared).filter_map(move |block| *block.get(arm)?)
    }

    /// ln(arm / baseline) of what `read` returns for both runs of a block, if both have it, and of the
    /// [`REFERENCE_COPY`] beside them. `read` returns numbers above zero.
    pub(crate) fn pairs(&self, arm: usize, read: impl Fn(&Trial) -> Option<f64>) -> Vec<Pair> {
        self.contrast(&[(arm, 1.0), (0, -1.0)], read)
    }

    /// Whether any arm is shown to change the [`REFERENCE_COPY`] beside the runs that `read` reads.
    pub(crate) fn copies(&self, read: impl Fn(&Trial) -> Option<f64>) -> Copies {
        let pairs: Vec<Vec<Pair>> = self.candidates().map(|arm| self.pairs(arm, &read)).collect();
        Copies::of(pairs.iter().map(Vec::as_slice))
    }
}

fn reference_copy(trial: &Trial) -> Option<f64> {
    let cost = trial.conditions.get(REFERENCE_COPY).copied();
    cost.filter(|cost| cost.is_finite() && *cost > 0.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::responses::for_ratio;
    use goodput_model::{BitRate, Known, Response};

    /// A run that counts.
    pub(crate) fn trial(block: u32, arm: usize, goodput: f64) -> Trial {
        Trial {
            cpu_s_per_gb: Known::Value(1.0),
            ..Trial::new(block, arm, Known::Value(BitRate(goodput)))
        }
    }

    fn log_ratios(trials: &[Trial], arm: usize, response: Response) -> Vec<f64> {
        Runs::of(trials, 3)
            .pairs(arm, for_ratio(response))
            .iter()
            .map(|pair| pair.log_ratio)
            .collect()
    }

    #[test]
    fn a_discarded_run_takes_only_its_own_pair_away() {
        let mut trials = vec![trial(1, 0, 10.0), trial(1, 1, 20.0), trial(1, 2, 40.0)];
        let discarded = Trial { discarded: Some("steal".into()), ..trial(2, 1, 1.0) };
        trials.extend([trial(2, 0, 10.0), discarded, trial(2, 2, 20.0), trial(3, 1, 10.0)]);
        trials.extend([trial(WARM_UP_BLOCK, 0, 10.0), trial(WARM_UP_BLOCK, 1, 10.0)]);
        assert_eq!(log_ratios(&trials, 1, Response::Throughput), [20f64.ln() - 10f64.ln()]);
        assert_eq!(log_ratios(&trials, 2, Response::Throughput).len(), 2);
        let compared = |arm| Runs::of(&trials, 3).compared(arm).count();
        assert_eq!((compared(0), compared(1), compared(2)), (2, 1, 2));
    }

    #[test]
    fn a_silent_run_is_a_finite_difference_and_two_are_none() {
        let trials = [trial(1, 0, 0.0), trial(1, 1, 1e9), trial(2, 0, 0.0), trial(2, 1, 0.0)];
        assert_eq!(log_ratios(&trials, 1, Response::Throughput), [1e9f64.ln(), 0.0]);
    }

    #[test]
    fn cost_is_compared_where_both_runs_have_one() {
        let unknown = Trial { cpu_s_per_gb: Known::missing("no clock"), ..trial(2, 1, 1.0) };
        let none = Trial { cpu_s_per_gb: Known::Value(0.0), ..trial(3, 1, 1.0) };
        let trials =
            [trial(1, 0, 1.0), trial(1, 1, 1.0), trial(2, 0, 1.0), unknown, trial(3, 0, 1.0), none];
        assert_eq!(log_ratios(&trials, 1, Response::Cpu), [0.0]);
    }
}
