//! Losses at nearly equal distances: a limit that the window meets again each time it has grown.
//!
//! If the window meets it several times between two samples, no sample shows its size. But chance has no memory, and so its
//! losses vary more in number. Here, each of a few events brings the next loss nearer, and each segment is such an event with
//! the same chance: a renewal process (Winkelmann 1995, "Duration Dependence and Dispersion in Count-Data Models") that
//! counts segments instead of time, so that it is chance itself with one event, at any share that is lost. A step begins at
//! any place between two losses. If most segments are lost, it is those that pass that come at nearly equal distances.

use goodput_model::LossModel;

use super::fit::{Fit, all_lost_nats, share_interval, sums, ways};
use super::series::LossStep;

/// Events between two losses that are tried; with one, this is chance. The distances then vary by 71 to 25 % of their mean, and
/// less the larger the share is that is lost.
const EVENTS: [u32; 4] = [2, 4, 8, 16];
/// The lost share, and how regular the losses are.
const FREE_PARAMETERS: f64 = 2.0;

/// The best fit, if something was lost, and if its information criterion is less than this one: chance's, which it must be ahead
/// of to say anything.
pub fn regular(flows: &[&[LossStep]], below: f64) -> Option<Fit> {
    let steps = || flows.iter().copied().flatten();
    let (came, lost) = sums(steps());
    let share = lost / came;
    if !(share > 0.0 && share.is_finite()) {
        return None;
    }
    let counted: Vec<Counted> = steps().map(Counted::of).collect();
    let at = |share: f64, events: u32| counted.iter().map(|step| step.nats(share, events)).sum();
    let tried: [(u32, f64); 4] = EVENTS.map(|events| (events, at(share, events)));
    let (events, nats) = tried.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let fit = Fit::new(LossModel::Flight, FREE_PARAMETERS, nats, steps().count());
    let fit = fit.sound().filter(|fit| fit.criterion < below)?;
    let (least, most) = share_interval(share, |share| at(share, events));
    fit.with("segments_between_losses", 1.0 / share, (1.0 / most, 1.0 / least)).sound()
}

/// What a step lost of what came to it, in whole segments, and the part of the likelihood that every explanation has in common.
struct Counted {
    lost: f64,
    came: f64,
    ways: f64,
    is_all_lost: bool,
}

impl Counted {
    fn of(step: &LossStep) -> Self {
        let (lost, came) = (step.lost.round(), step.came().round());
        Self { lost, came, ways: ways(lost, came), is_all_lost: step.is_all_lost }
    }

    /// Log-likelihood without the common part. A step that lost all that was in flight is no part of the rhythm, which never
    /// loses most of a window: as under chance, each of its segments is lost with the chance of the others.
    fn nats(&self, share: f64, events: u32) -> f64 {
        match self.is_all_lost {
            true => all_lost_nats(self.came, share, 0.0),
            false => nats(self.lost, self.came, share, events) - self.ways,
        }
    }
}

/// Log-likelihood that so many of the segments that came are lost, if this share is lost and so many events lie between two
/// losses. Stays a logarithm throughout: the chance of a large burst is
/// less than a number can hold. Nothing is so regular that it loses more than one of so many.
fn nats(lost: f64, came: f64, share: f64, events: u32) -> f64 {
    let events = f64::from(events);
    let (counted, each) = if share <= 0.5 { (lost, share) } else { (came - lost, 1.0 - share) };
    let chance = events * each;
    if !(chance > 0.0 && chance < 1.0) {
        return f64::NEG_INFINITY;
    }
    let least = (events * counted - events + 1.0).max(0.0);
    let most = (events * counted + events - 1.0).min(came);
    if least > most {
        return f64::NEG_INFINITY;
    }
    let odds = chance.ln() - (-chance).ln_1p();
    let first = ways(least, came) + least * odds + came * (-chance).ln_1p();
    let numbers = (0..2 * events as u32).map(|after| least + f64::from(after));
    let one = |(sum, happen): (f64, f64), number: f64| {
        // Of the places at which a step may begin, so many lead from this number of events to these losses.
        let begins = 1.0 - (number - events * counted).abs() / events;
        let next = ((came - number) / (number + 1.0)).ln() + odds;
        (log_add(sum, begins.ln() + happen), happen + next)
    };
    let within = numbers.take_while(|number| *number <= most);
    within.fold((f64::NEG_INFINITY, first), one).0
}

