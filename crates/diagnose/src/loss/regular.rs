//! Losses at nearly equal distances: a limit that the window meets again each time it has grown.
//!
//! If the window meets it several times between two samples, no sample shows its size. But chance has no memory, and so its
//! losses vary more in number. Here, each of a few equally likely events brings the next loss nearer, as in a renewal
//! process with Erlang's distances (Winkelmann 1995, "Duration Dependence and Dispersion in Count-Data Models"). A step
//! begins at any time between two losses.

use goodput_model::LossModel;

use super::fit::{Fit, share_interval, sums};
use super::series::LossStep;

/// Events between two losses that are tried; with one, this is chance. The distances then vary by 71 to 25 % of their mean.
const EVENTS: [u32; 4] = [2, 4, 8, 16];
/// The lost share, and how regular the losses are.
const FREE_PARAMETERS: f64 = 2.0;

/// The best fit, if something was lost.
pub fn regular(flows: &[&[LossStep]]) -> Option<Fit> {
    let steps = || flows.iter().copied().flatten();
    let (sent, lost) = sums(steps());
    let share = lost / sent;
    if !(share > 0.0 && share.is_finite()) {
        return None;
    }
    let at = |share: f64, events: u32| steps().map(|step| step_nats(step, share, events)).sum();
    let tried: [(u32, f64); 4] = EVENTS.map(|events| (events, at(share, events)));
    let (events, nats) = tried.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (least, most) = share_interval(share, |share| at(share, events));
    Fit::new(LossModel::Flight, FREE_PARAMETERS, nats, steps().count())
        .with("segments_between_losses", 1.0 / share, (1.0 / most, 1.0 / least))
        .sound()
}

/// Log-likelihood of what a step lost, without the part that every explanation has in common.
fn step_nats(step: &LossStep, share: f64, events: u32) -> f64 {
    let (mean, lost) = (step.sent * share, step.lost.round());
    if mean <= 0.0 {
        return if lost > 0.0 { f64::NEG_INFINITY } else { 0.0 };
    }
    let chance = |lost: f64| chance(lost, mean, f64::from(events));
    if step.is_all_lost {
        let fewer: f64 = (0..lost as u32).map(|fewer| chance(f64::from(fewer))).sum();
        return (1.0 - fewer).max(f64::MIN_POSITIVE).ln();
    }
    chance(lost).max(f64::MIN_POSITIVE).ln() + libm::lgamma(lost + 1.0)
}

/// The chance of this many losses where `mean` are expected.
fn chance(lost: f64, mean: f64, events: f64) -> f64 {
    let all = events * mean;
    let poisson = |count: f64| (count * all.ln() - all - libm::lgamma(count + 1.0)).exp();
    let reach = 1 - events as i32..events as i32;
    let begins = reach.map(f64::from).filter(|apart| events * lost + apart >= 0.0);
    begins.map(|apart| (1.0 - apart.abs() / events) * poisson(events * lost + apart)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::chance::random;

    #[test]
    fn the_distribution_adds_up_to_one_and_has_its_mean() {
        for events in EVENTS.map(f64::from) {
            let counts = || (0..200).map(f64::from);
            let sum: f64 = counts().map(|lost| chance(lost, 7.3, events)).sum();
            let mean: f64 = counts().map(|lost| lost * chance(lost, 7.3, events)).sum();
            assert!((sum - 1.0).abs() < 1e-9 && (mean - 7.3).abs() < 1e-9, "{sum} {mean}");
        }
        assert!((chance(3.0, 2.0, 1.0) - (-2.0_f64).exp() * 8.0 / 6.0).abs() < 1e-12);
    }

    /// Steps of 48 segments that lose these.
    fn ahead_of_chance(lost: impl IntoIterator<Item = u32>) -> f64 {
        let step = |lost: u32| LossStep {
            from_s: 0.0,
            seconds: 0.3,
            sent: 48.0,
            lost: f64::from(lost),
            is_all_lost: false,
            passed: 48.0 - f64::from(lost),
            flight: 3.0,
            all_flight: 3.0,
            queue_s: 0.0,
            jitter_s: 0.001,
        };
        let steps: Vec<_> = lost.into_iter().map(step).collect();
        let flows = [&steps[..]];
        random(&flows).unwrap().criterion - regular(&flows).unwrap().criterion
    }

    #[test]
    fn losses_at_equal_distances_are_no_chance() {
        // A queue of two packets, as measured.
        assert!(ahead_of_chance([6, 8, 6, 7, 6, 6, 8, 6, 7, 6, 6, 8]) > 4.0);
        // Counts of a Poisson distribution of mean 6.6 at even quantiles.
        assert!(ahead_of_chance([3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 11]) < 0.0);
    }
}
