//! The loss model: what was lost when, and which explanation makes that most likely.
//!
//! ```text
//! samples ──▶ points of a flow ──▶ steps of a round trip: sent, lost, in flight, queue ──▶ fits ──▶ the best
//! ```
//!
//! Each explanation is a generative model of how many segments each step loses. They are compared by penalised
//! likelihood, so the number of samples decides how much can be concluded. `path-loss` is sure only if no limit explains them as well.

mod chance;
mod choose;
mod cuts;
mod fit;
mod level;
mod order;
mod outage;
mod plateau;
mod regular;
mod series;
#[cfg(test)]
mod simulated;
mod tokens;
mod totals;

use goodput_model::{Known, Loss, LossCandidate, LossModel, Missing};

use crate::account::held;
use crate::fitted::Fitted;
use crate::parts;
use crate::thresholds::MIN_COSTLY_SHARE;
use crate::view::View;
pub use choose::{chance_behind, chance_outdoes_a_rate, is_by_chance, may_be_a_limit};
use choose::{explanation, is_limit};
use fit::Fit;
use order::Order;
use outage::{Parted, criterion_of_moments};
use plateau::Compared;
use series::{Flow, LossStep};
use totals::{Total, totals};

/// What the flows lost over the whole run, and what explains it.
///
/// # Errors
/// If the sender's samples do not say what was sent, or the payload is not TCP's.
pub fn loss<'v>(view: &'v View) -> Result<&'v Loss, Missing> {
    view.loss_by(made)
}

fn made(view: &View) -> Result<Loss, Missing> {
    view.needs_tcp()?;
    let Series { flows, steps } = Series::of(view)?;
    let own = fitted(&flows, &steps, view.late_s());
    let crowd = flows.len() > 1 && !is_explained(&own, view) && sends_freely(view);
    let keeps_sending = view.backs_off_at_loss() == Ok(false);
    Ok(if crowd { of_a_crowd(own, &steps, keeps_sending) } else { own })
}

/// What the flows of a sender did, each by itself and all together.
struct Series {
    flows: Vec<Flow>,
    steps: Vec<Total>,
}

impl Series {
    fn of(view: &View) -> Result<Self, Missing> {
        let points = series::points(view)?;
        let steps = totals(&points, view.sender.min_rtt_s()?);
        Ok(Self { flows: series::flows_of(view, &points)?, steps })
    }
}

/// Whether a limit explains the losses of the flows. A congestion control that models the path has no window that losses cut,
/// so what its flows have in flight shows none.
fn is_explained(own: &Loss, view: &View) -> bool {
    let by_flight =
        matches!(own.explanation.value(), Some(LossModel::Flight | LossModel::SharedFlight));
    is_limit(own) && !(by_flight && view.backs_off_at_loss() == Ok(false))
}

/// Whether the flows had more to send but for a time that costs nothing, and both ends let them: only then what passes as
/// steadily as no chance lets it shows a rate of the path. Of many flows there are few samples, which say hardly how certain
/// that is.
fn sends_freely(view: &View) -> bool {
    held(view, parts::OWN_LIMITS).is_ok_and(|held| held.share() < MIN_COSTLY_SHARE)
}

/// The losses of several flows, of which each alone shows no limit, by the rate of all together if that stands out. The windows of
/// flows that keep sending whatever is lost (`keeps_sending`) hardly vary, so that they show neither a limit nor chance. But any
/// limit of the path lets as much of them pass each time, so that chance shows, too.
fn of_a_crowd(own: Loss, steps: &[Total], keeps_sending: bool) -> Loss {
    let Some(compared) = Compared::of(steps) else { return own };
    let is_open = keeps_sending && own.explanation.value().is_none();
    let explanation = match compared.shown() {
        Some(LossModel::Rate) => Known::Value(LossModel::Rate),
        Some(chance) if is_open => Known::Value(chance),
        None if is_open => own.explanation.clone(),
        _ => return own,
    };
    Loss { explanation, candidates: named(&compared.fits()).collect(), ..own }
}

