//! The state of a host beside a run, and how a paired difference is adjusted for it.
//!
//! A host may be faster or slower during a block's two runs for reasons that no arm has caused. The cost of copying
//! memory right before and after each run shows much of this. So the part of a log-ratio that the copy's log-ratio
//! explains is subtracted.
//!
//! How much it explains is learned from what the blocks have in common, never from the differences within blocks: the
//! sum of both runs' logarithms follows the copies' sum from each block to the next with some slope. Without an effect
//! the two runs of a block could swap their names. This turns the sign of both log-ratios of the block and changes no
//! sum, so the slope stays, and each residual only turns its sign, like a fair coin. An effect adds the same to every
//! sum, and so changes no step between two sums. So the level of the signed-rank test is exact, for an effect of any
//! size.
//!
//! The slope can't be mistaken either: an arm of ten times the goodput, whose copies happen to cost less, doesn't look
//! like a fast host. A regression of the differences themselves would have to tell the two apart. With copies that cost
//! less beside every run of the arm, that leaves an interval of several times the width.
//!
//! A copy that explains nothing would add its own noise. So the slope is shrunk by how little the sums show of it
//! (positive-part James-Stein), to zero if they show none.
//!
//! This needs a condition that no arm can change. Time stolen by the hypervisor and CPU time of other programs
//! *during* the run do not qualify, though they would explain more: an arm that spends more CPU time suffers more from
//! the former and leaves less for the latter, so adjusting for them would hide a true effect or invent one. They show
//! in the copy's cost as well, and so does the CPU's frequency.
//!
//! Some arms change the copy as well, such as a CPU governor: part of their effect would be attributed to the host. So
//! if any arm of a comparison is shown to change the copy, no difference of this comparison is adjusted.

use crate::pair::{Beside, Pair};
use crate::signed_rank::Ranked;

/// Wall seconds per 10^9 bytes that one thread of the near host takes to copy memory, before and after the run:
/// the name of the condition in a trial.
pub const REFERENCE_COPY: &str = "reference-copy-s-per-gb";

/// With fewer blocks nothing is adjusted: too few steps show a slope.
const MIN_BLOCKS: usize = 8;

/// How often an arm that doesn't change a condition is wrongly found to change it, at each look. If chance causes
/// this, its differences stay in: this adds to the false alarms, so the level is small.
const CHANGED_LEVEL: f64 = 0.01;

/// A slope whose square is this many times its variance, three standard errors, counts as noise: neighbouring steps
/// share a sum, so that chance makes slopes of two standard errors in one comparison of eight.
const NOISE_RATIO: f64 = 9.0;

/// Whether the differences of a comparison may be adjusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copies {
    /// No arm is shown to change the copy.
    Independent,
    /// An arm is: the copy says nothing about the host alone.
    Changed,
}

impl Copies {
    /// As the `arms` show it, each by its pairs.
    pub(crate) fn of<'a>(mut arms: impl Iterator<Item = &'a [Pair]>) -> Self {
        if arms.any(is_changed) { Self::Changed } else { Self::Independent }
    }
}

/// The differences without the part that the copy beside the runs explains, and whether anything was subtracted.
/// Nothing is subtracted if a copy is missing, if an arm changes the copy, if there are too few blocks, or if the
/// copy explains nothing.
pub(crate) fn adjusted(pairs: &[Pair], copies: Copies) -> (Vec<f64>, bool) {
    let beside: Option<Vec<Beside>> = pairs.iter().map(|pair| pair.beside).collect();
    let usable = beside.filter(|_| pairs.len() >= MIN_BLOCKS && copies == Copies::Independent);
    let beside = usable.unwrap_or_default();
    let slope = slope(&beside);
    if slope == 0.0 {
        return (pairs.iter().map(|pair| pair.log_ratio).collect(), false);
    }
    let residual = |(pair, beside): (&Pair, &Beside)| pair.log_ratio - slope * beside.log_ratio;
    (pairs.iter().zip(&beside).map(residual).collect(), true)
}

