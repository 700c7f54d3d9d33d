//! Whether the mechanism that the diagnosis named really changed: this turns a difference into a proof.

use std::collections::BTreeMap;

use goodput_model::{BitRate, Known, Mechanism, Trial, Verdict, median};

use crate::design::WARM_UP_BLOCK;
use crate::pairs::counts;

/// The median witness must fall by at least this share of its value: a smaller fall is not a different regime.
const MIN_FALL_SHARE: f64 = 0.10;

/// Highest probability that chance alone made the witness fall in this number of blocks.
const MAX_CHANCE_PROBABILITY: f64 = 0.05;

/// Number of the baseline among the arms.
const BASELINE: usize = 0;

/// What limits the baseline, or an arm that is worse, from the run that named it.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    rule: String,
    predicted_bits_per_s: Option<BitRate>,
    /// The arm that it limits.
    limits: usize,
    /// The block of the run that named it, which proves nothing.
    named_in: u32,
}

impl Suspect {
    /// Of the arm `limits`, by its first run: the warm-up, or without one the first run that counts. The runs that must
    /// prove the limit don't name it. `None` without such a run, or if nothing limited it.
    pub fn of(trials: &[Trial], limits: usize) -> Option<Self> {
        let is_whole = |trial: &&Trial| trial.block == WARM_UP_BLOCK || counts(trial);
        let of_arm = trials.iter().filter(|trial| trial.arm == limits);
        let first = of_arm
            .filter(|trial| trial.goodput_bits_per_s.value().is_some())
            .find(is_whole)
            .filter(|trial| trial.limit != Verdict::NO_LIMIT)?;
        Some(Self {
            rule: first.limit.clone(),
            predicted_bits_per_s: first.predicted_bits_per_s,
            limits,
            named_in: first.block,
        })
    }

    /// What `arm` changes: what limits the baseline, or if the arm `is_worse`, what limits the arm.
    pub fn beside(trials: &[Trial], arm: usize, is_worse: bool) -> Option<Self> {
        Self::of(trials, if is_worse { arm } else { BASELINE })
    }
}

/// How the suspect's witness differs between `arm` and the baseline. `None` if no run of the arm that the suspect does
/// not limit counts.
///
/// A witness falls when its cause is removed, for any rule. It moved if chance alone would make it lower in as many
/// blocks with probability at most .05 (one-sided sign test on the blocks in which both runs read it and it changed: 5
/// of 5, 7 of 8, 9 of 10), and its median is lower by a tenth or more. The change was reversed if the same holds for
/// the arm's runs beside the baseline's runs that directly followed them.
pub fn mechanism(trials: &[Trial], arm: usize, suspect: &Suspect) -> Option<Mechanism> {
    let proving: Vec<&Trial> =
        trials.iter().filter(|trial| trial.block != suspect.named_in).collect();
    let rule = suspect.rule.as_str();
    let limits_arm = suspect.limits == arm;
    let next_limit = usual_limit(&proving, if limits_arm { BASELINE } else { arm })?;
    let before = witnesses(&proving, BASELINE, rule);
    let after = witnesses(&proving, arm, rule);
    let pairs: Vec<(f64, f64)> =
        before.iter().filter_map(|(block, b)| Some((*b, *after.get(block)?))).collect();
    let falls = |of_both: Vec<(f64, f64)>| match limits_arm {
        true => {
            known_by_signs(&of_both.into_iter().map(|(base, arm)| (arm, base)).collect::<Vec<_>>())
        }
        false => known_by_signs(&of_both),
    };
    Some(Mechanism {
        rule: rule.into(),
        limits_arm,
        witness_before: median_of(&before, "baseline's"),
        witness_after: median_of(&after, "arm's"),
        moved: falls(pairs),
        next_limit,
        predicted_bits_per_s: suspect.predicted_bits_per_s,
        reversed: falls(followed_by_baseline(&proving, arm, rule)),
    })
}

/// The witness in each run of the baseline that directly followed a run of `arm`, and in this run of `arm`.
fn followed_by_baseline(trials: &[&Trial], arm: usize, rule: &str) -> Vec<(f64, f64)> {
    let witness = |trial: &Trial| {
        trial.witnesses.get(rule).copied().filter(|witness| counts(trial) && witness.is_finite())
    };
    let in_turn = trials.windows(2).filter(|two| two[0].arm == arm && two[1].arm == BASELINE);
    in_turn.filter_map(|two| Some((witness(two[1])?, witness(two[0])?))).collect()
}

/// The limit that the counted runs of `arm` name most often; of several, the first by name. `None` if no run counts,
/// or none has its own verdict.
fn usual_limit(trials: &[&Trial], arm: usize) -> Option<String> {
    let mut often: BTreeMap<&str, usize> = BTreeMap::new();
    let judged = |trial: &&&Trial| trial.arm == arm && counts(trial) && !trial.limit.is_empty();
    for trial in trials.iter().filter(judged) {
        *often.entry(&trial.limit).or_default() += 1;
    }
    let most = often.values().max().copied()?;
    often.into_iter().find(|(_, times)| *times == most).map(|(limit, _)| limit.to_string())
}

