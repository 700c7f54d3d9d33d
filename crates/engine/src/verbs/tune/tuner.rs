//! What a search knows, and the record that it leaves.

use goodput_experiment::order_doubt;
use goodput_model::{
    Change, EndName, Kind, Known, Record, SettingRef, Tuning, TuningOutcome, TuningStep,
};

use super::comparisons::{Compare, Comparisons};
use super::only_change::OnlyChange;
use super::proof::Proof;
use super::search::{Candidate, Search};
use crate::events::{Event, Listener};

/// Looks for changes that help.
pub struct Tuner<'a, C> {
    pub(super) runs: Comparisons<'a, C>,
    pub(super) search: Search,
    pub(super) steps: Vec<TuningStep>,
    /// With the record of its comparison.
    pub(super) only: OnlyChange<Box<Record>>,
    /// Settings whose changes were kept by runs that were mostly slow start, since the last change kept by other runs.
    pub(super) kept_by_starts: Vec<SettingRef>,
    /// The last comparison with the start that counts.
    pub(super) proof: Option<Proof<Record>>,
    /// Whether a comparison with the start could judge and proved nothing, after one that proved something.
    pub(super) is_error_spent: bool,
    /// Whether the time was over before the newest comparison with the start could judge.
    pub(super) was_last_cut: bool,
}

impl<'a, C: Compare> Tuner<'a, C> {
    /// Before the first comparison, with what the first measurement proposes.
    pub fn new(runs: Comparisons<'a, C>, search: Search) -> Self {
        let (steps, kept_by_starts) = (Vec::new(), Vec::new());
        Self {
            runs,
            search,
            steps,
            only: OnlyChange::None,
            kept_by_starts,
            proof: None,
            is_error_spent: false,
            was_last_cut: false,
        }
    }

    /// Tries nothing. Returns why.
    pub fn plan(&mut self, why: String) -> String {
        self.leave_untried(&why);
        why
    }

    /// The record of tuning: the first measurement, with the comparison that counts.
    pub fn into_record(self, start: Record, stopped: String) -> Record {
        let Self {
            runs: Comparisons { request, broken, given_up, compared_length, .. },
            steps,
            proof,
            ..
        } = self;
        let proven = proof.as_ref().map(|proof| proof.proven(request.purpose).to_vec());
        let trials = steps.iter().filter_map(|step| Some(&step.comparison.value()?.trials[..]));
        let response = request.purpose.responses().first();
        // One trial has too few runs to show it.
        let of_order = response.and_then(|response| order_doubt(*response, trials));
        let tuning = Some(Tuning {
            purpose: request.purpose,
            min_gain_percent: request.min_gain_percent,
            steps,
            proven: proven.unwrap_or_default(),
            kept_in: Vec::new(),
            to_keep: Vec::new(),
            run_length: Some(compared_length),
            plan_only: Some(request.dry_run),
            stopped,
        });
        let (comparison, whole) = proof.map(|proof| (proof.comparison, proof.rest)).unzip();
        let (changed_hosts, also, of_whole) = match whole {
            Some(whole) => (whole.changed_hosts, whole.doubts, whole.incomplete),
            None => (start.changed_hosts, Vec::new(), None),
        };
        let of_order = of_order.filter(|doubt| !also.contains(doubt));
        let of_order = of_order.map(|doubt| format!("in the trials of changes, {doubt}"));
        let failures = [start.incomplete, broken, of_whole].into_iter().flatten();
        let failures: Vec<String> = failures.collect();
        let incomplete = failures.first().cloned();
        let mut doubts: Vec<String> = start.doubts;
        for doubt in also.into_iter().chain(of_order).chain(given_up).chain(failures) {
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
        // It is said as the failure of the whole.
        doubts.retain(|doubt| Some(doubt) != incomplete.as_ref());
        let comparison = comparison.flatten();
        let kind = Kind::Tune;
        Record { kind, tuning, comparison, changed_hosts, incomplete, doubts, ..start }
    }

    /// Notes what could be tried next. Later candidates depend on what helps.
    pub(super) fn leave_untried(&mut self, why: &str) {
        while let Some(Candidate { mut change, rule }) = self.search.next() {
            // Whether it can be made is not known.
            self.search.refuse(&change);
            // What was undecided has a row already.
            if self.steps.iter().any(|step| step.change.is_same_step(&change)) {
                continue;
            }
            self.complete(&mut change);
            let comparison = Known::missing(why.to_owned());
            self.steps.push(TuningStep {
                change,
                rule,
                outcome: TuningOutcome::Planned,
                comparison,
            });
        }
    }

    /// Adds the setting's present value, to return to it, if the rule does not say and this host knows the value.
    fn complete(&self, change: &mut Change) {
        let is_here = change.setting.end == EndName::Near && self.runs.request.hosts.near.is_none();
        if change.from.is_none() && is_here {
            change.from = goodput_settings::read(&change.setting).ok();
        }
    }

    /// Whether a comparison with the start has judged all that is kept.
    pub(super) fn is_shown(&self) -> bool {
        let proof = self.proof.as_ref().filter(|proof| proof.can_judge(self.runs.request.purpose));
        proof.is_some_and(|proof| proof.changes == self.search.kept())
    }

    /// Notes what became of a change.
    pub(super) fn ended_step(&mut self, step: TuningStep, listener: &mut Listener<'_>) {
        listener(Event::ChangeEnded { step: Box::new(step.clone()) });
        self.steps.push(step);
    }
}
