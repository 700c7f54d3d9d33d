//! Whether the mechanism that the diagnosis named really changed: this turns a difference into a proof.
//!
//! A cause that is removed is seen by its witness, the number that falls with any cause. A cause that goes on limiting,
//! but lets more through (a larger window, a higher rate), has the same witness as before. It is seen by its amount: the
//! amount and the goodput rise together.

use std::collections::BTreeMap;

use goodput_model::{
    AmountChange, BitRate, Known, LimitAmount, Mechanism, Trial, Verdict, WitnessCount, median,
};

use crate::counts::{chance_of_fall, pooled};
use crate::design::WARM_UP_BLOCK;
use crate::pairs::{counts, goodput};

/// The median witness must fall by at least this share of its value: a smaller fall is not a different regime.
const MIN_FALL_SHARE: f64 = 0.10;

/// The same for amounts, of which any rise is one.
const ANY_SHARE: f64 = 0.0;

/// Highest probability that chance alone made a number fall in this many blocks.
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

    /// The cause for which a change was proposed: no run of the comparison named it, so that all of them may prove it.
    pub fn proposed(rule: &str) -> Self {
        let (limits, named_in) = (BASELINE, WARM_UP_BLOCK);
        Self { rule: rule.into(), predicted_bits_per_s: None, limits, named_in }
    }

    /// What `arm` changes: what limits the baseline, or if the arm `is_worse`, what limits the arm.
    pub fn beside(trials: &[Trial], arm: usize, is_worse: bool) -> Option<Self> {
        Self::of(trials, if is_worse { arm } else { BASELINE })
    }
}

/// How the suspect's witness and its amount differ between `arm` and the baseline. `None` if no run of the arm that the
/// suspect does not limit counts.
///
/// A witness falls when its cause is removed, for any rule. It moved if chance alone would make it lower in as many
/// blocks with probability at most .05 (one-sided sign test on the blocks in which both runs read it and it changed: 5
/// of 5, 7 of 8, 9 of 10), and its median is lower by a tenth or more. A witness that counts events is judged by all events
/// of these runs together instead, at the same level. An amount moved if by the same test both it and
/// the goodput are higher. The change was reversed if the same holds for the arm's runs beside the baseline's runs that
/// directly followed them.
pub fn mechanism(trials: &[Trial], arm: usize, suspect: &Suspect) -> Option<Mechanism> {
    let (rule, sides) = (suspect.rule.as_str(), Sides::of(trials, arm, suspect));
    let next_limit = sides.usual_limit(sides.free())?;
    let moved = sides.witness_falls(rule, Paired::InBlocks);
    let amount = if next_limit == rule { sides.amount(rule) } else { None };
    let rose = amount.as_ref().is_some_and(|amount| amount.moved == Known::Value(true));
    let (predicted_bits_per_s, reversed) = match rose && moved != Known::Value(true) {
        true => (sides.in_proportion(rule), sides.rises_with_goodput(rule, Paired::InTurn)),
        false => (sides.predicted(suspect), sides.witness_falls(rule, Paired::InTurn)),
    };
    let [before, after] = sides.witnesses(rule);
    Some(Mechanism {
        rule: rule.into(),
        limits_arm: sides.limited == arm,
        witness_before: known(before, "baseline's"),
        witness_after: known(after, "arm's"),
        moved,
        amount,
        next_limit,
        predicted_bits_per_s,
        reversed,
    })
}

fn known(witness: Option<f64>, whose: &str) -> Known<f64> {
    let unread = || Known::missing(format!("no counted {whose} run could read it"));
    witness.map_or_else(unread, Known::Value)
}

/// What is read of a run.
type Read<'r, T = f64> = &'r dyn Fn(&Trial) -> Option<T>;

/// Which runs of the two sides belong together.
#[derive(Clone, Copy)]
enum Paired {
    /// Those of one block.
    InBlocks,
    /// A run of the arm and the run of the baseline that directly followed it.
    InTurn,
}

/// The runs that may prove the limit: those of the baseline and of one arm, one of which it limits.
struct Sides<'a> {
    /// In their order, with those of other arms and those that don't count.
    trials: Vec<&'a Trial>,
    arm: usize,
    /// The one of the two that is limited, or limited more.
    limited: usize,
}

impl<'a> Sides<'a> {
    fn of(trials: &'a [Trial], arm: usize, suspect: &Suspect) -> Self {
        let proves = |trial: &&Trial| trial.block != suspect.named_in;
        Self { trials: trials.iter().filter(proves).collect(), arm, limited: suspect.limits }
    }

    /// The other one of the two.
    fn free(&self) -> usize {
        if self.limited == self.arm { BASELINE } else { self.arm }
    }

