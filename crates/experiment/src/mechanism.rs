//! Whether the mechanism that the diagnosis named really moved: what makes a difference a proof.

use std::collections::BTreeMap;

use goodput_model::{Known, Mechanism, Trial, median};

use crate::pairs::counts;

/// The median witness must fall by at least this share of what it was: less is no other regime.
const MIN_FALL_SHARE: f64 = 0.10;

/// Highest probability that chance alone made the witness fall in this many blocks.
const MAX_CHANCE_PROBABILITY: f64 = 0.05;

/// What became of `rule`'s witness in `arm` against the baseline. `None` if no run of the arm
/// counts.
///
/// A witness falls when its cause is removed, whatever the rule. It moved if chance alone would make it fall
/// in as many blocks with probability .05 at most (one-sided sign test on the blocks in which both runs read
/// it and it changed: 5 of 5, 7 of 8, 9 of 10), and its median fell by a tenth or more.
pub fn mechanism(trials: &[Trial], arm: usize, rule: &str) -> Option<Mechanism> {
    let next_limit = usual_limit(trials, arm)?;
    let before = witnesses(trials, 0, rule);
    let after = witnesses(trials, arm, rule);
    let pairs: Vec<(f64, f64)> =
        before.iter().filter_map(|(block, b)| Some((*b, *after.get(block)?))).collect();
    Some(Mechanism {
        rule: rule.into(),
        witness_before: median_of(&before, "baseline's"),
        witness_after: median_of(&after, "arm's"),
        moved: moved(&pairs),
        next_limit,
    })
}

/// The limit that the counted runs of `arm` name most often; of several, the first by name.
/// `None` if no run counts.
pub(crate) fn usual_limit(trials: &[Trial], arm: usize) -> Option<String> {
    let mut often: BTreeMap<&str, usize> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.arm == arm && counts(trial)) {
        *often.entry(&trial.limit).or_default() += 1;
    }
    let most = often.values().max().copied()?;
    often.into_iter().find(|(_, times)| *times == most).map(|(limit, _)| limit.to_string())
}

fn witnesses(trials: &[Trial], arm: usize, rule: &str) -> BTreeMap<u32, f64> {
    let of_arm = trials.iter().filter(|trial| trial.arm == arm && counts(trial));
    of_arm
        .filter_map(|trial| Some((trial.block, *trial.witnesses.get(rule)?)))
        .filter(|(_, witness)| witness.is_finite())
        .collect()
}

fn median_of(witnesses: &BTreeMap<u32, f64>, whose: &str) -> Known<f64> {
    match median(witnesses.values().copied()) {
        Some(value) => Known::Value(value),
        None => Known::missing(format!("no counted {whose} run could read it")),
    }
}

fn moved(pairs: &[(f64, f64)]) -> Known<bool> {
    let most_telling = 0.5f64.powi(pairs.len() as i32);
    if most_telling > MAX_CHANCE_PROBABILITY {
        return Known::missing(format!("{} pairs of runs are too few to decide", pairs.len()));
    }
    let fell = pairs.iter().filter(|(before, after)| after < before).count();
    let changed = pairs.iter().filter(|(before, after)| after != before).count();
    let before = median(pairs.iter().map(|pair| pair.0)).unwrap_or(0.0);
    let after = median(pairs.iter().map(|pair| pair.1)).unwrap_or(0.0);
    let clear = before - after >= MIN_FALL_SHARE * before.abs();
    Known::Value(clear && at_least_by_chance(fell, changed) <= MAX_CHANCE_PROBABILITY)
}

/// Probability of at least `heads` heads in `tosses` tosses of a fair coin.
fn at_least_by_chance(heads: usize, tosses: usize) -> f64 {
    let mut exactly = 0.5f64.powi(tosses as i32);
    let mut sum = 0.0;
    // From all heads downwards: C(n, k-1) = C(n, k) k / (n - k + 1).
    for k in (heads..=tosses).rev() {
        sum += exactly;
        exactly *= k as f64 / (tosses - k + 1) as f64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;

    fn trials(blocks: u32, before: f64, after: impl Fn(u32) -> f64) -> Vec<Trial> {
        let with = |mut trial: Trial, witness: f64, limit: &str| {
            trial.witnesses.insert("receive-window".into(), witness);
            trial.limit = limit.into();
            trial
        };
        (1..=blocks)
            .flat_map(|block| {
                let baseline = with(trial(block, 0, 1.0), before, "receive-window");
                [baseline, with(trial(block, 1, 2.0), after(block), "line-rate")]
            })
            .collect()
    }

    #[test]
    fn a_witness_that_falls_everywhere_moved() {
        let trials = trials(6, 96.0, |_| 3.0);
        let mechanism = mechanism(&trials, 1, "receive-window").unwrap();
        assert_eq!(mechanism.moved, Known::Value(true));
        assert_eq!(mechanism.witness_before, Known::Value(96.0));
        assert_eq!(mechanism.witness_after, Known::Value(3.0));
        assert_eq!(mechanism.next_limit, "line-rate");
    }

    #[test]
    fn a_little_lower_or_now_and_then_is_not_moved() {
        let moved = |trials: &[Trial]| mechanism(trials, 1, "receive-window").unwrap().moved;
        assert_eq!(moved(&trials(10, 96.0, |_| 95.0)), Known::Value(false));
        assert_eq!(moved(&trials(10, 96.0, |_| 99.0)), Known::Value(false));
        let sometimes = |block| if block % 3 == 0 { 97.0 } else { 3.0 };
        assert_eq!(moved(&trials(10, 96.0, sometimes)), Known::Value(false));
        assert_eq!(moved(&trials(10, 0.0, |_| 0.0)), Known::Value(false));
    }

    #[test]
    fn too_few_pairs_and_no_witness_say_so() {
        let few = mechanism(&trials(4, 96.0, |_| 3.0), 1, "receive-window").unwrap();
        assert_eq!(few.moved, Known::missing("4 pairs of runs are too few to decide"));
        let none = mechanism(&trials(6, 96.0, |_| 3.0), 1, "path-loss").unwrap();
        assert!(none.witness_before.value().is_none() && none.moved.value().is_none());
        assert_eq!(mechanism(&[], 1, "receive-window"), None);
    }

    #[test]
    fn the_sign_test_has_its_known_probabilities() {
        assert_eq!(at_least_by_chance(5, 5), 1.0 / 32.0);
        assert_eq!(at_least_by_chance(7, 8), 9.0 / 256.0);
        assert_eq!(at_least_by_chance(0, 0), 1.0);
        assert!((at_least_by_chance(0, 9) - 1.0).abs() < 1e-12);
    }
}
