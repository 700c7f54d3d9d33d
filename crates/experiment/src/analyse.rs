//! The results of a comparison's runs, arm by arm.

use std::collections::BTreeMap;

use goodput_model::{
    ArmLatency, BitRate, Effect, Judgement, Known, Response, ResponseResult, Trial, median,
};

use crate::conditions::adjusted;
use crate::design::Design;
use crate::judge::Criterion;
use crate::latency::{Loaded, arm_latencies};
use crate::obvious::obvious_in;
use crate::pair::Pair;
use crate::pairs::{Runs, goodput};
use crate::responses::{for_ratio, preference, result};
use crate::sequential::{Standing, sequential};

/// Advice to run more blocks than this is useless.
const MAX_BLOCKS_ADVISED: f64 = 1000.0;

/// Half-widths of the intervals at the last looks, in standard errors of a mean; approximations
/// for the estimate of how many blocks are missing. Normal data and two arms have 2.96 and 2.46, the
/// quantiles of the levels in [`crate::looks`]; ranks need a little more.
const DIFFERENCE_STANDARD_ERRORS: f64 = 3.1;
const EQUIVALENCE_STANDARD_ERRORS: f64 = 2.6;

/// The results of one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmAnalysis {
    /// Blocks in which its run and the baseline's count; for the baseline, blocks in which it is compared.
    pub n: usize,
    /// Median goodput over them.
    pub goodput_bits_per_s: Known<BitRate>,
    /// Median CPU cost over them, if it is known.
    pub cpu_s_per_gb: Known<f64>,
    /// Goodput against the baseline. `None` for the baseline itself and for fewer than two blocks.
    pub goodput: Option<Effect>,
    /// CPU cost against the baseline; less is better. `None` as above, and if it is unknown.
    pub cpu: Option<Effect>,
    /// Round trips under load. `None` if no run measured them.
    pub latency: Option<ArmLatency>,
    /// The responses of the design, in their order.
    pub responses: Vec<ResponseResult>,
    /// Why it is no longer run, if so.
    pub settled: Option<Settled>,
    /// A rough estimate of how many more blocks would decide an inconclusive arm. `None` if it is decided, if nothing
    /// is known yet, or if the effect is so close to the threshold that no sensible number of blocks would do.
    pub more_blocks: Option<u32>,
}

/// Why an arm needs no more runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// A look has shown that it is better, worse or no different.
    Decided,
    /// Its interval is as narrow as requested.
    Precise,
    /// The runs only choose, and its difference is obvious.
    Obvious,
    /// All its looks were made, or as many as are worth it once something is shown.
    LastLook,
}

/// Every arm of `design`, the baseline first, after `trials`.
///
/// Estimate: the median of paired differences (Hodges-Lehmann) of log-ratios within blocks, adjusted for the reference
/// copy beside the runs, see [`crate::conditions`]. Interval: the exact signed-rank test at the level of the look, see
/// [`crate::looks`]. The 5 % hold over all arms and looks, for each response and each way to time round trips.
pub fn analyse(design: &Design, trials: &[Trial]) -> Vec<ArmAnalysis> {
    let runs = Runs::of(trials, design.arms);
    let judged: BTreeMap<Response, Vec<Standing>> = design
        .responses
        .iter()
        .chain([&Response::Throughput, &Response::Cpu])
        .map(|response| (*response, judged(design, &runs, *response)))
        .collect();
    let latency = arm_latencies(&runs, design.looks(), design.threshold_percent).into_iter();
    let arm = |(arm, latency): (usize, Option<Loaded>)| {
        let standing = |response: Response| &judged[&response][arm];
        let goodput = standing(Response::Throughput).effect.clone();
        let named = |response: &Response| result(&runs, arm, *response, standing(*response));
        let named_standings: Vec<&Standing> =
            design.responses.iter().map(|r| standing(*r)).collect();
        ArmAnalysis {
            n: runs.compared(arm).count(),
            goodput_bits_per_s: median_goodput(&runs, arm),
            cpu_s_per_gb: median_cpu(&runs, arm),
            settled: settled(design, &runs, arm, &named_standings, latency.as_ref()),
            more_blocks: more_blocks(design, &runs, arm, named_standings.first().copied()),
            responses: design.responses.iter().map(named).collect(),
            goodput,
            cpu: standing(Response::Cpu).effect.clone(),
            latency: latency.map(|latency| latency.times),
        }
    };
    latency.enumerate().take(design.arms).map(arm).collect()
}

/// One response of every arm, including the baseline, which has none.
fn judged(design: &Design, runs: &Runs, response: Response) -> Vec<Standing> {
    let pairs = |arm| runs.pairs(arm, for_ratio(response));
    let pairs: Vec<Vec<Pair>> = runs.candidates().map(pairs).collect();
    let threshold_percent = design.threshold_percent;
    let criterion = Criterion { threshold_percent, good: preference(response) };
    let candidates = sequential(&pairs, design.looks(), criterion);
    std::iter::once(Standing::default()).chain(candidates).collect()
}

