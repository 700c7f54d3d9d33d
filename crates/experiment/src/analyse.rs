//! What the runs of a comparison show, arm by arm.

use goodput_model::{ArmLatency, BitRate, Effect, Judgement, Known, Trial, median};

use crate::design::Design;
use crate::judge::{Preference, effect};
use crate::latency::arm_latency;
use crate::looks::Looks;
use crate::pairs::{Block, complete_blocks, cpu, cpu_ratios, goodput, goodput_ratios};

/// More blocks than this are no advice.
const MAX_BLOCKS_ADVISED: f64 = 1000.0;

/// Half-widths of the intervals at the later looks, in standard errors of a mean; an approximation
/// for the estimate of how many blocks are missing (2.9 for normal data and two arms).
const LATER_HALF_WIDTH_STANDARD_ERRORS: f64 = 3.0;

/// What the runs show of one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmAnalysis {
    /// Blocks that count, the same for all arms: those in which no arm's run was discarded.
    pub n: usize,
    /// Median goodput over them.
    pub goodput_bits_per_s: Known<BitRate>,
    /// Median CPU cost over them, if it is known.
    pub cpu_s_per_gb: Known<f64>,
    /// Goodput against the baseline. `None` for the baseline itself and for fewer than two blocks.
    pub goodput: Option<Effect>,
    /// CPU cost against the baseline; less is better. `None` as above, and if it is not known.
    pub cpu: Option<Effect>,
    /// Round trips under load. `None` if no run was probed.
    pub latency: Option<ArmLatency>,
    /// A rough estimate of how many more blocks would decide an arm whose goodput is inconclusive.
    /// `None` if it is decided, if nothing is known yet, and if the effect is so near the
    /// threshold that no sensible number would do.
    pub more_blocks: Option<u32>,
}

/// Every arm of `design`, the baseline first, after `trials`.
///
/// Estimate: the median of paired differences (Hodges-Lehmann) of log-ratios within blocks.
/// Interval: the exact signed-rank test at the level of the look, see [`crate::looks`]. The 5 %
/// hold for goodput over all arms and looks, for CPU cost again, and for each way to time round trips.
pub fn analyse(design: &Design, trials: &[Trial]) -> Vec<ArmAnalysis> {
    let blocks = complete_blocks(trials, design.arms);
    (0..design.arms).map(|arm| analyse_arm(design, &blocks, arm)).collect()
}

fn analyse_arm(design: &Design, blocks: &[Block], arm: usize) -> ArmAnalysis {
    let level = Looks::for_arms(design.arms).level(blocks.len() as u32);
    let against_baseline = |ratios: &[f64], good| match arm {
        0 => None,
        _ => effect(ratios, level, design.threshold_percent, good),
    };
    let ratios = goodput_ratios(blocks, arm);
    let goodput = against_baseline(&ratios, Preference::Up);
    ArmAnalysis {
        n: blocks.len(),
        goodput_bits_per_s: median_goodput(blocks, arm),
        cpu_s_per_gb: median_cpu(blocks, arm),
        more_blocks: more_blocks(design, &ratios, goodput.as_ref()),
        goodput,
        cpu: against_baseline(&cpu_ratios(blocks, arm), Preference::Down),
        latency: arm_latency(blocks, arm, level, design.threshold_percent),
    }
}

fn median_goodput(blocks: &[Block], arm: usize) -> Known<BitRate> {
    match median(blocks.iter().map(|block| goodput(block[arm]))) {
        Some(goodput) => Known::Value(BitRate(goodput)),
        None => Known::missing("no block has a counted run of every arm"),
    }
}

fn median_cpu(blocks: &[Block], arm: usize) -> Known<f64> {
    match median(blocks.iter().filter_map(|block| cpu(block[arm]))) {
        Some(cost) => Known::Value(cost),
        None => Known::missing("no counted run knows its CPU cost"),
    }
}