/// What the losses show of each quantity that a number is fitted to.
///
/// # Errors
/// Those of [`loss`].
pub fn measured(view: &View) -> Result<Vec<(Fitted, f64)>, Missing> {
    view.needs_tcp()?;
    let Series { flows, steps } = Series::of(view)?;
    let own = fitted(&flows, &steps, view.late_s());
    let needless = own.needless_segments as f64 / own.repeated_segments as f64;
    let mut measured = vec![(Fitted::NeedlessIfLate, needless), (Fitted::NeedlessIfLost, needless)];
    measured.extend(tokens::ahead(&steps).map(|ahead| (Fitted::BucketAhead, ahead)));
    let rate = Some(&steps).filter(|_| flows.len() > 1 && sends_freely(view));
    if let Some(rate) = rate.and_then(|steps| plateau::compared(steps)) {
        let ahead = rate.ahead();
        measured.push((Fitted::RateAhead, ahead));
        measured.extend((ahead > 0.0).then_some((Fitted::AccidentShare, rate.accident_share)));
    }
    Ok(measured)
}

/// Whether times in which nothing arrived, by their begins and ends in seconds, are clearly better explained by a path that
/// was interrupted than by chance or by a limit that drops packets.
///
/// # Errors
/// Those of [`loss`].
pub fn outages_stand_out(view: &View, outages: &[(f64, f64)]) -> Result<bool, Missing> {
    view.needs_tcp()?;
    Ok(stand_out(&series::flows(view)?, outages))
}

fn stand_out(flows: &[Flow], outages: &[(f64, f64)]) -> bool {
    let parted: Vec<_> = flows.iter().map(|flow| Parted::of(&flow.steps, outages)).collect();
    let best = |of: fn(&Parted) -> &[LossStep]| {
        let steps: Vec<_> = parted.iter().map(of).collect();
        candidates(&steps, 0.0).first().map_or(0.0, |fit| fit.criterion)
    };
    let moments = flows.iter().map(|flow| flow.steps.len()).max().unwrap_or(0);
    let interrupted = best(|of| &of.rest) + criterion_of_moments(outages.len(), moments);
    best(|of| &of.whole) - interrupted >= Fitted::LimitAhead.value()
}

/// What explains the steps of flows, and of all flows together; a queue is longer than `late_s`, seconds.
fn fitted(flows: &[Flow], steps: &[Total], late_s: f64) -> Loss {
    let order = Order::of(flows);
    let (explanation, fits) = match order.is_all() {
        true => (Ok(LossModel::Reordering), Vec::new()),
        false => match tokens::stands_out(steps) {
            Some(fits) => (Ok(LossModel::Bucket), fits),
            None => of_flows(flows, late_s),
        },
    };
    let sum = |read: fn(&Flow) -> f64| flows.iter().map(read).sum::<f64>().max(0.0) as u64;
    Loss {
        sent_segments: sum(Flow::sent),
        lost_segments: sum(Flow::lost),
        repeated_segments: sum(|flow| flow.repeated),
        needless_segments: sum(|flow| flow.needless),
        late_segments: sum(|flow| flow.late),
        explanation: explanation.into(),
        candidates: order.candidate().into_iter().chain(named(&fits)).collect(),
    }
}

/// What explains the steps of each flow after slow start, and all that could be tried.
fn of_flows(flows: &[Flow], late_s: f64) -> (Result<LossModel, Missing>, Vec<Fit>) {
    let lasting: Vec<&[LossStep]> = flows.iter().map(Flow::after_first_loss).collect();
    let fits = candidates(&lasting, cuts::limit_ahead(flows));
    (explanation(&lasting, &fits, late_s), fits)
}

/// Every explanation of what was lost that could be tried, the best first. A limit explains the sizes at which windows were
/// cut by `limit_ahead` better than chance.
fn candidates(flows: &[&[LossStep]], limit_ahead: f64) -> Vec<Fit> {
    let random = chance::random(flows);
    // It is chance that is more regular. If it explains no more than chance, it says nothing of a limit.
    let regular = random.as_ref().and_then(|random| regular::regular(flows, random.criterion));
    let of_flight = [level::flight(flows), regular].into_iter().flatten();
    let models = [
        random,
        chance::runs(flows),
        of_flight.min_by(|a, b| a.criterion.total_cmp(&b.criterion)),
        level::shared_flight(flows),
        level::queue(flows),
    ];
    let mut fits: Vec<Fit> = models.into_iter().flatten().collect();
    for fit in &mut fits {
        fit.criterion += match fit.model {
            LossModel::Random | LossModel::Runs => limit_ahead,
            _ => 0.0,
        };
    }
    fits.sort_by(|a, b| a.criterion.total_cmp(&b.criterion));
    fits
}

