//! Losses from a level on: of what is in flight, or of a queue.

use goodput_model::LossModel;

use super::fit::{EXCESSES, Fit, INTERVAL_NATS, step_nats, sums};
use super::series::LossStep;

/// How many levels are tried, of those of the steps with a loss.
const LEVELS: usize = 10;
/// Of the excesses, each second is tried, which costs half as much: at a level, most of what varies is explained already.
const EXCESSES_APART: usize = 2;
/// Share of the steps, by what passed, that show the rate of a queue that is never empty.
const FULL_SHARE: f64 = 0.2;
/// A chance below and one above the level, the level, and how much the number varies.
pub const FREE_PARAMETERS: f64 = 4.0;

/// From a certain amount in flight on, in each flow.
pub fn flight(flows: &[&[LossStep]]) -> Option<Fit> {
    let found = Found::of(flows, |step| step.flight)?;
    let (least, most) = found.interval;
    found.fit(LossModel::Flight)?.with("flight_segments", found.middle, (least, most)).sound()
}

/// From a certain amount in flight on, of all flows together; missing if there is only one.
pub fn shared_flight(flows: &[&[LossStep]]) -> Option<Fit> {
    if flows.len() < 2 {
        return None;
    }
    let found = Found::of(flows, |step| step.all_flight)?;
    let interval = found.interval;
    found.fit(LossModel::SharedFlight)?.with("flight_segments", found.middle, interval).sound()
}

/// When a queue is full: its delay and its rate give its length.
pub fn queue(flows: &[&[LossStep]]) -> Option<Fit> {
    let found = Found::of(flows, |step| step.queue_s)?;
    let rate = full_rate(flows)?;
    let (least, most) = found.interval;
    found
        .fit(LossModel::Queue)?
        .with("queue_s", found.middle, (least, most))
        .with("queue_segments", found.middle * rate, (least * rate, most * rate))
        .sound()
}

/// Segments a second that pass while the path carries most, all flows together.
fn full_rate(flows: &[&[LossStep]]) -> Option<f64> {
    let rate = |step: &LossStep| step.passed / step.seconds;
    let of = |steps: &&[LossStep]| {
        let mut rates: Vec<f64> = steps.iter().map(rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(((1.0 - FULL_SHARE / 2.0) * rates.len() as f64) as usize).copied()
    };
    flows.iter().map(of).sum()
}

/// The level that fits best.
struct Found {
    nats: f64,
    /// Median of the level in the steps that lost something above it.
    middle: f64,
    /// Levels that fit hardly less well.
    interval: (f64, f64),
    steps: usize,
}

impl Found {
    fn of(flows: &[&[LossStep]], level: fn(&LossStep) -> f64) -> Option<Self> {
        let steps: Vec<&LossStep> = flows.iter().copied().flatten().collect();
        let lossy = || steps.iter().filter(|step| step.lost > 0.0);
        let mut at_losses: Vec<f64> = lossy().map(|step| level(step)).collect();
        at_losses.sort_by(f64::total_cmp);
        let levels = distinct_quantiles(lossy().map(|step| level(step)), LEVELS);
        let tried: Vec<(f64, f64)> =
            levels.into_iter().filter_map(|at| Some((at, from(&steps, level, at)?))).collect();
        let nats = tried.iter().map(|(_, nats)| *nats).reduce(f64::max)?;
        let near: Vec<f64> =
            tried.iter().filter(|one| nats - one.1 <= INTERVAL_NATS).map(|one| one.0).collect();
        let least = *near.first()?;
        let above: Vec<f64> = at_losses.iter().copied().filter(|at| *at >= least).collect();
        let middle = *above.get(above.len() / 2)?;
        let interval = (least, near.last()?.max(middle));
        Some(Self { nats, middle, interval, steps: steps.len() })
    }

    fn fit(&self, model: LossModel) -> Option<Fit> {
        Fit::new(model, FREE_PARAMETERS, self.nats, self.steps).sound()
    }
}

/// This many quantiles of values at equal distances, the least first; each only once.
pub fn distinct_quantiles(values: impl Iterator<Item = f64>, count: usize) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let quantile = |number: usize| values.get(number * values.len() / count).copied();
    let mut quantiles: Vec<f64> = (0..count).filter_map(quantile).collect();
    quantiles.dedup();
    quantiles
}

/// Log-likelihood if more is lost from this level on; `None` if no more is.
fn from(steps: &[&LossStep], level: fn(&LossStep) -> f64, at: f64) -> Option<f64> {
    let hits: Vec<(&LossStep, bool)> =
        steps.iter().map(|step| (*step, level(step) >= at)).collect();
    split(&hits)
}

/// Log-likelihood with one chance in the steps that are hit and another in the rest; `None` if those that are hit lose
/// no larger share, or are all or none.
pub fn split(steps: &[(&LossStep, bool)]) -> Option<f64> {
    let part = |hit| sums(steps.iter().filter(|step| step.1 == hit).map(|step| step.0));
    let ((came, lost), (came_below, lost_below)) = (part(true), part(false));
    if came <= 0.0 || came_below <= 0.0 || lost / came <= lost_below / came_below {
        return None;
    }
    let share = |hit: bool| if hit { lost / came } else { lost_below / came_below };
    let at = |excess: f64| {
        let each = steps.iter().map(|(step, hit)| step_nats(step, share(*hit), excess));
        each.sum::<f64>()
    };
    EXCESSES.into_iter().step_by(EXCESSES_APART).map(at).reduce(f64::max)
}
