//! Losses by chance: each segment alone, or in runs.

use goodput_model::LossModel;

use super::fit::{EXCESSES, Fit, best_excess, interval, mean_run, share_interval, step_nats, sums};
use super::series::LossStep;

/// Each segment is lost with the same chance.
pub fn random(flows: &[&[LossStep]]) -> Option<Fit> {
    let of = Chance::of(flows)?;
    let fit = Fit::new(LossModel::Random, 1.0, of.nats(of.share, 0.0), of.steps);
    fit.with("lost_share", of.share, share_interval(of.share, |share| of.nats(share, 0.0))).sound()
}

/// Segments are lost in runs (Gilbert 1960), so that the number lost in a step varies more.
pub fn runs(flows: &[&[LossStep]]) -> Option<Fit> {
    let of = Chance::of(flows)?;
    let at = |excess| of.nats(of.share, excess);
    let (excess, nats) = best_excess(at);
    if excess == 0.0 {
        return None;
    }
    let run = |excess: f64| mean_run(of.share, excess);
    Fit::new(LossModel::Runs, 2.0, nats, of.steps)
        .with("lost_share", of.share, share_interval(of.share, |share| of.nats(share, excess)))
        .with(
            "mean_run_segments",
            run(excess),
            interval(EXCESSES.into_iter().map(|excess| (run(excess), at(excess)))),
        )
        .sound()
}

struct Chance<'a> {
    flows: &'a [&'a [LossStep]],
    share: f64,
    steps: usize,
}

impl<'a> Chance<'a> {
    fn of(flows: &'a [&'a [LossStep]]) -> Option<Self> {
        let (came, lost) = sums(flows.iter().copied().flatten());
        let steps = flows.iter().map(|steps| steps.len()).sum();
        (lost > 0.0).then(|| Self { flows, share: lost / came, steps })
    }

    fn nats(&self, share: f64, excess: f64) -> f64 {
        let steps = self.flows.iter().copied().flatten();
        steps.map(|step| step_nats(step, share, excess)).sum()
    }
}