fn witnesses(trials: &[&Trial], arm: usize, rule: &str) -> BTreeMap<u32, f64> {
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

/// Whether the second of each pair is below the first by a tenth, and not by chance alone.
pub(crate) fn known_by_signs(pairs: &[(f64, f64)]) -> Known<bool> {
    let smallest_chance = 0.5f64.powi(pairs.len() as i32);
    if smallest_chance > MAX_CHANCE_PROBABILITY {
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
        (0..=blocks)
            .flat_map(|block| {
                let baseline = with(trial(block, 0, 1.0), before, "receive-window");
                let arm = with(trial(block, 1, 2.0), after(block), "line-rate");
                // Alternately AB, BA.
                if block.is_multiple_of(2) { [baseline, arm] } else { [arm, baseline] }
            })
            .collect()
    }

    fn suspect(rule: &str) -> Suspect {
        let predicted_bits_per_s = Some(BitRate(2.0));
        let (rule, limits) = (rule.into(), BASELINE);
        Suspect { rule, predicted_bits_per_s, limits, named_in: WARM_UP_BLOCK }
    }

    #[test]
    fn the_warm_up_names_the_rule_and_proves_nothing() {
        let mut trials = trials(6, 96.0, |_| 3.0);
        assert_eq!(Suspect::of(&trials, BASELINE).unwrap().named_in, WARM_UP_BLOCK);
        trials[0].limit = Verdict::NO_LIMIT.into();
        assert_eq!(Suspect::of(&trials, BASELINE), None, "later runs name nothing");
        // Without a warm-up the first block names the limit, and five are left for the proof.
        let without: Vec<Trial> = trials.into_iter().filter(|trial| trial.block > 0).collect();
        let named = Suspect::of(&without, BASELINE).unwrap();
        assert_eq!((named.rule.as_str(), named.named_in), ("receive-window", 1));
        let odd = |block| if block == 1 { 99.0 } else { 3.0 };
        let proof = super::tests::trials(6, 96.0, odd);
        assert_eq!(mechanism(&proof, 1, &named).unwrap().moved, Known::Value(true));
    }

    #[test]
    fn the_symptom_comes_back_with_the_baseline() {
        let all = mechanism(&trials(12, 96.0, |_| 3.0), 1, &suspect("receive-window")).unwrap();
        assert_eq!(all.reversed, Known::Value(true));
        assert_eq!(all.predicted_bits_per_s, Some(BitRate(2.0)));
        let few = mechanism(&trials(6, 96.0, |_| 3.0), 1, &suspect("receive-window")).unwrap();
        assert_eq!(few.reversed, Known::missing("3 pairs of runs are too few to decide"));
    }

    #[test]
    fn what_limits_a_worse_arm_is_proven_by_the_baseline_without_it() {
        let mut trials = trials(12, 3.0, |_| 96.0);
        for trial in &mut trials {
            trial.limit = ["line-rate", "receive-window"][trial.arm].into();
        }
        let suspect = Suspect::beside(&trials, 1, true).unwrap();
        let worse = mechanism(&trials, 1, &suspect).unwrap();
        assert_eq!((worse.rule.as_str(), worse.limits_arm), ("receive-window", true));
        assert_eq!(
            (worse.witness_before, worse.witness_after),
            (Known::Value(3.0), Known::Value(96.0))
        );
        assert_eq!((worse.moved, worse.reversed), (Known::Value(true), Known::Value(true)));
        assert_eq!(worse.next_limit, "line-rate");
        let same = super::tests::trials(12, 96.0, |_| 96.0);
        let same = mechanism(&same, 1, &Suspect { limits: 1, ..suspect }).unwrap();
        assert_eq!(same.moved, Known::Value(false));
    }

    #[test]
    fn a_witness_that_falls_everywhere_moved() {
        let trials = trials(6, 96.0, |_| 3.0);
        let mechanism = mechanism(&trials, 1, &suspect("receive-window")).unwrap();
        assert_eq!(mechanism.moved, Known::Value(true));
        assert_eq!(mechanism.witness_before, Known::Value(96.0));
        assert_eq!(mechanism.witness_after, Known::Value(3.0));
        assert_eq!(mechanism.next_limit, "line-rate");
    }

    #[test]
    fn a_little_lower_or_now_and_then_is_not_moved() {
        let moved =
            |trials: &[Trial]| mechanism(trials, 1, &suspect("receive-window")).unwrap().moved;
        assert_eq!(moved(&trials(10, 96.0, |_| 95.0)), Known::Value(false));
        assert_eq!(moved(&trials(10, 96.0, |_| 99.0)), Known::Value(false));
        let sometimes = |block| if block % 3 == 0 { 97.0 } else { 3.0 };
        assert_eq!(moved(&trials(10, 96.0, sometimes)), Known::Value(false));
        assert_eq!(moved(&trials(10, 0.0, |_| 0.0)), Known::Value(false));
    }

    #[test]
    fn too_few_pairs_and_no_witness_say_so() {
        let few = mechanism(&trials(4, 96.0, |_| 3.0), 1, &suspect("receive-window")).unwrap();
        assert_eq!(few.moved, Known::missing("4 pairs of runs are too few to decide"));
        let none = mechanism(&trials(6, 96.0, |_| 3.0), 1, &suspect("path-loss")).unwrap();
        assert!(none.witness_before.value().is_none() && none.moved.value().is_none());
        assert_eq!(mechanism(&[], 1, &suspect("receive-window")), None);
    }

    #[test]
    fn the_sign_test_has_its_known_probabilities() {
        assert_eq!(at_least_by_chance(5, 5), 1.0 / 32.0);
        assert_eq!(at_least_by_chance(7, 8), 9.0 / 256.0);
        assert_eq!(at_least_by_chance(0, 0), 1.0);
        assert!((at_least_by_chance(0, 9) - 1.0).abs() < 1e-12);
    }
}
