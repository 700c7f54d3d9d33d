//! Which explanation is reported.

use goodput_model::{Loss, LossModel, Missing};

use super::fit::{Fit, sums};
use super::level::FREE_PARAMETERS;
use super::series::LossStep;
use crate::fitted::Fitted;

/// Share of the most in flight above which a limit of that would lose nearly everything.
const NEAR_THE_MOST: f64 = 0.85;
/// Fewer steps that lost something show no pattern.
const MIN_LOSSES: usize = 2;

/// The best of the fits, which begin with it.
///
/// # Errors
/// If too little was lost, or chance and a limit explain it about as well.
pub fn explanation(flows: &[&[LossStep]], fits: &[Fit], late_s: f64) -> Result<LossModel, Missing> {
    let steps = || flows.iter().copied().flatten();
    let losses = steps().filter(|step| step.lost > 0.0).count();
    if losses < MIN_LOSSES {
        return Err(Missing::because(match losses {
            0 => "nothing was lost after the first losses",
            _ => "too little was lost after the first losses",
        }));
    }
    let best = |by_chance| fits.iter().find(|fit| is_chance(fit.model) == by_chance);
    let apart = match (best(true), best(false)) {
        (Some(chance), Some(limit)) => chance.criterion - limit.criterion,
        (Some(_), None) => f64::NEG_INFINITY,
        (None, _) => return Err(Missing::because("no explanation could be tried")),
    };
    let enough = Fitted::LimitAhead.value();
    match (best(true), best(false)) {
        (Some(chance), _) if apart <= -enough && would_show(flows) => Ok(chance.model),
        (_, Some(limit)) if apart >= enough => Ok(named(limit.model, queues(flows, late_s))),
        _ => Err(Missing::because("chance and a limit explain the losses about as well")),
    }
}

/// How far the best explanation by chance lies behind the best of all, in the information criterion; `None` if none was
/// tried.
pub fn chance_behind(loss: &Loss) -> Option<f64> {
    behind(loss, true)
}

/// How far the best explanation by chance and the best by a limit lie behind the best of all.
pub fn behind_both(loss: &Loss) -> (Option<f64>, Option<f64>) {
    (behind(loss, true), behind(loss, false))
}

fn behind(loss: &Loss, by_chance: bool) -> Option<f64> {
    let mut fits = loss.candidates.iter();
    fits.find(|fit| is_chance(fit.model) == by_chance).map(|fit| fit.behind)
}

/// Whether chance explains the losses clearly better than any limit.
pub fn is_by_chance(loss: &Loss) -> bool {
    loss.explanation.value().is_some_and(|model| is_chance(*model))
}

/// Whether a limit explains the losses better than chance, or about as well.
pub fn may_be_a_limit(loss: &Loss) -> bool {
    let (chance, limit) = behind_both(loss);
    let is_near = |(chance, limit): (f64, f64)| limit - chance < Fitted::LimitAhead.value();
    is_limit(loss) || chance.zip(limit).is_some_and(is_near)
}

/// Whether chance explains what all flows lost together clearly better than a rate which passes, though perhaps not so clearly
/// that it is the explanation. No if that was not compared.
pub fn chance_outdoes_a_rate(loss: &Loss) -> bool {
    let rate = loss.candidates.iter().find(|fit| fit.model == LossModel::Rate);
    let apart = rate.zip(chance_behind(loss)).map(|(rate, chance)| rate.behind - chance);
    apart.is_some_and(|apart| apart >= Fitted::LimitAhead.value())
}

/// Whether a limit of what is in flight would have shown, had there been one: it loses only near the most, so each
/// loss is the likelier under it the more was sent with less in flight. If that hardly varied, or too little was
/// lost, that chance needs fewer parameters says nothing.
fn would_show(flows: &[&[LossStep]]) -> bool {
    let (mut nats, mut steps) = (0.0, 0);
    for flow in flows {
        let most = flow.iter().map(|step| step.flight).fold(0.0, f64::max);
        let near = flow.iter().filter(|step| step.flight >= NEAR_THE_MOST * most);
        let ((came_near, _), (came, _)) = (sums(near), sums(flow.iter()));
        let losses = flow.iter().filter(|step| step.lost > 0.0).count();
        if came_near > 0.0 {
            nats += losses as f64 * (came / came_near).ln();
        }
        steps += flow.len();
    }
    2.0 * nats >= (FREE_PARAMETERS - 1.0) * (steps.max(1) as f64).ln() + Fitted::LimitAhead.value()
}

/// Whether something else than chance explains the losses, also that nothing was lost but late.
pub fn is_limit(loss: &Loss) -> bool {
    loss.explanation.value().is_some_and(|model| !is_chance(*model))
}

fn is_chance(model: LossModel) -> bool {
    matches!(model, LossModel::Random | LossModel::Runs)
}

/// A limit is a queue if one stands when something is lost, and else a bucket or a shorter queue.
fn named(limit: LossModel, queues: bool) -> LossModel {
    match limit {
        LossModel::Queue if !queues => LossModel::Flight,
        LossModel::Flight | LossModel::SharedFlight if queues => LossModel::Queue,
        other => other,
    }
}

/// Whether a queue stood in most of the steps that lost something.
fn queues(flows: &[&[LossStep]], late_s: f64) -> bool {
    let lossy = flows.iter().copied().flatten().filter(|step| step.lost > 0.0);
    let stood: Vec<bool> = lossy.map(|step| step.queue_s > late_s + step.jitter_s).collect();
    2 * stood.iter().filter(|stood| **stood).count() > stood.len()
}

#[cfg(test)]
mod tests {
    use goodput_model::{Known, LossCandidate};

    use super::*;

    #[test]
    fn a_limit_counts_unless_chance_is_clearly_better() {
        let may_be = |fits: &[(LossModel, f64)]| {
            let candidate = |&(model, behind): &(LossModel, f64)| LossCandidate {
                model,
                behind,
                parameters: Vec::new(),
            };
            may_be_a_limit(&Loss {
                sent_segments: 1000,
                lost_segments: 10,
                repeated_segments: 0,
                needless_segments: 0,
                late_segments: 0,
                explanation: Known::missing("can't tell"),
                candidates: fits.iter().map(candidate).collect(),
            })
        };
        use LossModel::{Flight, Queue, Random, Runs};
        assert!(may_be(&[(Flight, 0.0), (Random, 30.0)]));
        assert!(may_be(&[(Runs, 0.0), (Random, 1.0), (Queue, 3.9)]));
        assert!(!may_be(&[(Runs, 0.0), (Random, 1.0), (Queue, 4.1)]));
        assert!(!may_be(&[(Random, 0.0)]) && !may_be(&[(Queue, 0.0)]) && !may_be(&[]));
    }
}
