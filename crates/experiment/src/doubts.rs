//! What a reader of a comparison should know besides its numbers.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::{ArmResult, Comparison, Effect, Judgement, Trial};

use crate::analyse::analyse;
use crate::checks::checks;
use crate::design::{Design, WARM_UP_BLOCK};
use crate::next_step::StopReason;
use crate::pairs::{counts, goodput};
use crate::starting::counts_in_slow_start;

/// Doubts about a comparison, one sentence each, for the record: runs that do not count and why,
/// runs in which nothing arrived, too few blocks, and the needs of an undecided arm.
pub fn doubts(design: &Design, comparison: &Comparison) -> Vec<String> {
    let mut doubts = discards(&comparison.trials);
    doubts.extend(silent(&comparison.trials));
    doubts.extend(checks(design, &comparison.trials));
    doubts.extend(placebo(comparison));
    doubts.extend(starting(&comparison.trials));
    let of_arms = || comparison.arms.iter().skip(1).map(|arm| arm.n as u32);
    let (complete, first) = (of_arms().min().unwrap_or(0), design.looks().first());
    // More time would not help a comparison that was interrupted or that failed.
    let was_over = comparison.stopped == StopReason::OutOfTime.to_string();
    let advice = if was_over { ": allow more time" } else { "" };
    let are_alike = of_arms().max() == Some(complete);
    if are_alike && complete < first {
        let made = match complete {
            0 => "no block is complete".into(),
            1 => "only 1 block is complete".into(),
            n => format!("only {n} blocks are complete"),
        };
        doubts.push(format!("{made}, and it takes {first} to show anything{advice}"));
    } else if complete < first {
        doubts.push(format!("not judged: {}{advice}", unjudged(comparison, first)));
    }
    if of_arms().any(|n| n >= first) {
        doubts.extend(open_arms(design, comparison));
    }
    doubts
}

/// The arms that have not come to their first look, with the runs that they have.
fn unjudged(comparison: &Comparison, first: u32) -> String {
    let arms = comparison.arms.iter().enumerate().skip(1);
    let short = arms.filter(|(_, arm)| (arm.n as u32) < first).map(|(number, arm)| {
        let name = named(comparison, number);
        match arm.n {
            0 => format!("{name} ({})", comparison.why_unjudged(number)),
            n => format!("{name} ({n} of {first} blocks)"),
        }
    });
    short.collect::<Vec<_>>().join("; ")
}

fn discards(trials: &[Trial]) -> Vec<String> {
    let mut blocks: BTreeMap<&str, BTreeSet<(u32, usize)>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.block != WARM_UP_BLOCK && !counts(trial)) {
        let why = trial.discarded.as_deref().unwrap_or("its goodput is not a number");
        blocks.entry(why).or_default().insert((trial.block, trial.arm));
    }
    let good: BTreeSet<(u32, usize)> =
        trials.iter().filter(|trial| counts(trial)).map(|trial| (trial.block, trial.arm)).collect();
    let sentences = |(why, runs): (&str, BTreeSet<(u32, usize)>)| {
        let (repeated, lost): (BTreeSet<_>, BTreeSet<_>) =
            runs.into_iter().partition(|run| good.contains(run));
        let said = [(repeated, "a run was repeated"), (lost, "a run does not count")];
        let said = said.into_iter().filter_map(|(runs, what)| match blocks_of(runs) {
            0 => None,
            1 => Some(format!("in 1 block {what}: {why}")),
            n => Some(format!("in {n} blocks {what}: {why}")),
        });
        said.collect::<Vec<_>>()
    };
    blocks.into_iter().flat_map(sentences).collect()
}

fn blocks_of(runs: BTreeSet<(u32, usize)>) -> usize {
    runs.into_iter().map(|(block, _)| block).collect::<BTreeSet<_>>().len()
}

