//! What a reader of a comparison should know beside its numbers.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::{Judgement, Trial};

use crate::analyse::analyse;
use crate::design::{Design, WARM_UP_BLOCK};
use crate::looks::Looks;
use crate::pairs::counts;

/// Doubts about a comparison, one sentence each, for the record: runs that do not count and why,
/// runs in which nothing arrived, too few blocks, and how many more an open arm would need.
pub fn doubts(design: &Design, trials: &[Trial]) -> Vec<String> {
    let mut doubts = discards(trials);
    doubts.extend(silent(trials));
    doubts.extend(open_arms(design, trials));
    doubts
}

fn discards(trials: &[Trial]) -> Vec<String> {
    let mut blocks: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.block != WARM_UP_BLOCK && !counts(trial)) {
        let why = trial.discarded.as_deref().unwrap_or("its goodput is not a number");
        blocks.entry(why).or_default().insert(trial.block);
    }
    let sentence = |(why, blocks): (&str, BTreeSet<u32>)| match blocks.len() {
        1 => format!("1 block does not count: {why}"),
        n => format!("{n} blocks do not count: {why}"),
    };
    blocks.into_iter().map(sentence).collect()
}

fn silent(trials: &[Trial]) -> Option<String> {
    let is_silent = |trial: &&Trial| counts(trial) && trial.goodput_bits_per_s.0 == 0.0;
    match trials.iter().filter(is_silent).count() {
        0 => None,
        n => Some(format!("in {n} of the runs nothing arrived; in ratios they stand as 1 bit/s")),
    }
}

fn open_arms(design: &Design, trials: &[Trial]) -> Vec<String> {
    let complete = design.complete(trials);
    let first = Looks::for_arms(design.arms).first();
    if complete < first {
        return vec![format!(
            "{complete} blocks count, and fewer than {first} can't show anything: allow more time"
        )];
    }
    let arms = analyse(design, trials).into_iter().enumerate();
    let open = arms.filter(|(_, arm)| {
        arm.goodput.as_ref().is_some_and(|effect| effect.judgement == Judgement::Inconclusive)
    });
    open.map(|(number, arm)| match arm.more_blocks {
        Some(more) => format!("arm {number} is open; about {more} more blocks would decide it"),
        None => format!("arm {number} is too near the threshold for any number of blocks"),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;

    #[test]
    fn discards_silence_and_shortage_are_told() {
        let mut trials = vec![trial(1, 0, 0.0), trial(1, 1, 10.0), trial(2, 0, 10.0)];
        trials.push(Trial { discarded: Some("the peer left".into()), ..trial(2, 1, 0.0) });
        trials.push(Trial { discarded: Some("warm-up".into()), ..trial(WARM_UP_BLOCK, 0, 1.0) });
        assert_eq!(
            doubts(&Design::default(), &trials),
            [
                "1 block does not count: the peer left",
                "in 1 of the runs nothing arrived; in ratios they stand as 1 bit/s",
                "1 blocks count, and fewer than 6 can't show anything: allow more time",
            ]
        );
    }

    #[test]
    fn a_clean_comparison_leaves_no_doubt_and_an_open_one_says_what_it_needs() {
        let run = |arm_1: fn(u32) -> f64| -> Vec<Trial> {
            (1..=6).flat_map(|b| [trial(b, 0, 100.0), trial(b, 1, arm_1(b))]).collect()
        };
        assert!(doubts(&Design::default(), &run(|_| 150.0)).is_empty());
        let open = doubts(&Design::default(), &run(|block| 100.0 + 9.0 * f64::from(block % 3)));
        assert!(open[0].starts_with("arm 1 is open; about "), "{open:?}");
    }
}
