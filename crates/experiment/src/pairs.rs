//! Complete blocks, and the paired log-ratios of an arm against the baseline in them.

use std::collections::BTreeMap;

use goodput_model::Trial;

use crate::design::WARM_UP_BLOCK;

/// Rate that stands for a run in which nothing arrived, bit/s. The ratio needs a number there: one
/// bit per second is less than any run of seconds can tell from nothing, and keeps the sign and an
/// enormous but finite size. Two silent runs are no difference.
const SILENT_BITS_PER_S: f64 = 1.0;

/// One block in which every arm has a run that counts; indexed by arm.
pub(crate) type Block<'a> = Vec<&'a Trial>;

/// Whether a run counts: not of the warm-up, not discarded, its goodput a number.
pub(crate) fn counts(trial: &Trial) -> bool {
    let goodput = goodput(trial);
    trial.block != WARM_UP_BLOCK
        && trial.discarded.is_none()
        && goodput.is_finite()
        && goodput >= 0.0
}

/// Goodput of a run, bit/s; no number if it has none.
pub(crate) fn goodput(trial: &Trial) -> f64 {
    trial.goodput_bits_per_s.value().map_or(f64::NAN, |rate| rate.0)
}

/// The blocks in which all of `arms` count, in the order they were made. A block with a discarded
/// run is left out for every arm, so that all arms stand on the same blocks.
pub(crate) fn complete_blocks(trials: &[Trial], arms: usize) -> Vec<Block<'_>> {
    let mut blocks: BTreeMap<u32, Vec<Option<&Trial>>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| counts(trial)) {
        let block = blocks.entry(trial.block).or_insert_with(|| vec![None; arms]);
        if let Some(place) = block.get_mut(trial.arm) {
            place.get_or_insert(trial);
        }
    }
    blocks.into_values().filter_map(|block| block.into_iter().collect()).collect()
}

/// ln(arm / baseline) of the goodput in each block.
pub(crate) fn goodput_ratios(blocks: &[Block], arm: usize) -> Vec<f64> {
    let rate = |trial: &Trial| goodput(trial).max(SILENT_BITS_PER_S);
    blocks.iter().map(|block| rate(block[arm]).ln() - rate(block[0]).ln()).collect()
}

/// ln(arm / baseline) of the CPU cost in each block in which both are known and not zero.
pub(crate) fn cpu_ratios(blocks: &[Block], arm: usize) -> Vec<f64> {
    blocks.iter().filter_map(|block| Some(cpu(block[arm])?.ln() - cpu(block[0])?.ln())).collect()
}

/// CPU cost of a run. A cost of nothing is a clock too coarse to see it.
pub(crate) fn cpu(trial: &Trial) -> Option<f64> {
    trial.cpu_s_per_gb.value().copied().filter(|cost| cost.is_finite() && *cost > 0.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use goodput_model::{BitRate, Known};

    /// A run that counts.
    pub(crate) fn trial(block: u32, arm: usize, goodput: f64) -> Trial {
        Trial {
            block,
            arm,
            goodput_bits_per_s: Known::Value(BitRate(goodput)),
            cpu_s_per_gb: Known::Value(1.0),
            latency: None,
            limit: "none".into(),
            witnesses: BTreeMap::new(),
            discarded: None,
        }
    }

    #[test]
    fn a_block_with_a_discarded_run_is_left_out_for_every_arm() {
        let mut trials = vec![trial(1, 0, 10.0), trial(1, 1, 20.0), trial(2, 1, 20.0)];
        trials.push(Trial { discarded: Some("steal".into()), ..trial(2, 0, 1.0) });
        trials.push(trial(WARM_UP_BLOCK, 0, 10.0));
        trials.push(trial(WARM_UP_BLOCK, 1, 10.0));
        let blocks = complete_blocks(&trials, 2);
        assert_eq!(blocks.len(), 1);
        assert!((goodput_ratios(&blocks, 1)[0] - 2f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_silent_run_is_a_finite_difference_and_two_are_none() {
        let trials = [trial(1, 0, 0.0), trial(1, 1, 1e9), trial(2, 0, 0.0), trial(2, 1, 0.0)];
        let ratios = goodput_ratios(&complete_blocks(&trials, 2), 1);
        assert_eq!(ratios, [1e9f64.ln(), 0.0]);
    }

    #[test]
    fn cost_is_compared_where_both_runs_have_one() {
        let unknown = Trial { cpu_s_per_gb: Known::missing("no clock"), ..trial(2, 1, 1.0) };
        let none = Trial { cpu_s_per_gb: Known::Value(0.0), ..trial(3, 1, 1.0) };
        let trials =
            [trial(1, 0, 1.0), trial(1, 1, 1.0), trial(2, 0, 1.0), unknown, trial(3, 0, 1.0), none];
        assert_eq!(cpu_ratios(&complete_blocks(&trials, 2), 1), [0.0]);
    }
}