/// An arm with the baseline's values must have no effect.
fn placebo(comparison: &Comparison) -> Option<String> {
    let base = comparison.arms.first()?;
    let differs = |arm: &&ArmResult| {
        let judgement = arm.primary().map(|effect| effect.judgement);
        let is_quiet =
            matches!(judgement, None | Some(Judgement::NoDifference | Judgement::Inconclusive));
        arm.values == base.values && !is_quiet
    };
    comparison.arms.iter().skip(1).find(differs).map(|_| {
        "the baseline that ran again (--placebo) seems to differ from itself: something other than the settings changes between the runs"
            .into()
    })
}

/// A change of slow start may be what is compared, so such runs count.
fn starting(trials: &[Trial]) -> Option<String> {
    counts_in_slow_start(trials).then(|| {
        "most runs were mostly slow start: they compare how a transfer begins; a longer -t compares what it reaches"
            .into()
    })
}

fn silent(trials: &[Trial]) -> Option<String> {
    let is_silent = |trial: &&Trial| counts(trial) && goodput(trial) == 0.0;
    match trials.iter().filter(is_silent).count() {
        0 => None,
        1 => Some("nothing arrived in 1 run; ratios count it as 1 bit/s".into()),
        n => Some(format!("nothing arrived in {n} runs; ratios count them as 1 bit/s")),
    }
}

/// What the arms need that were judged, and left undecided.
fn open_arms(design: &Design, comparison: &Comparison) -> Vec<String> {
    let (first, last) = (design.looks().first(), design.looks().last());
    let sentence = |(arm, analysis): (usize, crate::ArmAnalysis)| {
        let primary = analysis.responses.first()?.against.as_ref();
        let is_open =
            |e: &&Effect| e.judgement == Judgement::Inconclusive && analysis.n as u32 >= first;
        let effect = primary.filter(is_open)?;
        let name = named(comparison, arm);
        Some(match analysis.more_blocks {
            None => {
                format!(
                    "{name}: too close to zero and to the threshold for any number of blocks to decide"
                )
            }
            Some(more) if effect.n as u32 + more > last => format!(
                "{name}: about {} blocks would decide it, more than a comparison runs; try longer runs, a quieter time or \
                 a larger threshold",
                effect.n as u32 + more
            ),
            Some(1) => format!("{name}: about one more block would decide it"),
            Some(more) => format!("{name}: about {more} more blocks would decide it"),
        })
    };
    analyse(design, &comparison.trials).into_iter().enumerate().filter_map(sentence).collect()
}