    fn runs_of(&self, arm: usize) -> impl Iterator<Item = &'a Trial> {
        self.trials.iter().copied().filter(move |trial| trial.arm == arm && counts(trial))
    }

    /// The limit that the runs of `arm` name most often; of several, the first by name. `None` without a run that has
    /// its own verdict.
    fn usual_limit(&self, arm: usize) -> Option<String> {
        let mut often: BTreeMap<&str, usize> = BTreeMap::new();
        for trial in self.runs_of(arm).filter(|trial| !trial.limit.is_empty()) {
            *often.entry(&trial.limit).or_default() += 1;
        }
        let most = often.values().max().copied()?;
        often.into_iter().find(|(_, times)| *times == most).map(|(limit, _)| limit.to_string())
    }

    /// What `read` returns for the limited run and the other run of each pair of runs that count.
    fn pairs<T: Copy>(&self, paired: Paired, read: Read<'_, T>) -> Vec<(T, T)> {
        match paired {
            Paired::InBlocks => self.of_blocks(read),
            Paired::InTurn => self.when_followed(read),
        }
    }

    fn of_blocks<T: Copy>(&self, read: Read<'_, T>) -> Vec<(T, T)> {
        let by_block = |arm| -> BTreeMap<u32, T> {
            let read = |trial: &Trial| Some((trial.block, read(trial)?));
            self.runs_of(arm).filter_map(read).collect()
        };
        let free = by_block(self.free());
        let limited = by_block(self.limited).into_iter();
        limited.filter_map(|(block, limited)| Some((limited, *free.get(&block)?))).collect()
    }

    fn when_followed<T: Copy>(&self, read: Read<'_, T>) -> Vec<(T, T)> {
        let in_turn =
            self.trials.windows(2).filter(|two| two[0].arm == self.arm && two[1].arm == BASELINE);
        let read = |trial: &Trial| read(trial).filter(|_| counts(trial));
        let both = |two: &[&Trial]| Some((read(two[0])?, read(two[1])?));
        let ordered =
            |(arm, base)| if self.limited == self.arm { (arm, base) } else { (base, arm) };
        in_turn.filter_map(both).map(ordered).collect()
    }

    /// The rule's witness in the runs of the baseline and of the arm: that of all their events if each of these runs
    /// counted, otherwise the median in both. One of each would differ without any change.
    fn witnesses(&self, rule: &str) -> [Option<f64>; 2] {
        let arms = [BASELINE, self.arm];
        let counted = |trial: &Trial| trial.witness_counts.get(rule).copied();
        let together = arms.map(|arm| {
            let events: Option<Vec<WitnessCount>> = self.runs_of(arm).map(counted).collect();
            events.as_deref().and_then(pooled)
        });
        if together.iter().all(Option::is_some) {
            return together;
        }
        arms.map(|arm| self.median(arm, &|trial| value_of(rule, trial)))
    }

    /// Whether the rule's witness is lower where the rule does not limit.
    fn witness_falls(&self, rule: &str, paired: Paired) -> Known<bool> {
        let values = self.pairs(paired, &|trial| value_of(rule, trial));
        let events = self.pairs(paired, &|trial| trial.witness_counts.get(rule).copied());
        match events.len() == values.len() {
            true => events_fall(&events),
            false => falls(&values, MIN_FALL_SHARE),
        }
    }

    fn median(&self, arm: usize, read: Read<'_>) -> Option<f64> {
        median(self.runs_of(arm).filter_map(|trial| counted(read, trial)))
    }

    /// How the amount of the rule's cause differs, in the runs that the rule limits.
    fn amount(&self, rule: &str) -> Option<AmountChange> {
        let named = self.trials.iter().find_map(|trial| of_limit(rule, trial))?;
        let value: Read<'_> = &|trial| of_limit(rule, trial).map(|amount| amount.value);
        Some(AmountChange {
            name: named.name.clone(),
            before: self.median(BASELINE, value)?,
            after: self.median(self.arm, value)?,
            moved: self.rises_with_goodput(rule, Paired::InBlocks),
        })
    }

    /// Whether both the amount and the goodput are higher where the rule limits less, in these pairs of runs.
    fn rises_with_goodput(&self, rule: &str, paired: Paired) -> Known<bool> {
        let rises = |read: Read<'_>| {
            let pairs = self.pairs(paired, &|trial| counted(read, trial)).into_iter();
            let limited_last = pairs.map(|(limited, free)| (free, limited));
            falls(&limited_last.collect::<Vec<_>>(), ANY_SHARE)
        };
        let amount = rises(&|trial: &Trial| of_limit(rule, trial).map(|amount| amount.value));
        let goodput = rises(&|trial: &Trial| of_limit(rule, trial).map(|_| goodput(trial)));
        match (amount, goodput) {
            (Known::Value(amount), Known::Value(goodput)) => Known::Value(amount && goodput),
            (missing @ Known::Missing(_), _) | (_, missing) => missing,
        }
    }

    /// Goodput without the limit, bits per second: the median of what the limited runs predict that name it, or what
    /// the run predicted that named it first. A single run may be slow, and so predict less than the others reach with
    /// the limit: this says nothing about a path without the limit. Then there is no prediction.
    fn predicted(&self, suspect: &Suspect) -> Option<BitRate> {
        let of_runs: Read<'_> = &|trial| {
            trial.predicted_bits_per_s.filter(|_| trial.limit == suspect.rule).map(|rate| rate.0)
        };
        let of_runs = self.median(self.limited, of_runs).map(BitRate);
        let limited = self.median(self.limited, &|trial| Some(goodput(trial)))?;
        of_runs.or(suspect.predicted_bits_per_s).filter(|rate| rate.0 >= limited)
    }

    /// Goodput of the limited runs, bits per second, in proportion to the amount of the others; `None` if it is not in
    /// proportion.
    fn in_proportion(&self, rule: &str) -> Option<BitRate> {
        let mut amounts = self.trials.iter().filter_map(|trial| of_limit(rule, trial));
        let is_proportional = amounts.next().is_some_and(|amount| amount.is_proportional);
        let value: Read<'_> = &|trial| of_limit(rule, trial).map(|amount| amount.value);
        let limited = self.median(self.limited, &|trial| value(trial).map(|_| goodput(trial)))?;
        let ratio = self.median(self.free(), value)? / self.median(self.limited, value)?;
        Some(BitRate(limited * ratio)).filter(|rate| is_proportional && rate.0.is_finite())
    }
}