/// How the sums of the response follow those of the condition from block to block, shrunk; zero if they don't. Steps
/// leave out a drift that both have by chance.
fn slope(beside: &[Beside]) -> f64 {
    let steps = beside.windows(2).map(|two| {
        let condition = two[1].condition_sum - two[0].condition_sum;
        (condition, two[1].response_sum - two[0].response_sum)
    });
    let (mut xx, mut xy, mut yy): (f64, f64, f64) = (0.0, 0.0, 0.0);
    for (x, y) in steps {
        (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
    }
    let degrees = beside.len().saturating_sub(2) as f64;
    let (explained, unexplained) = (xy * xy, xx * yy - xy * xy);
    let shrunk = (1.0 - NOISE_RATIO * unexplained.max(0.0) / (degrees * explained)).max(0.0);
    let slope = shrunk * xy / xx;
    if slope.is_finite() { slope } else { 0.0 }
}

/// Whether the condition beside the runs is shown to differ between the two arms.
pub(crate) fn is_changed(pairs: &[Pair]) -> bool {
    let beside: Vec<_> =
        pairs.iter().filter_map(|pair| pair.beside.map(|beside| beside.log_ratio)).collect();
    Ranked::new(&beside).is_some_and(|ranked| {
        let shift = ranked.locate(CHANGED_LEVEL);
        shift.reaches_level && (shift.low > 0.0 || shift.high < 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of two runs, each with its response and its condition: of the baseline, and of the arm.
    fn pairs(blocks: &[[(f64, f64); 2]]) -> Vec<Pair> {
        let pair = |(block, [(base, cost), (arm, arm_cost)]): (u32, &[(f64, f64); 2])| Pair {
            block,
            log_ratio: arm - base,
            beside: Some(Beside {
                log_ratio: arm_cost - cost,
                response_sum: arm + base,
                condition_sum: arm_cost + cost,
            }),
        };
        (1..).zip(blocks).map(pair).collect()
    }

    /// Speeds of a host that wanders.
    const SPEEDS: [[f64; 2]; 8] = [
        [0.31, -0.3],
        [-0.18, 0.2],
        [0.29, 0.1],
        [-0.42, -0.4],
        [0.2, 0.22],
        [-0.1, -0.3],
        [0.15, -0.04],
        [0.0, -0.22],
    ];

    /// The arm adds `effect`, and `copy` to the cost of the copy.
    fn wandering(effect: f64, copy: f64) -> [[(f64, f64); 2]; 8] {
        SPEEDS.map(|[one, other]| {
            let own = 0.02 * (17.0 * one).sin();
            [(one + own, -one), (other + effect, copy - other)]
        })
    }

    #[test]
    fn what_the_copy_explains_is_taken_out() {
        for effect in [0.0, 2.5] {
            let (residuals, is_adjusted) =
                adjusted(&pairs(&wandering(effect, 0.0)), Copies::Independent);
            assert!(is_adjusted);
            let near = residuals.iter().all(|residual| (residual - effect).abs() < 0.05);
            assert!(near, "{residuals:?}");
        }
    }

    #[test]
    fn runs_that_swap_their_names_turn_the_sign_of_one_residual_only() {
        let mut swapped = wandering(0.0, 0.0);
        swapped[3].reverse();
        let of = |blocks| adjusted(&pairs(blocks), Copies::Independent).0;
        let (before, after) = (of(&wandering(0.0, 0.0)), of(&swapped));
        for (number, (before, after)) in before.iter().zip(&after).enumerate() {
            let expected = if number == 3 { -before } else { *before };
            assert!((after - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn an_arm_that_changes_the_copy_takes_the_adjustment_from_all() {
        let [governor, other] = [-0.9, 0.0].map(|copy| pairs(&wandering(0.14, copy)));
        assert!(is_changed(&governor) && !is_changed(&other));
        let both = Copies::of([&governor[..], &other].into_iter());
        let (residuals, is_adjusted) = adjusted(&other, both);
        assert!(!is_adjusted);
        let kept = residuals.iter().zip(&other).all(|(left, pair)| *left == pair.log_ratio);
        assert!(kept, "{residuals:?}");
        assert_eq!(Copies::of([&other[..]].into_iter()), Copies::Independent);
    }

    #[test]
    fn few_blocks_missing_copies_and_copies_that_say_nothing_leave_the_differences() {
        let of = |pairs: &[Pair]| adjusted(pairs, Copies::Independent);
        assert!(!of(&pairs(&wandering(0.0, 0.0)[..7])).1);
        assert!(!of(&pairs(&wandering(0.0, 0.0).map(|two| two.map(|run| (run.0, 0.0))))).1);
        let noise = [0.3, 0.3, -0.3, -0.3, 0.3, -0.3, -0.3, 0.3];
        let mut useless = wandering(0.0, 0.0);
        (0..8).for_each(|block| useless[block].iter_mut().for_each(|run| run.1 = noise[block]));
        assert!(!of(&pairs(&useless)).1);
        let mut lacking = pairs(&wandering(0.0, 0.0));
        lacking[2].beside = None;
        assert!(!of(&lacking).1);
        assert_eq!(of(&[]), (Vec::new(), false));
    }
}
