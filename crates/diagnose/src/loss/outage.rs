//! Times in which nothing arrived: losses of whatever explains the others, or of a path that was interrupted.
//!
//! Both explanations are of the same steps. Under the first, an outage is a step that lost all that was in flight. Under the
//! second it lost that with certainty, and what needs an explanation is the moment at which it began.

use super::series::LossStep;

/// A flow's steps, with the outages and without.
#[derive(Debug, Default)]
pub struct Parted {
    /// Each outage is one step, which lost all that was in flight.
    pub whole: Vec<LossStep>,
    /// The steps between the outages.
    pub rest: Vec<LossStep>,
}

impl Parted {
    /// Of steps in the order of time, and the outages' begins and ends, seconds.
    pub fn of(steps: &[LossStep], outages: &[(f64, f64)]) -> Self {
        let (mut parted, mut entered) = (Self::default(), None);
        for step in steps {
            let is_in = |(from_s, to_s): &(f64, f64)| {
                step.from_s < *to_s && step.from_s + step.seconds > *from_s
            };
            let within = outages.iter().position(is_in);
            match within {
                None => {
                    parted.whole.push(*step);
                    parted.rest.push(*step);
                }
                Some(outage) if entered != Some(outage) => {
                    let (sent, lost, is_all_lost) = (step.flight, step.flight, true);
                    parted.whole.push(LossStep { sent, lost, is_all_lost, passed: 0.0, ..*step });
                }
                Some(_) => {}
            }
            entered = within;
        }
        parted
    }
}

/// The information criterion of outages that each begin at one of `moments` moments, all equally likely.
pub fn criterion_of_moments(outages: usize, moments: usize) -> f64 {
    let (outages, moments) = (outages as f64, moments.max(1) as f64);
    let nats = |count: f64| if count > 0.0 { count * (count / moments).ln() } else { 0.0 };
    moments.ln() - 2.0 * (nats(outages.min(moments)) + nats(moments - outages))
}