/// An arm by its values; the baseline that runs as an arm of its own has the same ones.
fn named(comparison: &Comparison, arm: usize) -> String {
    let values = |arm: usize| comparison.arms.get(arm).map(|arm| arm.values.join(", "));
    let again = if arm > 0 && values(arm) == values(0) { " again" } else { "" };
    values(arm).unwrap_or_default() + again
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::conclude;
    use crate::pairs::tests::trial;

    fn of(trials: Vec<Trial>) -> Vec<String> {
        let values = vec![vec!["off".into()], vec!["on".into()]];
        let design = Design::default();
        let stopped = StopReason::OutOfTime.to_string();
        doubts(&design, &conclude(vec![], values, &design, trials, &stopped))
    }

    #[test]
    fn more_time_is_asked_for_only_if_the_time_was_over() {
        let values = vec![vec!["off".into()], vec!["on".into()]];
        let design = Design::default();
        let doubts = |stopped: &str| {
            doubts(&design, &conclude(vec![], values.clone(), &design, vec![], stopped)).remove(0)
        };
        assert!(doubts("the time limit was reached").ends_with(": allow more time"));
        assert!(doubts("it was interrupted").ends_with("to show anything"));
    }

    #[test]
    fn a_run_that_was_made_again_is_reported_and_its_block_counts() {
        let failed = Trial { discarded: Some("failed: reset".into()), ..trial(2, 1, 0.0) };
        let mut trials = blocks(|_| 150.0);
        trials.push(failed);
        assert_eq!(of(trials), ["in 1 block a run was repeated: failed: reset"]);
    }

    #[test]
    fn a_baseline_that_differs_from_itself_is_reported() {
        let values = vec![vec!["off".into()], vec!["off".into()]];
        let design = Design::default();
        let comparison = conclude(vec![], values, &design, blocks(|_| 150.0), "time was up");
        assert!(doubts(&design, &comparison)[0].starts_with("the baseline that ran again"));
        assert_eq!([0, 1].map(|arm| named(&comparison, arm)), ["off", "off again"]);
    }

    fn blocks(arm_1: fn(u32) -> f64) -> Vec<Trial> {
        (1..=6).flat_map(|b| [trial(b, 0, 100.0), trial(b, 1, arm_1(b))]).collect()
    }

    #[test]
    fn runs_that_only_start_are_reported() {
        let starting = |limit: &str| {
            let run = |trial: Trial| Trial { limit: limit.into(), ..trial };
            of(blocks(|_| 150.0).into_iter().map(run).collect())
        };
        let says_so = |doubts: &[String]| doubts.iter().any(|doubt| doubt.contains("slow start"));
        assert!(says_so(&starting("startup")));
        assert!(!says_so(&starting("path-rate")));
    }

    #[test]
    fn discards_silence_and_shortage_are_reported() {
        let mut trials = vec![trial(1, 0, 0.0), trial(1, 1, 10.0), trial(2, 0, 10.0)];
        trials.push(Trial { discarded: Some("the peer left".into()), ..trial(2, 1, 0.0) });
        trials.push(Trial { discarded: Some("warm-up".into()), ..trial(WARM_UP_BLOCK, 0, 1.0) });
        let doubts = of(trials);
        let facts = [
            ["1 block", "the peer left"],
            ["1 run", "1 bit/s"],
            ["only 1 block is complete", "more time"],
        ];
        assert_eq!(doubts.len(), facts.len(), "{doubts:?}");
        for (doubt, facts) in doubts.iter().zip(facts) {
            assert!(facts.iter().all(|fact| doubt.contains(fact)), "{facts:?} in {doubt}");
        }
        assert!(of(vec![])[0].contains("no block is complete, and it takes 6"));
    }

    #[test]
    fn arms_that_were_left_out_are_named_with_the_runs_that_they_have() {
        let values = ["a", "b", "c", "d", "e"].map(|value| vec![value.into()]);
        let design = Design { arms: 5, ..Design::default() };
        assert_eq!(design.looks().first(), 8);
        let mut trials: Vec<Trial> =
            (1..=8).flat_map(|b| [trial(b, 0, 100.0), trial(b, 1, 150.0)]).collect();
        trials.extend((1..=3).map(|block| trial(block, 2, 100.0)));
        trials.push(Trial { discarded: Some("warm-up".into()), ..trial(WARM_UP_BLOCK, 3, 1.0) });
        let of = |trials: Vec<Trial>, why: StopReason| {
            let why = why.to_string();
            doubts(&design, &conclude(vec![], values.to_vec(), &design, trials, &why))
        };
        let left_out = "not judged: c (3 of 8 blocks); d (run in the warm-up alone); e (never run): allow more time";
        assert_eq!(of(trials.clone(), StopReason::OutOfTime), [left_out]);
        let interrupted = of(trials.clone(), StopReason::MaxBlocks { run: 8 });
        assert!(interrupted[0].ends_with("e (never run)"), "{interrupted:?}");
        trials.retain(|trial| trial.block < 3);
        let none = of(trials, StopReason::OutOfTime);
        assert!(none[0].starts_with("not judged: b (2 of 8 blocks); c (2 of 8"), "{none:?}");
    }

    #[test]
    fn a_clean_comparison_leaves_no_doubt_and_an_open_one_says_what_it_needs() {
        assert!(of(blocks(|_| 150.0)).is_empty());
        let open = of(blocks(|block| 100.0 + 9.0 * f64::from(block % 3)));
        assert!(open[0].starts_with("on: about ") && open[0].ends_with("would decide it"));
        let noise = of(blocks(|block| if block % 2 == 0 { 130.0 } else { 70.0 }));
        assert!(noise[0].contains("more than a comparison runs"), "{noise:?}");
    }
}