/// The amount of the rule's cause in a run that this rule limits.
fn of_limit<'t>(rule: &str, trial: &'t Trial) -> Option<&'t LimitAmount> {
    trial.amount.as_ref().filter(|_| trial.limit == rule)
}

/// What the rule's witness was in a run, if it is a number.
fn value_of(rule: &str, trial: &Trial) -> Option<f64> {
    trial.witnesses.get(rule).copied().filter(|value| value.is_finite())
}

/// What `read` returns for a run that counts, if it is a number.
fn counted(read: Read<'_>, trial: &Trial) -> Option<f64> {
    read(trial).filter(|value| counts(trial) && value.is_finite())
}

/// Whether the second of each pair is clearly below the first, and not by chance alone.
pub(crate) fn clearly_falls(pairs: &[(f64, f64)]) -> Known<bool> {
    falls(pairs, MIN_FALL_SHARE)
}

/// The same, if the medians differ by at least this share.
fn falls(pairs: &[(f64, f64)], least_share: f64) -> Known<bool> {
    if let Some(too_few) = too_few(pairs.len()) {
        return too_few;
    }
    let fell = pairs.iter().filter(|(before, after)| after < before).count();
    let changed = pairs.iter().filter(|(before, after)| after != before).count();
    let before = median(pairs.iter().map(|pair| pair.0)).unwrap_or(0.0);
    let after = median(pairs.iter().map(|pair| pair.1)).unwrap_or(0.0);
    let clear = before - after >= least_share * before.abs();
    Known::Value(clear && at_least_by_chance(fell, changed) <= MAX_CHANCE_PROBABILITY)
}

/// The same for events: whether those of the second of each pair are clearly fewer, all together.
fn events_fall(pairs: &[(WitnessCount, WitnessCount)]) -> Known<bool> {
    if let Some(too_few) = too_few(pairs.len()) {
        return too_few;
    }
    let (limited, free): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let (before, after) = (pooled(&limited).unwrap_or(0.0), pooled(&free).unwrap_or(0.0));
    let clear = before - after >= MIN_FALL_SHARE * before;
    Known::Value(clear && chance_of_fall(&limited, &free) <= MAX_CHANCE_PROBABILITY)
}

