//! Checks for reasons that make a comparison's numbers misleading although its test holds: drift, and runs that depend on
//! their order (`order`); and why nothing was adjusted for.

use goodput_model::Trial;

use crate::conditions::Copies;
use crate::design::Design;
use crate::order::order_doubt;
use crate::pairs::Runs;
use crate::responses::for_ratio;

/// A check reports only if chance alone would make it report this rarely, in standard deviations (two-sided p = .01).
const MIN_STANDARD_DEVIATIONS: f64 = 2.576;

/// Fewest runs for the normal approximation, as two groups of four (Lehmann, "Nonparametrics", 1.3).
const MIN_RUNS: usize = 8;

/// Sentences for the record: the baseline drifted, runs depend on what ran before, or an arm changes the condition
/// that its differences could have been adjusted for.
pub(crate) fn checks(design: &Design, trials: &[Trial]) -> Vec<String> {
    let runs = Runs::of(trials, design.arms);
    let drift = drift(design, &runs);
    // A drift is from run to run as well.
    let of_order = || order_doubt(*design.responses.first()?, [trials]);
    let order = if drift.is_some() { None } else { of_order() };
    [drift, order, not_adjusted(design, &runs)].into_iter().flatten().collect()
}

/// An arm changes the condition beside its runs (see `conditions`).
fn not_adjusted(design: &Design, runs: &Runs) -> Option<String> {
    let response = *design.responses.first()?;
    (runs.copies(for_ratio(response)) == Copies::Changed).then(|| {
        "an arm changes what a copy of memory beside its runs costs; no difference is adjusted for that, because it may be part of the arm's effect".into()
    })
}

/// Mann's test for a trend (Econometrica 13, 1945) of the baseline's runs.
fn drift(design: &Design, runs: &Runs) -> Option<String> {
    let response = *design.responses.first()?;
    let values: Vec<f64> = runs.compared(0).filter_map(for_ratio(response)).collect();
    let n = values.len() as f64;
    let pairs = (0..values.len()).flat_map(|late| (0..late).map(move |early| (early, late)));
    let rises: f64 = pairs.map(|(early, late)| sign(values[late] - values[early])).sum();
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let is_drift = values.len() >= MIN_RUNS && rises.abs() > MIN_STANDARD_DEVIATIONS * deviation;
    is_drift.then(|| {
        let way = if rises > 0.0 { "rose" } else { "fell" };
        format!(
            "{response} of the baseline {way} steadily while the comparison ran; arms are judged within blocks, but medians of arms with different n are not comparable"
        )
    })
}

fn sign(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number.signum() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::REFERENCE_COPY;
    use crate::pairs::tests::trial;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    fn noise(block: u32, arm: usize) -> f64 {
        let seed = u64::from(block) << 8 | arm as u64;
        90.0 + 20.0 * Xoshiro256PlusPlus::seed_from_u64(seed).random::<f64>()
    }

    fn trials(goodput: impl Fn(u32, usize, bool) -> f64) -> Vec<Trial> {
        let block = |block: u32| {
            let order = if block.is_multiple_of(2) { [0, 1] } else { [1, 0] };
            let run =
                |place: usize| trial(block, order[place], goodput(block, order[place], place == 0));
            [run(0), run(1)]
        };
        (1..=16).flat_map(block).collect()
    }

    #[test]
    fn an_arm_that_changes_the_copy_is_named() {
        let beside = |factor: f64| {
            let mut trials = trials(|block, arm, _| noise(block, arm));
            for trial in &mut trials {
                let copy = [1.0, factor][trial.arm] * noise(trial.block, trial.arm + 2);
                trial.conditions.insert(REFERENCE_COPY.into(), copy);
            }
            checks(&Design::default(), &trials)
        };
        let said = beside(0.5).join("; ");
        assert!(said.contains("no difference is adjusted for that"), "{said}");
        assert!(beside(1.0).is_empty());
    }

    #[test]
    fn a_steady_path_is_not_doubted() {
        let steady = trials(|block, arm, _| noise(block, arm));
        assert!(checks(&Design::default(), &steady).is_empty());
        assert!(checks(&Design::default(), &steady[..6]).is_empty());
    }

    #[test]
    fn a_baseline_that_falls_is_said() {
        let falling = trials(|block, arm, _| noise(block, arm) - 5.0 * f64::from(block));
        let said = checks(&Design::default(), &falling);
        assert!(said.len() == 1 && said[0].contains("fell steadily"), "{said:?}");
    }

    #[test]
    fn a_second_run_that_pays_for_the_first_is_said() {
        let credit =
            trials(|block, arm, is_first| noise(block, arm) * if is_first { 1.5 } else { 1.0 });
        let said = checks(&Design::default(), &credit);
        assert!(said.len() == 1 && said[0].contains("order of the runs"), "{said:?}");
    }
}
