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
    let events = f64::from(events);
    match step.is_all_lost {
        true => at_least_nats(lost, mean, events),
        false => nats(lost, mean, events) + libm::lgamma(lost + 1.0),
    }
}

/// Log-likelihood of this many losses or more where `mean` are expected.
fn at_least_nats(least: f64, mean: f64, events: f64) -> f64 {
    /// Below the sum; a thousand millionth of it.
    const NEGLIGIBLE_NATS: f64 = 21.0;
    let (mut lost, mut next) = (least, nats(least, mean, events));
    let mut sum = next;
    while lost < mean || next > sum - NEGLIGIBLE_NATS {
        lost += 1.0;
        next = nats(lost, mean, events);
        sum = log_add(sum, next);
    }
    sum
}

/// Log-likelihood of this many losses where `mean` are expected. Stays a logarithm throughout: the chance of a large burst
/// is less than a number can hold.
fn nats(lost: f64, mean: f64, events: f64) -> f64 {
    let all = events * mean;
    let poisson = |count: f64| count * all.ln() - all - libm::lgamma(count + 1.0);
    let reach = 1 - events as i32..events as i32;
    let begins = reach.map(f64::from).filter(|apart| events * lost + apart >= 0.0);
    begins
        .map(|apart| (1.0 - apart.abs() / events).ln() + poisson(events * lost + apart))
        .fold(f64::NEG_INFINITY, log_add)
}

/// The logarithm of the sum of two numbers given by their logarithms.
fn log_add(one: f64, other: f64) -> f64 {
    let (less, more) = (one.min(other), one.max(other));
    if more == f64::NEG_INFINITY { more } else { more + (less - more).exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::chance::random;

    #[test]
    fn the_distribution_adds_up_to_one_and_has_its_mean() {
        for events in EVENTS.map(f64::from) {
            let counts = || (0..200).map(f64::from);
            let chance = |lost: f64| nats(lost, 7.3, events).exp();
            let sum: f64 = counts().map(chance).sum();
            let mean: f64 = counts().map(|lost| lost * chance(lost)).sum();
            assert!((sum - 1.0).abs() < 1e-9 && (mean - 7.3).abs() < 1e-9, "{sum} {mean}");
            let fewer: f64 = (0..5).map(f64::from).map(chance).sum();
            let five = at_least_nats(5.0, 7.3, events).exp();
            assert!((five - (1.0 - fewer)).abs() < 1e-8, "{five} {fewer}");
        }
        assert!((nats(3.0, 2.0, 1.0).exp() - (-2.0_f64).exp() * 8.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn a_burst_that_chance_does_not_explain_is_no_more_regular() {
        for events in EVENTS.map(f64::from) {
            let by_chance = nats(1000.0, 0.1, 1.0);
            assert!(nats(1000.0, 0.1, events) < by_chance);
            let or_more = at_least_nats(1000.0, 0.1, events);
            assert!((nats(1000.0, 0.1, events)..by_chance).contains(&or_more), "{or_more}");
        }
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
            cut: None,
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
