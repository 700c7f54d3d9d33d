//! Turns runs into the comparison that is stored and shown.

use goodput_model::{ArmResult, Comparison, DoseCurve, Known, Mechanism, SettingRef, Trial};

use crate::analyse::{ArmAnalysis, analyse};
use crate::design::Design;
use crate::dose::{ANOTHER_FORM, curve, doses};
use crate::effective::effective_doses;
use crate::factors::{Cells, factors};
use crate::mechanism::{Suspect, mechanism};
use crate::pairs::Runs;
use crate::rise::rise;

/// What `trials` prove about the arms, whose `values` are in the order of `settings`, one list per arm, the baseline
/// first. `stopped` says why no more runs were made, as [`crate::StopReason`] prints it.
pub fn conclude(
    settings: Vec<SettingRef>,
    values: Vec<Vec<String>>,
    design: &Design,
    trials: Vec<Trial>,
    stopped: impl Into<String>,
) -> Comparison {
    let runs = Runs::of(&trials, design.arms);
    let doses = effective_doses(&runs, &doses(&settings, &values));
    let curve = dose_curve(&runs, &doses, &values, design.threshold_percent);
    let factors = factors(design, &runs, &Cells { settings: &settings, values: &values });
    // An arm without values is a bug of the caller; its numbers are still shown.
    let values = values.into_iter().chain(std::iter::repeat_with(Vec::new));
    let analysed = analyse(design, &trials).into_iter().zip(values).enumerate();
    let arms = analysed
        .map(|(arm, (analysis, values))| ArmResult {
            mechanism: (arm > 0).then(|| changed(&trials, arm, &analysis)).flatten(),
            in_effect: in_effect(&doses, arm, &values),
            ..arm_result(analysis, values)
        })
        .collect();
    Comparison {
        settings,
        arms,
        responses: design.responses.clone(),
        curve,
        factors,
        trials,
        threshold_percent: design.threshold_percent,
        stopped: stopped.into(),
    }
}

/// The curve through the arms of `doses`. If goodput has another form, what its values show without a curve: no curve
/// that stays fits, or a value beyond the knee is shown to lack something.
fn dose_curve(
    runs: &Runs,
    doses: &[(usize, f64)],
    values: &[Vec<String>],
    threshold_percent: f64,
) -> Option<DoseCurve> {
    let mut curve = curve(runs, doses, threshold_percent)?;
    let Some(rise) = rise(runs, doses, values, threshold_percent) else { return Some(curve) };
    let is_beyond = curve.knee_between.is_some_and(|[_, latest]| rise.short > latest);
    if is_beyond || curve.knee == Known::missing(ANOTHER_FORM) {
        curve.knee = Known::missing(rise.words.clone());
        curve.asymptote_bits_per_s = Known::missing(rise.words);
        curve.knee_between = None;
    }
    Some(curve)
}

/// What became of an arm's value, if that is another number.
fn in_effect(doses: &[(usize, f64)], arm: usize, values: &[String]) -> Option<f64> {
    let (_, dose) = doses.iter().find(|(of, _)| *of == arm)?;
    (DoseCurve::number(values.first()?) != Some(*dose)).then_some(*dose)
}

/// Whether an arm takes away what limits the baseline, or brings what limits the arm, if its goodput is worse.
fn changed(trials: &[Trial], arm: usize, analysis: &ArmAnalysis) -> Option<Mechanism> {
    let is_worse = analysis.goodput.as_ref().is_some_and(|effect| effect.judgement.is_worse());
    mechanism(trials, arm, &Suspect::beside(trials, arm, is_worse)?)
}

fn arm_result(analysis: ArmAnalysis, values: Vec<String>) -> ArmResult {
    ArmResult {
        n: analysis.n,
        goodput_bits_per_s: analysis.goodput_bits_per_s,
        cpu_s_per_gb: analysis.cpu_s_per_gb,
        goodput: analysis.goodput,
        cpu: analysis.cpu,
        latency: analysis.latency,
        responses: analysis.responses,
        ..ArmResult::new(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::next_step::StopReason;
    use crate::pairs::tests::trial;
    use goodput_model::Judgement;

    /// Six blocks of two bursts, each with its limit and its goodput.
    fn compared(arms: [(&str, &str, f64); 2]) -> Comparison {
        let run = |block, arm: usize| Trial {
            limit: arms[arm].1.into(),
            discarded: (block == 0).then(|| "warm-up".into()),
            ..trial(block, arm, arms[arm].2)
        };
        let trials = (0..=6).flat_map(|block| [run(block, 0), run(block, 1)]).collect();
        conclude(
            vec!["qdisc.tbf.burst@eth3".parse().unwrap()],
            arms.map(|(burst, ..)| vec![burst.into()]).to_vec(),
            &Design::default(),
            trials,
            StopReason::Decided { blocks: 6 }.to_string(),
        )
    }

    const SMALL: (&str, &str, f64) = ("1250", "shaper-burst", 77.0);
    const LARGE: (&str, &str, f64) = ("125K", "shaper-rate", 95.0);

    #[test]
    fn each_arm_has_its_values_its_effect_and_its_mechanism() {
        let comparison = compared([SMALL, LARGE]);
        assert_eq!(comparison.stopped, "every arm was decided after 6 blocks");
        assert_eq!(comparison.arms[0].values, ["1250"]);
        assert_eq!(comparison.arms[0].mechanism, None);
        let arm = &comparison.arms[1];
        assert_eq!(arm.goodput.as_ref().unwrap().judgement, Judgement::Better);
        let mechanism = arm.mechanism.as_ref().unwrap();
        assert_eq!(
            (mechanism.rule.as_str(), mechanism.next_limit.as_str()),
            ("shaper-burst", "shaper-rate")
        );
        assert!(!mechanism.limits_arm);
    }

    #[test]
    fn an_arm_has_the_value_that_the_kernel_took_if_that_is_another() {
        let amounts = [65_536.0, 65_536.0, 131_072.0];
        let run = |block, arm: usize| Trial {
            amount: Some(goodput_model::LimitAmount {
                name: "receive_window_bytes".into(),
                value: amounts[arm],
                is_proportional: true,
            }),
            ..trial(block, arm, 1e8)
        };
        let trials = (1..=6).flat_map(|block| (0..3).map(move |arm| run(block, arm))).collect();
        let values = ["4K", "32K", "64K"].map(|value| vec![value.into()]).to_vec();
        let settings = vec!["route.window@default".parse().unwrap()];
        let design = Design { arms: 3, ..Design::default() };
        let comparison = conclude(settings, values, &design, trials, "enough");
        let arms = comparison.arms.iter().map(|arm| (arm.in_effect, arm.number()));
        let (half, all) = (Some(32_768.0), Some(65_536.0));
        assert_eq!(arms.collect::<Vec<_>>(), [(half, half), (None, half), (None, all)]);
    }

    #[test]
    fn a_worse_arm_has_the_mechanism_of_its_own_limit() {
        let comparison = compared([LARGE, SMALL]);
        let arm = &comparison.arms[1];
        assert_eq!(arm.goodput.as_ref().unwrap().judgement, Judgement::Worse);
        let mechanism = arm.mechanism.as_ref().unwrap();
        assert!(mechanism.limits_arm);
        assert_eq!(
            (mechanism.rule.as_str(), mechanism.next_limit.as_str()),
            ("shaper-burst", "shaper-rate")
        );
    }
}