/// An inconclusive interval decides once it is shorter than the way from the estimate to the
/// nearest end of the threshold.
fn more_blocks(design: &Design, ratios: &[f64], goodput: Option<&Effect>) -> Option<u32> {
    let effect = goodput.filter(|effect| effect.judgement == Judgement::Inconclusive)?;
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let way = (effect.percent.abs() - design.threshold_percent).abs() / 100.0;
    let needed = variance * (LATER_HALF_WIDTH_STANDARD_ERRORS / way).powi(2);
    let first = f64::from(Looks::for_arms(design.arms).first());
    let more = (needed.max(first) - n).ceil().max(1.0);
    (more <= MAX_BLOCKS_ADVISED).then_some(more as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;
    use proptest::prelude::*;

    fn trials(blocks: u32, goodput: impl Fn(u32, usize) -> f64) -> Vec<Trial> {
        let both = |block| [0, 1].map(|arm| trial(block, arm, goodput(block, arm)));
        (1..=blocks).flat_map(both).collect()
    }

    #[test]
    fn a_faster_arm_is_better_and_its_equal_cost_no_different() {
        let arms = analyse(
            &Design::default(),
            &trials(6, |block, arm| 100.0 + f64::from(block) + 50.0 * arm as f64),
        );
        assert_eq!(arms[0].goodput, None);
        assert_eq!(arms[0].goodput_bits_per_s, Known::Value(BitRate(103.5)));
        let goodput = arms[1].goodput.as_ref().unwrap();
        assert_eq!((goodput.judgement, goodput.n), (Judgement::Better, 6));
        assert!((goodput.percent - 48.3).abs() < 0.2, "{goodput:?}");
        assert_eq!(arms[1].cpu.as_ref().unwrap().judgement, Judgement::NoDifference);
        assert_eq!(arms[1].more_blocks, None);
    }

    #[test]
    fn a_cheaper_arm_is_better() {
        let cheaper = |mut trial: Trial| {
            trial.cpu_s_per_gb = Known::Value(if trial.arm == 1 { 0.5 } else { 1.0 });
            trial
        };
        let trials: Vec<_> = trials(6, |_, _| 100.0).into_iter().map(cheaper).collect();
        let arms = analyse(&Design::default(), &trials);
        let cpu = arms[1].cpu.as_ref().unwrap();
        assert_eq!(cpu.judgement, Judgement::Better);
        assert!((cpu.percent + 50.0).abs() < 1e-9);
    }

    #[test]
    fn an_arm_that_moves_nothing_is_worse_not_a_crash() {
        let arms = analyse(&Design::default(), &trials(6, |_, arm| [1e9, 0.0][arm]));
        let goodput = arms[1].goodput.as_ref().unwrap();
        assert_eq!(goodput.judgement, Judgement::Worse);
        assert!((goodput.percent + 100.0).abs() < 1e-6);
    }

    #[test]
    fn an_inconclusive_arm_says_how_many_more_blocks() {
        let noisy = |block: u32, arm: usize| 100.0 + [0.0, 10.0][arm] * f64::from(block % 3);
        let arms = analyse(&Design::default(), &trials(6, noisy));
        assert_eq!(arms[1].goodput.as_ref().unwrap().judgement, Judgement::Inconclusive);
        let more = arms[1].more_blocks.unwrap();
        assert!((2..60).contains(&more), "{more}");
    }

    #[test]
    fn without_runs_everything_says_so() {
        let arms = analyse(&Design::default(), &[]);
        assert_eq!(arms.len(), 2);
        assert!(arms.iter().all(|arm| arm.n == 0 && arm.goodput.is_none() && arm.cpu.is_none()));
        assert!(arms[1].goodput_bits_per_s.value().is_none());
    }

    proptest! {
        #[test]
        fn any_runs_give_finite_numbers_or_none(
            runs in proptest::collection::vec((0u32..20, 0usize..5, any::<f64>(), any::<f64>()), 0..80),
            arms in 0usize..5, threshold in 0.0f64..20.0,
        ) {
            let trials: Vec<_> = runs.into_iter().map(|(block, arm, goodput, cost)| Trial {
                cpu_s_per_gb: Known::Value(cost),
                ..trial(block, arm, goodput)
            }).collect();
            let design = Design { arms, threshold_percent: threshold, ..Design::default() };
            for arm in analyse(&design, &trials) {
                for effect in [arm.goodput, arm.cpu].into_iter().flatten() {
                    prop_assert!(effect.low_percent <= effect.percent);
                    prop_assert!(effect.percent <= effect.high_percent);
                    prop_assert!(effect.low_percent >= -100.0 && effect.high_percent.is_finite());
                }
            }
        }
    }
}
