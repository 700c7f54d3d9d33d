//! Losses at an empty token bucket, as a policer has it (Flach et al., "An Internet-Wide Analysis of Traffic Policing",
//! SIGCOMM 2016).

use goodput_model::LossModel;

use super::fit::{Fit, interval};
use super::level::split;
use super::series::LossStep;

/// Rates that are tried, over what passed between the first and the last loss.
const RATE_RATIOS: [f64; 7] = [0.94, 0.96, 0.98, 1.0, 1.02, 1.04, 1.06];
/// Depths that are tried, segments: twice as many each time.
const DEPTH_EXPONENTS: std::ops::Range<i32> = 0..16;
/// Rate, depth, a chance with tokens and one without, and how much the number varies.
const FREE_PARAMETERS: f64 = 5.0;

/// A bucket that fills at a rate up to a depth, and drops what finds no token. Of one flow only: of several, each step
/// sees a part of what the bucket sees.
pub fn bucket(flows: &[&[LossStep]]) -> Option<Fit> {
    let [steps] = flows else { return None };
    let passed = passed_between_losses(steps)?;
    let mut tried = Vec::new();
    for rate in RATE_RATIOS.map(|ratio| ratio * passed) {
        for depth in DEPTH_EXPONENTS.map(|power| 2f64.powi(power)) {
            tried.extend(nats(steps, rate, depth).map(|nats| (rate, depth, nats)));
        }
    }
    let best = tried.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let rates = tried.iter().filter(|one| one.1 == best.1).map(|one| (one.0, one.2));
    let depths = tried.iter().filter(|one| one.0 == best.0).map(|one| (one.1, one.2));
    Fit::new(LossModel::Bucket, FREE_PARAMETERS, best.2, steps.len())
        .with("rate_segments_per_s", best.0, interval(rates))
        .with("depth_segments", best.1, interval(depths))
        .sound()
}

/// Segments a second that passed from the first step with a loss to the last.
fn passed_between_losses(steps: &[LossStep]) -> Option<f64> {
    let first = steps.iter().position(|step| step.lost > 0.0)?;
    let last = steps.iter().rposition(|step| step.lost > 0.0)?;
    let between = steps.get(first + 1..=last)?;
    let sum = |read: fn(&LossStep) -> f64| between.iter().map(read).sum::<f64>();
    let (passed, seconds) = (sum(|step| step.passed), sum(|step| step.seconds));
    (passed > 0.0 && seconds > 0.0).then(|| passed / seconds)
}

fn nats(steps: &[LossStep], rate: f64, depth: f64) -> Option<f64> {
    let mut tokens = depth;
    let hits: Vec<(&LossStep, bool)> = steps
        .iter()
        .map(|step| {
            let left = tokens + rate * step.seconds - (step.sent - step.lost);
            tokens = left.clamp(0.0, depth);
            (step, left < 1.0)
        })
        .collect();
    split(&hits)
}
