//! Whether a run depends on its place among the runs of its block: a queue or a token bucket keeps what the run before left,
//! and a comparison assumes that runs start alike.
//!
//! The order within a block is random, so it and its reverse are equally likely. If runs don't depend on it, what a block rises
//! from run to run, aside from its arms, has a sign like a fair coin, whatever the noise has in common and however many arms
//! there are. So the exact signed-rank test of these rises is a test of the order (Fisher's randomization; `signed_rank`).
//! Arms are set aside by the median of averages of their own runs, which does not look at the order. Eight blocks that agree
//! suffice. The rank-sum test of an arm before and after the baseline, which was here first, needs ten, and a trial of tuning
//! has as few as six.

use std::collections::BTreeMap;

use goodput_model::{Response, Trial};

use crate::pairs::counts;
use crate::responses::for_ratio;
use crate::signed_rank::Ranked;

/// Chance of a doubt if runs don't depend on their order.
const LEVEL: f64 = 0.01;

/// A sentence for the record if runs of these comparisons, each by its trials in running order, depend on their order. A steady
/// drift of the path looks the same.
pub fn order_doubt<'a>(
    response: Response,
    comparisons: impl IntoIterator<Item = &'a [Trial]>,
) -> Option<String> {
    let rises: Vec<f64> = comparisons.into_iter().flat_map(|runs| rises(response, runs)).collect();
    let rise = Ranked::new(&rises)?.locate(LEVEL);
    let is_seen = rise.reaches_level && (rise.low > 0.0 || rise.high < 0.0);
    is_seen.then(|| {
        let (more, percent) = match rise.estimate > 0.0 {
            true => ("more", rise.estimate.exp_m1() * 100.0),
            false => ("less", -rise.estimate.exp_m1() * 100.0),
        };
        format!(
            "{response} depends on the order of the runs: a run has {percent:.1} % {more} than the one before it in its block \
             ({} blocks); runs are not independent of each other, so fewer differences are shown than there are; try longer runs",
            rises.len()
        )
    })
}

/// How much the logarithm of `response` rises from one run to the next in each block, aside from the arms.
fn rises(response: Response, trials: &[Trial]) -> Vec<f64> {
    let read = for_ratio(response);
    let mut blocks: BTreeMap<u32, Vec<(usize, f64)>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| counts(trial)) {
        let block = blocks.entry(trial.block).or_default();
        let is_first = block.iter().all(|(arm, _)| *arm != trial.arm);
        block.extend(read(trial).filter(|_| is_first).map(|value| (trial.arm, value.ln())));
    }
    blocks.retain(|_, runs| runs.len() > 1);
    let mut by_arm: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (arm, value) in blocks.values().flatten() {
        by_arm.entry(*arm).or_default().push(*value);
    }
    let middle = |values: &Vec<f64>| Some(Ranked::new(values)?.locate(LEVEL).estimate);
    let middles: BTreeMap<usize, f64> =
        by_arm.iter().filter_map(|(arm, values)| Some((*arm, middle(values)?))).collect();
    blocks.values().filter_map(|runs| rise(runs, &middles)).collect()
}

