//! The state of a host beside a run, and how a paired difference is adjusted for it.
//!
//! A host may be faster or slower during a block's two runs for reasons that no arm has caused. The cost of copying
//! memory right before and after each run shows much of this. The log-ratios are regressed on those of the copy
//! (analysis of covariance; CUPED, Deng et al., WSDM 2013), and the explained part is subtracted.
//!
//! The level of the signed-rank test stays exact. Without an effect, the two runs of a block could swap their names:
//! this flips the signs of both log-ratios of the block at once. The slope of a regression through the origin, a sum
//! of products over a sum of squares, does not change, so each residual only flips its sign, like a fair coin. For an
//! effect other than zero the same holds once it is subtracted before the regression: the residual of block i is
//! a(i) - effect * c(i), which is linear in the effect, and the interval inverts exactly (see `signed_rank`).
//!
//! This needs a condition that no arm can change. Time stolen by the hypervisor and CPU time of other programs
//! *during* the run do not qualify, though they would explain more: an arm that spends more CPU time suffers more from
//! the former and leaves less for the latter, so adjusting for them would hide a true effect or invent one. They show
//! in the copy's cost as well, and so does the CPU's frequency.
//!
//! Some arms change the copy as well, such as a CPU governor: most of their effect would be attributed to the host. So
//! nothing is adjusted for a condition that is itself shown to differ between the two arms.

use crate::pair::Pair;
use crate::signed_rank::{Ranked, Residual};

/// Wall seconds per 10^9 bytes that one thread of the near host takes to copy memory, before and after the run:
/// the name of the condition in a trial.
pub const REFERENCE_COPY: &str = "reference-copy-s-per-gb";

/// With fewer blocks nothing is adjusted: the slope costs about one block, too much of six.
const MIN_BLOCKS: usize = 8;

/// How often an arm that doesn't change a condition is wrongly found to change it, at each look. If chance causes
/// this, its differences stay in: this adds to the false alarms, so the level is small.
const CHANGED_LEVEL: f64 = 0.01;

/// The differences without the part that the copy beside the runs explains, and whether anything was subtracted.
/// Nothing is subtracted if a copy is missing, if none differs, if there are too few blocks, or if the arm changes the
/// copy itself.
pub(crate) fn adjusted(pairs: &[Pair]) -> (Vec<Residual>, bool) {
    let beside: Option<Vec<f64>> = pairs.iter().map(|pair| pair.beside).collect();
    let square = |beside: &Vec<f64>| beside.iter().map(|x| x * x).sum::<f64>();
    let usable = beside
        .filter(|beside| pairs.len() >= MIN_BLOCKS && square(beside) > 0.0 && !is_changed(pairs));
    let Some(beside) = usable else {
        return (pairs.iter().map(|pair| plain(pair.log_ratio)).collect(), false);
    };
    let square = square(&beside);
    let both = pairs.iter().zip(&beside);
    let slope = both.clone().map(|(pair, x)| pair.log_ratio * x).sum::<f64>() / square;
    let slope_of_one = beside.iter().sum::<f64>() / square;
    let residual = |(pair, x): (&Pair, &f64)| Residual {
        value: pair.log_ratio - slope * x,
        weight: 1.0 - slope_of_one * x,
    };
    (both.map(residual).collect(), true)
}

/// Whether the condition beside the runs is shown to differ between the two arms.
pub(crate) fn is_changed(pairs: &[Pair]) -> bool {
    let beside: Vec<_> = pairs.iter().filter_map(|pair| pair.beside.map(plain)).collect();
    Ranked::new(&beside).is_some_and(|ranked| {
        let shift = ranked.locate(CHANGED_LEVEL);
        shift.reaches_level && (shift.low > 0.0 || shift.high < 0.0)
    })
}

/// A difference without any adjustment.
fn plain(value: f64) -> Residual {
    Residual { value, weight: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(both: &[(f64, f64)]) -> Vec<Pair> {
        let pair = |(block, &(log_ratio, x)): (u32, &(f64, f64))| Pair {
            block,
            log_ratio,
            beside: Some(x),
        };
        (1..).zip(both).map(pair).collect()
    }

    const NOISE: [(f64, f64); 8] = [
        (0.31, -0.3),
        (-0.18, 0.2),
        (0.09, -0.1),
        (-0.42, 0.4),
        (0.2, -0.22),
        (-0.1, 0.1),
        (0.05, -0.04),
        (0.0, -0.02),
    ];

    #[test]
    fn what_the_copy_explains_is_taken_out() {
        let (residuals, is_adjusted) = adjusted(&pairs(&NOISE));
        assert!(is_adjusted);
        assert!(residuals.iter().all(|residual| residual.value.abs() < 0.04), "{residuals:?}");
    }

    #[test]
    fn runs_that_swap_their_names_turn_the_sign_of_one_residual_only() {
        let mut swapped = NOISE;
        swapped[3] = (-swapped[3].0, -swapped[3].1);
        let (before, _) = adjusted(&pairs(&NOISE));
        let (after, _) = adjusted(&pairs(&swapped));
        for (number, (before, after)) in before.iter().zip(&after).enumerate() {
            let expected = if number == 3 { -before.value } else { before.value };
            assert!((after.value - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn an_arm_that_changes_the_copy_keeps_its_effect() {
        let governor = pairs(&NOISE.map(|(y, x)| (y / 10.0 + 0.14, x / 10.0 - 0.14)));
        assert!(is_changed(&governor));
        let (residuals, is_adjusted) = adjusted(&governor);
        assert!(!is_adjusted);
        let kept = residuals.iter().zip(&governor).all(|(left, pair)| left.value == pair.log_ratio);
        assert!(kept, "{residuals:?}");
        assert!(!is_changed(&pairs(&NOISE)));
    }

    #[test]
    fn few_blocks_missing_copies_and_a_steady_host_are_left_alone() {
        assert!(!adjusted(&pairs(&NOISE[..7])).1);
        assert!(!adjusted(&pairs(&NOISE.map(|(y, _)| (y, 0.0)))).1);
        let mut lacking = pairs(&NOISE);
        lacking[2].beside = None;
        assert!(!adjusted(&lacking).1);
        assert!(adjusted(&lacking).0.iter().all(|residual| residual.weight == 1.0));
    }
}
