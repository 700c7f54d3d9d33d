//! The loss model: what was lost when, and which explanation makes that most likely.
//!
//! ```text
//! samples ──▶ points of a flow ──▶ steps of a round trip: sent, lost, in flight, queue ──▶ fits ──▶ the best
//! ```
//!
//! Each explanation is a generative model of how many segments each step loses. They are compared by penalised
//! likelihood, so the number of samples decides how much can be concluded. `path-loss` is sure only if no limit explains them as well.

mod bucket;
mod chance;
mod choose;
mod fit;
mod level;
mod order;
mod series;
#[cfg(test)]
mod simulated;

use goodput_model::{Loss, LossCandidate, LossModel, Missing};

use crate::view::View;
use choose::explanation;
pub use choose::may_be_a_limit;
use fit::Fit;
use order::Order;
use series::{Flow, Step};

/// What the flows lost over the whole run, and what explains it.
///
/// # Errors
/// If the sender's samples do not say what was sent, or the payload is not TCP's.
pub fn loss(view: &View) -> Result<Loss, Missing> {
    view.needs_tcp()?;
    let flows = series::flows(view)?;
    let late_s = view.sides().map(|side| side.late_s()).into_iter().fold(0.0, f64::max);
    Ok(fitted(&flows, late_s))
}

/// The same of flows' steps; a queue is longer than `late_s`, seconds.
fn fitted(flows: &[Flow], late_s: f64) -> Loss {
    let order = Order::of(flows);
    let lasting: Vec<&[Step]> = flows.iter().map(Flow::after_first_loss).collect();
    let fits = if order.is_all() { Vec::new() } else { candidates(&lasting) };
    let explanation = match order.is_all() {
        true => Ok(LossModel::Reordering),
        false => explanation(&lasting, &fits, late_s),
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

/// Every explanation of what was lost that could be tried, the best first.
fn candidates(flows: &[&[Step]]) -> Vec<Fit> {
    let models = [
        chance::random(flows),
        chance::runs(flows),
        level::flight(flows),
        level::shared_flight(flows),
        level::queue(flows),
        bucket::bucket(flows),
    ];
    let mut fits: Vec<Fit> = models.into_iter().flatten().collect();
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