/// The slope of a line through the runs of a block, by least squares.
fn rise(runs: &[(usize, f64)], middles: &BTreeMap<usize, f64>) -> Option<f64> {
    // Twice the distance of a place from the middle one.
    let place = |index: usize| (2 * index) as f64 - (runs.len() - 1) as f64;
    let aside = runs.iter().map(|(arm, value)| Some(value - middles.get(arm)?));
    let values: Vec<f64> = aside.collect::<Option<_>>()?;
    let moment: f64 = values.iter().enumerate().map(|(index, value)| place(index) * value).sum();
    let spread: f64 = (0..runs.len()).map(|index| place(index).powi(2)).sum();
    Some(2.0 * moment / spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::seq::SliceRandom;
    use rand::{RngExt, SeedableRng};

    /// Blocks of these arms in random order; `goodput` is asked for a block, an arm and its place.
    fn runs(
        blocks: u32,
        arms: usize,
        seed: u64,
        mut goodput: impl FnMut(u32, usize, usize) -> f64,
    ) -> Vec<Trial> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut runs = Vec::new();
        for block in 1..=blocks {
            let mut order: Vec<usize> = (0..arms).collect();
            order.shuffle(&mut random);
            let placed = order.into_iter().enumerate();
            runs.extend(placed.map(|(place, arm)| trial(block, arm, goodput(block, arm, place))));
        }
        runs
    }

    fn doubt(trials: &[Trial]) -> Option<String> {
        order_doubt(Response::Throughput, [trials])
    }

    /// As measured at 198 kbit/s with a bucket of 16 kB (docs/decisions/comparing.md): a run that changed nothing began with
    /// what the one before had left.
    #[test]
    fn a_token_bucket_that_is_full_for_every_second_run_is_said() {
        let measured = [[160e3, 235e3], [130e3, 251e3]];
        let in_turn = |block: u32, arm: usize, gain: f64| {
            let (place, number) = ((block as usize + arm) % 2, block as usize / 2 % 2);
            (place, measured[number][place] * if arm == 1 { gain } else { 1.0 })
        };
        for gain in [1.0, 3.0] {
            let trials: Vec<Trial> = (1..=8)
                .flat_map(|block| {
                    let mut runs = [0, 1].map(|arm| (arm, in_turn(block, arm, gain)));
                    runs.sort_by_key(|(_, (place, _))| *place);
                    runs.map(|(arm, (_, goodput))| trial(block, arm, goodput))
                })
                .collect();
            let said = doubt(&trials).unwrap_or_default();
            assert!(said.contains("depends on the order of the runs: a run has "), "{said}");
            assert!(
                said.contains(" % more than the one before it in its block (8 blocks)"),
                "{said}"
            );
            assert_eq!(doubt(&trials[..12]), None, "six blocks show it to nobody");
            let halves = trials.split_at(8);
            assert!(order_doubt(Response::Throughput, [halves.0, halves.1]).is_some(), "together");
        }
    }

    #[test]
    fn it_is_seen_whatever_the_arms_do_and_however_many_there_are() {
        for arms in [2, 3, 5] {
            let trials = runs(20, arms, 7, |block, arm, place| {
                let noise = f64::from((block * 7 + arm as u32 * 5) % 11) * 0.01;
                10f64.powi(arm as i32) * 0.8f64.powi(place as i32) * (1.0 + noise)
            });
            let said = doubt(&trials).unwrap_or_default();
            assert!(said.contains(" % less than the one before it"), "{arms} arms: {said}");
        }
    }

    /// Noise with memory, and arms that differ: only the order must not matter.
    #[test]
    fn runs_that_do_not_depend_on_their_order_are_doubted_once_in_a_hundred() {
        const COMPARISONS: u64 = 1500;
        let is_doubted = |seed: &u64| {
            let mut noise = Xoshiro256PlusPlus::seed_from_u64(seed + 1_000_000);
            let (arms, mut level) = (2 + (seed % 3) as usize, 0.0f64);
            let trials = runs(12, arms, *seed, |_, arm, _| {
                level = 0.6 * level + noise.random::<f64>() - 0.5;
                (14.0 + arm as f64 + level).exp()
            });
            doubt(&trials).is_some()
        };
        let doubted = (0..COMPARISONS).filter(is_doubted).count();
        // The seeds are fixed. Of 1500 fair ones, more than 30 are doubted once in ten thousand times.
        assert!(doubted <= 30, "{doubted} of {COMPARISONS}");
    }

    #[test]
    fn runs_that_do_not_count_are_no_place() {
        let mut trials = runs(9, 2, 3, |_, _, place| [100.0, 150.0][place]);
        for trial in &mut trials[..4] {
            trial.discarded = Some("steal".into());
        }
        assert_eq!(rises(Response::Throughput, &trials).len(), 7);
        assert_eq!(rises(Response::Throughput, &trials[..2]), [0.0; 0]);
    }
}