fn named(fits: &[Fit]) -> impl Iterator<Item = LossCandidate> {
    let best = fits.first().map_or(0.0, |fit| fit.criterion);
    fits.iter().map(move |fit| LossCandidate {
        model: fit.model,
        behind: fit.criterion - best,
        parameters: fit.parameters.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 0.1 s; in each, 40 segments are sent and this number is lost.
    fn steps(lost: &[f64]) -> Vec<Flow> {
        let step = |(number, lost): (i32, &f64)| LossStep {
            from_s: f64::from(number) / 10.0,
            seconds: 0.1,
            sent: 40.0,
            lost: *lost,
            is_all_lost: false,
            passed: 40.0 - lost,
            flight: 40.0,
            all_flight: 40.0,
            queue_s: 0.0,
            jitter_s: 0.001,
            cut: None,
        };
        vec![Flow { steps: (0..).zip(lost).map(step).collect(), ..Flow::default() }]
    }

    /// Two outages of two steps each.
    fn interrupted_twice(mut lost: [f64; 40]) -> bool {
        for silent in [10, 11, 25, 26] {
            lost[silent] = 0.0;
        }
        stand_out(&steps(&lost), &[(1.0, 1.2), (2.5, 2.7)])
    }

    /// As many samples are read of 64 flows as of four, each less often.
    #[test]
    fn a_diagnosis_asks_for_no_more_likelihoods_than_flows_and_samples_allow() {
        let asked = |flows: usize| {
            let one = || (0..40).map(|n| f64::from(n * 7 % 5)).collect::<Vec<_>>();
            let flows: Vec<Flow> = (0..flows).flat_map(|_| steps(&one())).collect();
            let steps: usize = flows.iter().map(|flow| flow.steps.len()).sum();
            let count = fit::counted::during(|| {
                drop(of_flows(&flows, 0.001));
            });
            count as f64 / steps as f64
        };
        let (few, many) = (asked(4), asked(64));
        assert!((many / few - 1.0).abs() < 0.5, "for each step {few}, of 64 flows {many}");
        assert!(many < 500.0, "{many}");
    }

    #[test]
    fn outages_stand_out_of_a_path_that_loses_little() {
        assert!(interrupted_twice([0.0; 40]));
        let mut seldom = [0.0; 40];
        (seldom[3], seldom[18], seldom[33]) = (1.0, 1.0, 2.0);
        assert!(interrupted_twice(seldom));
    }

    /// A tiny queue that loses of each window, and two time-outs that each lost a window of 3.
    #[test]
    fn they_do_not_of_a_limit_that_explains_the_losses_beside_them_as_well() {
        let lost: Vec<f64> = (0..50).map(|number| f64::from(6 + number * 7 % 3)).collect();
        let mut flows = steps(&lost);
        for (number, step) in flows[0].steps.iter_mut().enumerate() {
            (step.passed, step.flight) = (48.0 - step.lost, 48.0);
            if [20, 35].contains(&number) {
                (step.lost, step.passed, step.flight) = (0.0, 0.0, 3.0);
            }
        }
        let outages = [(2.0, 2.1), (3.5, 3.6)];
        let parted = Parted::of(&flows[0].steps, &outages);
        assert!(parted.whole.iter().filter(|step| step.is_all_lost).count() >= 2);
        let is_regular = |steps: &[LossStep]| {
            let random = chance::random(&[steps]).unwrap().criterion;
            regular::regular(&[steps], random).is_some()
        };
        assert!(is_regular(&parted.rest) && is_regular(&parted.whole));
        assert!(!stand_out(&flows, &outages));
    }

    #[test]
    fn they_do_not_among_runs_that_are_nearly_as_long() {
        let mut runs = [0.0; 40];
        for (number, lost) in [(2, 25.0), (6, 8.0), (14, 33.0), (19, 4.0), (22, 18.0), (31, 29.0)] {
            runs[number] = lost;
        }
        assert!(!interrupted_twice(runs));
    }
}