/// The logarithm of the sum of two numbers given by their logarithms.
fn log_add(one: f64, other: f64) -> f64 {
    let (less, more) = (one.min(other), one.max(other));
    if more == f64::NEG_INFINITY { more } else { more + (less - more).exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::fitted::Fitted;
    use crate::loss::chance::random;

    fn chance(lost: f64, came: f64, share: f64, events: u32) -> f64 {
        nats(lost, came, share, events).exp()
    }

    #[test]
    fn the_distribution_adds_up_to_one_and_has_its_mean() {
        for (events, share) in [(1, 0.3), (2, 0.3), (4, 0.2), (8, 0.1), (16, 0.05), (2, 0.8)] {
            let counts = || (0..=73).map(f64::from);
            let sum: f64 = counts().map(|lost| chance(lost, 73.0, share, events)).sum();
            let mean: f64 = counts().map(|lost| lost * chance(lost, 73.0, share, events)).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{events} {share}: {sum}");
            assert!((mean - 73.0 * share).abs() < 1e-9, "{events} {share}: {mean}");
        }
    }

    #[test]
    fn with_one_event_it_is_chance() {
        for (lost, share) in [(3.0, 0.1), (20.0, 0.3), (50.0, 0.8)] {
            let by_chance = super::super::fit::nats(lost, 60.0, share, 0.0);
            let one = nats(lost, 60.0, share, 1) - ways(lost, 60.0);
            assert!((one - by_chance).abs() < 1e-9, "{lost} {share}");
        }
    }

    #[test]
    fn a_burst_that_chance_does_not_explain_is_no_more_regular() {
        for events in EVENTS {
            assert!(nats(1000.0, 1_000_000.0, 1e-7, events) < nats(1000.0, 1_000_000.0, 1e-7, 1));
            assert_eq!(nats(1000.0, 1000.0, 0.01, events), f64::NEG_INFINITY);
        }
    }

    /// Each segment is lost with the same chance, of flows whose steps are of any size.
    #[test]
    fn heavy_loss_by_chance_is_no_more_regular_than_chance() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for share in [0.1, 0.2, 0.3, 0.4, 0.6, 0.8] {
            for _ in 0..50 {
                let mut lost = |came: u32| (0..came).filter(|_| rng.random_bool(share)).count();
                let sizes = (0..60).map(|number| 20 + number % 40);
                let steps: Vec<_> = sizes.map(|came| (lost(came) as u32, came)).collect();
                let ahead = ahead_of_chance(steps);
                assert!(ahead < Fitted::LimitAhead.value(), "{share}: {ahead}");
            }
        }
    }

    /// Steps that lose the first of these numbers of the second; 0 or less if nothing regular can be tried.
    fn ahead_of_chance(steps: impl IntoIterator<Item = (u32, u32)>) -> f64 {
        let step = |(lost, came): (u32, u32)| LossStep {
            from_s: 0.0,
            seconds: 0.3,
            sent: f64::from(came),
            lost: f64::from(lost),
            is_all_lost: false,
            passed: f64::from(came - lost),
            flight: 3.0,
            all_flight: 3.0,
            queue_s: 0.0,
            jitter_s: 0.001,
            cut: None,
        };
        let steps: Vec<_> = steps.into_iter().map(step).collect();
        let flows = [&steps[..]];
        let regular = regular(&flows, f64::INFINITY).map_or(f64::INFINITY, |fit| fit.criterion);
        random(&flows).unwrap().criterion - regular
    }

    #[test]
    fn it_is_no_explanation_unless_it_is_ahead_of_chance() {
        let step =
            |lost: f64| LossStep { sent: 48.0, lost, passed: 48.0 - lost, ..LossStep::default() };
        let steps: Vec<_> = [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 11.0].map(step).into();
        let chance = random(&[&steps]).unwrap().criterion;
        assert!(regular(&[&steps], f64::INFINITY).is_some_and(|fit| fit.criterion > chance));
        assert!(regular(&[&steps], chance).is_none());
    }

    #[test]
    fn losses_at_equal_distances_are_no_chance() {
        // A queue of two packets, as measured.
        let of = |lost: [u32; 12]| ahead_of_chance(lost.map(|lost| (lost, 48)));
        assert!(of([6, 8, 6, 7, 6, 6, 8, 6, 7, 6, 6, 8]) > 4.0);
        // Counts of a Poisson distribution of mean 6.6 at even quantiles.
        assert!(of([3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 11]) < 0.0);
    }
}
