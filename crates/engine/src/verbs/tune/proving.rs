//! Proves what was kept: once more without each change, then all of them against the start, in fresh runs.

use goodput_model::{Change, Finding, Known, Record, TuningOutcome, TuningStep};

use super::comparisons::{Aim, Compare};
use super::explaining::explain_by;
use super::gain::is_needless;
use super::proof::Proof;
use super::tuner::Tuner;
use crate::events::{Event, Listener};
use crate::verbs::compare::Compared;

impl<C: Compare> Tuner<'_, C> {
    /// Retries all kept changes without each one, the first one first: a later change may have made it needless, or it
    /// was found better by chance. It is dropped if it makes no difference. The proof covers a single change.
    pub(super) async fn leave_out_again(&mut self, listener: &mut Listener<'_>) {
        if self.is_shown() {
            return;
        }
        let kept = self.search.kept().to_vec();
        for (index, change) in kept.iter().cloned().enumerate() {
            let time = self.runs.budget.for_a_change(kept.len() - 1 - index);
            // A change that is still needed makes no obvious difference to those kept after it.
            let time = time.filter(|time| self.runs.budget.can_decide(time));
            let Some(time) =
                time.filter(|_| self.search.kept().len() > 1 && self.runs.ended().is_none())
            else {
                return;
            };
            let rule = self.rule_of(&change);
            let text = format!("tries all that helped without {}={}", change.setting, change.to);
            listener(Event::Note { text });
            let (arms, aim) =
                (self.search.all_but(&change), Aim::Choose { past_slow_start: false });
            let compared = self.runs.compare(arms, time, aim, listener).await;
            // Without an answer the change stays; the proof shows what all of them are worth.
            let Some(comparison) = compared.ok().and_then(|compared| compared.record.comparison)
            else {
                continue;
            };
            let outcome = match is_needless(&comparison, self.runs.request.purpose) {
                true => TuningOutcome::Dropped,
                false => TuningOutcome::Confirmed,
            };
            if outcome == TuningOutcome::Dropped {
                self.search.drop(&change);
            }
            self.ended_step(
                TuningStep { change, rule, outcome, comparison: Known::Value(comparison) },
                listener,
            );
        }
    }

    /// The rule that proposed a kept change.
    fn rule_of(&self, change: &Change) -> String {
        let kept = |step: &&TuningStep| {
            step.outcome == TuningOutcome::Kept && step.change.setting == change.setting
        };
        self.steps.iter().rev().find(kept).map(|step| step.rule.clone()).unwrap_or_default()
    }

    /// Compares all kept changes with the start, if anything was kept and that was not shown yet. However that ends, it
    /// is worth what its runs say. If these are too few, the trial of an only change is the proof.
    pub(super) async fn prove(&mut self, listener: &mut Listener<'_>) {
        if self.search.kept().is_empty() || self.is_shown() {
            return;
        }
        let is_trial_all = !self.runs.budget.allows_proof() && self.only.is_proof();
        if self.runs.ended().is_none() && !is_trial_all {
            self.compare_with_start(listener).await;
        }
        if !self.is_shown()
            && let Some(mut only) = self.only.take_proof()
        {
            only.doubts.push(self.proven_by_trial());
            self.enter(*only, Vec::new());
        }
    }

    /// What to know of a proof that is a trial.
    fn proven_by_trial(&self) -> String {
        let why = match self.was_last_cut || self.runs.broken_off().is_some() {
            true => "no last comparison in fresh runs came to its judgement",
            false => "there was no time for a last comparison in fresh runs; --max-time gives more",
        };
        format!("what is proven rests on the trial of the only change: {why}")
    }

    async fn compare_with_start(&mut self, listener: &mut Listener<'_>) {
        if self.search.kept().iter().any(|kept| self.kept_by_starts.contains(&kept.setting)) {
            self.runs.lengthen_for(1);
        }
        listener(Event::ProofBegan { changes: self.search.kept().len() });
        let (arms, left) = (self.search.start_and_kept(), self.runs.budget.left());
        match self.runs.compare(arms, left.into(), Aim::Prove, listener).await {
            Ok(Compared { record, challenger, .. }) => {
                self.runs.broken = self.runs.broken.take().or_else(|| record.incomplete.clone());
                self.enter(record, challenger.map(|run| run.findings).unwrap_or_default());
            }
            // Without runs there is nothing to report.
            Err(_) if self.runs.ended().is_some() => {}
            Err(why) => self.runs.broken = Some(format!("the last comparison failed: {why}")),
        }
        self.was_last_cut = !self.is_shown() && self.runs.ended().is_some();
    }

    /// Takes a comparison of all that is kept with the start. If it could judge and does not count, what an earlier one
    /// proved stays kept, and nothing more is proven.
    fn enter(&mut self, mut record: Record, findings: Vec<Finding>) {
        let purpose = self.runs.request.purpose;
        let changes = self.search.kept().to_vec();
        let mut comparison = record.comparison.take();
        if let Some(comparison) = &mut comparison {
            let rules: Vec<_> = changes.iter().map(|change| self.rule_of(change)).collect();
            explain_by(&rules, comparison);
        }
        let proof = Proof { changes, comparison, findings, rest: record };
        let can_judge = proof.can_judge(purpose);
        let mut counts = proof.or(self.proof.take(), purpose);
        if can_judge && counts.changes != self.search.kept() {
            counts.rest.doubts.push(not_added(self.search.kept()));
            self.search.keep_only(&counts.changes);
            self.is_error_spent = true;
        }
        self.proof = Some(counts);
    }
}

/// What to know of a proof after which another proved nothing.
fn not_added(changes: &[Change]) -> String {
    let changes = changes.iter().map(|change| format!("{}={}", change.setting, change.to));
    format!(
        "a later comparison with the start, of {}, proved nothing: only what was proven before counts as proven",
        changes.collect::<Vec<_>>().join(", ")
    )
}