/// The answer if chance alone could make a number fall in so few pairs.
fn too_few(pairs: usize) -> Option<Known<bool>> {
    let smallest_chance = 0.5f64.powi(pairs as i32);
    let words = || match pairs {
        0 => "no run could read what shows it".into(),
        1 => "1 pair of runs is too few to decide".into(),
        n => format!("{n} pairs of runs are too few to decide"),
    };
    (smallest_chance > MAX_CHANCE_PROBABILITY).then(|| Known::missing(words()))
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

    /// Runs that the receiver's window limits for 98 % of the time, whatever its size is: the baseline's 64 KiB, and this
    /// one in the arm.
    fn windows(arm: impl Fn(u32) -> f64, goodput: impl Fn(f64) -> f64) -> Vec<Trial> {
        let of = |block, number, bytes: f64| {
            let mut run = trial(block, number, goodput(bytes));
            run.witnesses.insert("receive-window".into(), 98.0);
            let (name, value) = ("receive_window_bytes".into(), bytes);
            run.amount = Some(LimitAmount { name, value, is_proportional: true });
            Trial { limit: "receive-window".into(), ..run }
        };
        let both = |block| {
            let two = [of(block, 0, 65_536.0), of(block, 1, arm(block))];
            if block % 2 == 0 { two } else { [two[1].clone(), two[0].clone()] }
        };
        (0..=12).flat_map(both).collect()
    }

    #[test]
    fn a_larger_window_that_still_limits_is_confirmed_by_its_size() {
        let of = |trials: &[Trial]| mechanism(trials, 1, &suspect("receive-window")).unwrap();
        let larger = of(&windows(|_| 262_144.0, |bytes| bytes * 100.0));
        assert_eq!(larger.moved, Known::Value(false), "a share of time says nothing here");
        assert_eq!(larger.confirmed(), &Known::Value(true));
        let amount = larger.amount.unwrap();
        assert_eq!((amount.before, amount.after), (65_536.0, 262_144.0));
        let predicted = larger.predicted_bits_per_s;
        assert_eq!(predicted, Some(BitRate(26_214_400.0)), "four times as much");
        assert_eq!(larger.reversed, Known::Value(true));
        assert_eq!(larger.next_limit, "receive-window");
    }

    #[test]
    fn an_amount_without_goodput_and_a_goodput_without_the_amount_confirm_nothing() {
        let of = |trials: &[Trial]| mechanism(trials, 1, &suspect("receive-window")).unwrap();
        let no = Known::Value(false);
        assert_eq!(of(&windows(|_| 262_144.0, |_| 6e6)).confirmed(), &no);
        assert_eq!(of(&windows(|_| 65_536.0, |_| 6e6)).confirmed(), &no);
        let sometimes = |block| if block % 3 == 0 { 32_768.0 } else { 131_072.0 };
        assert_eq!(of(&windows(sometimes, |bytes| bytes * 100.0)).confirmed(), &no);
        let mut others = windows(|_| 262_144.0, |bytes| bytes * 100.0);
        others.iter_mut().filter(|run| run.arm == 1).for_each(|run| run.limit = "startup".into());
        let other = of(&others);
        assert_eq!((other.amount.as_ref(), other.confirmed()), (None, &no));
    }

    #[test]
    fn a_smaller_window_explains_a_worse_arm() {
        let trials = windows(|_| 16_384.0, |bytes| bytes * 100.0);
        let suspect = Suspect::beside(&trials, 1, true).unwrap();
        let worse = mechanism(&trials, 1, &suspect).unwrap();
        assert_eq!((worse.limits_arm, worse.confirmed()), (true, &Known::Value(true)));
        assert_eq!(worse.predicted_bits_per_s, Some(BitRate(6_553_600.0)), "the baseline's");
        assert_eq!(worse.reversed, Known::Value(true));
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
    fn a_witness_of_few_events_is_judged_by_all_of_them() {
        let drops = [2.0, 0.0, 1.0, 0.0, 3.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 1.0, 2.0];
        let made = |arm: fn(f64) -> f64, has_count: fn(&Trial) -> bool| {
            let mut trials = trials(12, 0.0, |_| 0.0);
            for trial in &mut trials {
                let events = drops[trial.block as usize];
                let events = if trial.arm == 0 { events } else { arm(events) };
                let count = WitnessCount { events, of: 4000.0, per: 100.0 };
                trial.witnesses.insert("queue-too-short".into(), events / 40.0);
                if has_count(trial) {
                    trial.witness_counts.insert("queue-too-short".into(), count);
                }
                trial.limit = ["queue-too-short", "line-rate"][trial.arm].into();
            }
            mechanism(&trials, 1, &suspect("queue-too-short")).unwrap()
        };
        let gone = made(|_| 0.0, |_| true);
        assert_eq!(gone.moved, Known::Value(true));
        assert_eq!(gone.witness_before, Known::Value(100.0 * 10.0 / 48_000.0), "all runs together");
        assert_eq!(gone.witness_after, Known::Value(0.0));
        assert_eq!(made(|events| events, |_| true).moved, Known::Value(false));
        let median = made(|_| 0.0, |_| false).witness_before;
        assert_ne!(median, gone.witness_before, "without counts, the median");
        let half = made(|_| 0.0, |trial| trial.arm == 0 || trial.block > 3).witness_before;
        assert_eq!(half, median, "some runs of the arm have no count: both are medians");
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