/// All responses of the design decide, and if round trips were probed, the delay by at least one way to time them. An
/// arm doesn't wait for responses that no run could read.
fn settled(
    design: &Design,
    runs: &Runs,
    arm: usize,
    named: &[&Standing],
    latency: Option<&Loaded>,
) -> Option<Settled> {
    let looks = design.looks();
    let blocks = runs.beside(arm).count() as u32;
    let is_decided = |standing: &&Standing| {
        standing.is_decided || (standing.effect.is_none() && blocks >= looks.first())
    };
    let delay_is_decided = latency.is_none_or(|latency| latency.is_decided);
    let others_are_decided = || named.iter().skip(1).all(is_decided) && delay_is_decided;
    let primary = named.first()?;
    if primary.is_decided && others_are_decided() {
        Some(Settled::Decided)
    } else if design.chooses && obvious_in(design, runs, arm).is_some() {
        Some(Settled::Obvious)
    } else if looks.is_due(blocks)
        && primary.effect.as_ref().is_some_and(|effect| is_precise(design, effect))
        && primary.effect.as_ref().is_some_and(shows_direction)
        && others_are_decided()
    {
        Some(Settled::Precise)
    } else {
        let is_unreadable = primary.effect.is_none() && blocks >= looks.first();
        let is_enough = looks.is_due(blocks)
            && blocks >= looks.usual_end()
            && (primary.is_decided || primary.effect.as_ref().is_some_and(shows_direction));
        (is_unreadable || is_enough || blocks >= looks.last()).then_some(Settled::LastLook)
    }
}

/// Whether at least the sign of the effect is shown.
fn shows_direction(effect: &Effect) -> bool {
    use Judgement::{BetterPerhapsBelowThreshold, WorsePerhapsBelowThreshold};
    matches!(effect.judgement, BetterPerhapsBelowThreshold | WorsePerhapsBelowThreshold)
}

fn is_precise(design: &Design, effect: &Effect) -> bool {
    (effect.high_percent - effect.low_percent) / 2.0 <= design.precision_percent
}

fn median_goodput(runs: &Runs, arm: usize) -> Known<BitRate> {
    match median(runs.compared(arm).map(goodput)) {
        Some(goodput) => Known::Value(BitRate(goodput)),
        None => Known::missing("no block has a counted run of this arm and of the baseline"),
    }
}

fn median_cpu(runs: &Runs, arm: usize) -> Known<f64> {
    match median(runs.compared(arm).filter_map(|trial| trial.reading(Response::Cpu))) {
        Some(cost) => Known::Value(cost),
        None => Known::missing("no counted run knows its CPU cost"),
    }
}

/// An inconclusive arm is decided once its interval no longer reaches zero, or once the narrower interval lies within
/// the threshold. Uses the residuals after the adjustment.
fn more_blocks(
    design: &Design,
    runs: &Runs,
    arm: usize,
    primary: Option<&Standing>,
) -> Option<u32> {
    let effect = primary?.effect.as_ref();
    let effect = effect.filter(|effect| effect.judgement == Judgement::Inconclusive)?;
    let response = *design.responses.first()?;
    let pairs = runs.pairs(arm, for_ratio(response));
    let ratios = adjusted(&pairs, runs.copies(for_ratio(response))).0;
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let blocks = |standard_errors: f64, way_percent: f64| {
        variance * (standard_errors / (way_percent.max(0.0) / 100.0)).powi(2)
    };
    let needed = blocks(DIFFERENCE_STANDARD_ERRORS, effect.percent.abs())
        .min(blocks(EQUIVALENCE_STANDARD_ERRORS, design.threshold_percent - effect.percent.abs()));
    let first = f64::from(design.looks().first());
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
        let noisy = |block: u32, arm: usize| 80.0 + [2.0, f64::from(block * 7 % 5)][arm] * 10.0;
        let arms = analyse(&Design::default(), &trials(6, noisy));
        assert_eq!(arms[1].goodput.as_ref().unwrap().judgement, Judgement::Inconclusive);
        let more = arms[1].more_blocks.unwrap();
        assert!((20..300).contains(&more), "{more}");
    }

    #[test]
    fn the_named_responses_are_judged_and_the_first_decides() {
        let design = Design {
            responses: vec![Response::Interrupts, Response::Loss, Response::Drops],
            ..Design::default()
        };
        let run = |block: u32, arm: usize| Trial {
            responses: BTreeMap::from([
                (Response::Interrupts, [50_000.0, 8_000.0][arm] + f64::from(block)),
                (Response::Loss, [0.0, 0.1][arm]),
            ]),
            ..trial(block, arm, 100.0)
        };
        let trials: Vec<_> = (1..=6).flat_map(|b| [run(b, 0), run(b, 1)]).collect();
        let arm = &analyse(&design, &trials)[1];
        let judged = |number: usize| arm.responses[number].against.as_ref().map(|e| e.judgement);
        assert_eq!(judged(0), Some(Judgement::Better));
        assert_eq!(judged(1), Some(Judgement::Worse), "no loss against some is a finite ratio");
        assert_eq!(judged(2), None);
        assert_eq!(arm.responses[2].median, Known::missing("no counted run could read it"));
        assert_eq!(arm.settled, Some(Settled::Decided), "what nothing reads is not waited for");
        let unreadable = Design { responses: vec![Response::Drops], ..design };
        assert_eq!(analyse(&unreadable, &trials)[1].settled, Some(Settled::LastLook));
    }

    #[test]
    fn more_goodput_for_the_same_cpu_is_better_and_more_cpu_is_worse() {
        let design =
            Design { responses: vec![Response::PerCpu, Response::HostCpu], ..Design::default() };
        let run = |block: u32, arm: usize| Trial {
            responses: BTreeMap::from([
                (Response::PerCpu, [8.6e6, 26.1e6][arm] + f64::from(block)),
                (Response::HostCpu, [34.0, 73.0][arm] + f64::from(block) / 100.0),
            ]),
            ..trial(block, arm, 8e6)
        };
        let trials: Vec<_> = (1..=6).flat_map(|b| [run(b, 0), run(b, 1)]).collect();
        let arm = &analyse(&design, &trials)[1];
        let effect = |number: usize| arm.responses[number].against.clone().unwrap();
        assert_eq!(effect(0).judgement, Judgement::Better);
        assert!((effect(0).percent - 203.0).abs() < 1.0, "{}", effect(0).percent);
        assert_eq!(effect(1).judgement, Judgement::Worse);
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
