//! One response of all arms, look by look: a decision is final.

use std::collections::BTreeSet;

use goodput_model::{Effect, Judgement};

use crate::conditions::Copies;
use crate::judge::{Criterion, effect, is_final};
use crate::looks::{Looks, Shown};
use crate::pair::Pair;

/// The state of one arm for one response.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Standing {
    /// Against the baseline, by the pairs up to the deciding look, or by all. `None` for fewer than two.
    pub(crate) effect: Option<Effect>,
    /// Whether a planned look has decided. Later runs no longer change the result.
    pub(crate) is_decided: bool,
}

/// Goes through the blocks of all candidates in the order in which they were run. `pairs` has one list per arm,
/// without the baseline, each in the order of the blocks.
///
/// An arm is judged when its number of pairs is that of a look, at the level that Holm's procedure leaves to the arms
/// that aren't shown yet. The decision of a look is latched: it was made within the allowed error, and including later
/// runs would be another look.
pub(crate) fn sequential(pairs: &[Vec<Pair>], looks: Looks, criterion: Criterion) -> Vec<Standing> {
    let mut arms: Vec<Standing> = vec![Standing::default(); pairs.len()];
    let blocks: BTreeSet<u32> = pairs.iter().flatten().map(|pair| pair.block).collect();
    for block in blocks {
        let due = |arm: usize| {
            let until = pairs[arm].partition_point(|pair| pair.block <= block);
            let is_new = until > 0 && pairs[arm][until - 1].block == block;
            (is_new && looks.is_due(until as u32)).then_some(until)
        };
        // A look knows only the blocks before it.
        let until = |pairs: &'_ Vec<Pair>| pairs.partition_point(|pair| pair.block <= block);
        let copies = Copies::of(pairs.iter().map(|pairs| &pairs[..until(pairs)]));
        let judge = |pairs: &[Pair], shown| judged(pairs, copies, looks, shown, criterion);
        while latch(&mut arms, pairs, judge, due) {}
    }
    let (shown, copies) = (shown(&arms), Copies::of(pairs.iter().map(Vec::as_slice)));
    for (arm, pairs) in arms.iter_mut().zip(pairs).filter(|(arm, _)| !arm.is_decided) {
        arm.effect = judged(pairs, copies, looks, shown, criterion);
    }
    arms
}

/// Judges the undecided arms that are `due` with their first pairs. Returns whether one was decided, which changes the
/// levels of the others.
fn latch(
    arms: &mut [Standing],
    pairs: &[Vec<Pair>],
    judge: impl Fn(&[Pair], Shown) -> Option<Effect>,
    due: impl Fn(usize) -> Option<usize>,
) -> bool {
    let shown = shown(arms);
    let mut any = false;
    for (number, arm) in arms.iter_mut().enumerate().filter(|(_, arm)| !arm.is_decided) {
        let effect = due(number).and_then(|n| judge(&pairs[number][..n], shown));
        if effect.as_ref().is_some_and(|effect| is_final(effect.judgement)) {
            *arm = Standing { effect, is_decided: true };
            any = true;
        }
    }
    any
}

fn judged(
    pairs: &[Pair],
    copies: Copies,
    looks: Looks,
    shown: Shown,
    criterion: Criterion,
) -> Option<Effect> {
    effect(pairs, copies, looks.levels(pairs.len() as u32, shown), criterion)
}

fn shown(arms: &[Standing]) -> Shown {
    let decided = arms.iter().filter(|arm| arm.is_decided).filter_map(|arm| arm.effect.as_ref());
    decided.fold(Shown::default(), |shown, effect| match effect.judgement {
        Judgement::NoDifference => Shown { equal: shown.equal + 1, ..shown },
        _ => Shown { different: shown.different + 1, ..shown },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Preference;

    const CRITERION: Criterion = Criterion { threshold_percent: 3.0, good: Preference::Up };

    fn pairs(log_ratios: &[f64]) -> Vec<Pair> {
        let pair = |(block, &log_ratio)| Pair { block, log_ratio, beside: None };
        (1..).zip(log_ratios).map(pair).collect()
    }

    #[test]
    fn what_a_look_decided_stays_decided() {
        let mut ratios = vec![0.2; 6];
        ratios.extend([-0.5; 4]);
        let arm = &sequential(&[pairs(&ratios)], Looks::for_arms(2), CRITERION)[0];
        assert!(arm.is_decided);
        let effect = arm.effect.as_ref().unwrap();
        assert_eq!((effect.judgement, effect.n), (Judgement::Better, 6));
    }

    #[test]
    fn between_the_looks_nothing_is_latched() {
        let arm = &sequential(&[pairs(&[0.2; 7])], Looks::for_arms(3), CRITERION)[0];
        assert!(arm.is_decided, "7 blocks are the first look at 3 arms");
        let arm = &sequential(&[pairs(&[0.2; 8])], Looks::for_arms(4), CRITERION)[0];
        assert!(arm.is_decided, "8 blocks are the first look at 4 arms");
        let arm = &sequential(&[pairs(&[0.2; 7])], Looks::for_arms(2), CRITERION)[0];
        assert_eq!(arm.effect.as_ref().map(|effect| effect.n), Some(6));
        let open = [0.2, -0.2, 0.2, -0.2, 0.2, -0.2, 0.2];
        let arm = &sequential(&[pairs(&open)], Looks::for_arms(2), CRITERION)[0];
        assert_eq!((arm.is_decided, arm.effect.as_ref().map(|effect| effect.n)), (false, Some(7)));
    }

    /// With three of four arms decided, the fourth has the whole error and doesn't need all blocks to agree.
    #[test]
    fn an_arm_gains_by_those_that_were_shown() {
        let clear = pairs(&[0.2; 12]);
        let mut mixed = vec![0.2; 12];
        (mixed[3], mixed[7]) = (-0.01, -0.01);
        let mixed = pairs(&mixed);
        let looks = Looks::for_arms(5);
        let decided = |others: &[Vec<Pair>]| {
            let arms = [vec![mixed.clone()], others.to_vec()].concat();
            sequential(&arms, looks, CRITERION)[0].is_decided
        };
        assert!(decided(&[clear.clone(), clear.clone(), clear]));
        let open: Vec<f64> = (0..12).map(|n| if n % 2 == 0 { 0.3 } else { -0.3 }).collect();
        assert!(!decided(&[pairs(&open), pairs(&open), pairs(&open)]));
    }
}
