//! The search: tries one change after the other, proves what was kept, and goes on if the proof falls short.

use goodput_model::{
    Change, EndName, Kind, Known, Record, SettingRef, Tuning, TuningOutcome, TuningStep,
};

use super::comparisons::{Compare, Comparisons};
use super::gain::is_undecided;
use super::goal::Goal;
use super::only_change::OnlyChange;
use super::proof::{Proof, changed_goodput};
use super::search::{Candidate, Search};
use crate::events::{Event, Listener};

/// Why a search ends that could not judge each change.
const TOO_FEW_RUNS: &str =
    "too few runs to judge every change; give more time (--max-time), or make runs shorter (-t)";

/// Why a search ends whose last comparison could judge, and proved nothing: the error of the run is spent
/// (docs/decisions/tuning.md).
const NOT_PROVEN: &str = "the last comparison did not show that what was kept helps, and a further one could prove something by chance";

/// Why a search ends when nothing waits, and the last comparison ended before its first look.
const LAST_TOO_SHORT: &str =
    "the last comparison had too few runs to judge what was kept; --max-time gives more";

/// The same, if the last comparison could have gone on.
const LAST_CUT_SHORT: &str =
    "the time was over before the last comparison was decided; --max-time gives more";

/// The same, if it made all of its runs.
const LAST_UNDECIDED: &str = "the last comparison stayed undecided, and nothing is left to try";

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
}

impl<'a, C: Compare> Tuner<'a, C> {
    /// Before the first comparison, with what the first measurement proposes.
    pub fn new(runs: Comparisons<'a, C>, search: Search) -> Self {
        let (steps, kept_by_starts) = (Vec::new(), Vec::new());
        let (only, proof, is_error_spent) = (OnlyChange::None, None, false);
        Self { runs, search, steps, only, kept_by_starts, proof, is_error_spent }
    }

    /// Tries nothing. Returns why.
    pub fn plan(&mut self, why: String) -> String {
        self.leave_untried(&why);
        why
    }

    /// Tries what is proposed, proves what was kept, and goes on as long as what is proven falls short of the ceiling and
    /// its runs name what to try next. Returns why it ends.
    pub async fn search_and_prove(
        &mut self,
        start: &Record,
        listener: &mut Listener<'_>,
    ) -> String {
        let request = self.runs.request;
        let goal = Goal::of(start, request.purpose, request.min_gain_percent);
        let reached = |goodput| goal.and_then(|goal| goal.reached(goodput));
        if self.runs.ended().is_none()
            && let Some(why) = reached(start.result.goodput_bits_per_s)
        {
            return why;
        }
        loop {
            let paused = self.try_all(start, &reached, listener).await;
            self.leave_out_again(listener).await;
            self.prove(listener).await;
            let shown = self.proof.as_ref().filter(|_| self.is_shown());
            let goodput = shown.and_then(|proof| changed_goodput(proof.comparison.as_ref()?));
            if let Some(why) = self.cut_short().or(paused).or_else(|| goodput.and_then(reached)) {
                return why;
            }
            if goal.is_none() || !self.finds_more() {
                return self.exhausted().into();
            }
            if !self.is_proven() {
                self.leave_untried(NOT_PROVEN);
                return NOT_PROVEN.into();
            }
        }
    }

    /// Takes what a run of the last comparison proposes. Returns whether anything waits.
    fn finds_more(&mut self) -> bool {
        if let Some(proof) = &mut self.proof {
            self.search.reconsider(&std::mem::take(&mut proof.findings));
        }
        self.search.waiting() > 0
    }

    /// The record of tuning: the first measurement, with the comparison that counts.
    pub fn into_record(self, start: Record, stopped: String) -> Record {
        let Self {
            runs: Comparisons { request, broken, compared_length, .. }, steps, proof, ..
        } = self;
        let proven = proof.as_ref().map(|proof| proof.proven(request.purpose).to_vec());
        let tuning = Some(Tuning {
            purpose: request.purpose,
            min_gain_percent: request.min_gain_percent,
            steps,
            proven: proven.unwrap_or_default(),
            kept_in: Vec::new(),
            to_keep: Vec::new(),
            run_length: Some(compared_length),
            stopped,
        });
        let (comparison, whole) = proof.map(|proof| (proof.comparison, proof.rest)).unzip();
        let (changed_hosts, also, of_whole) = match whole {
            Some(whole) => (whole.changed_hosts, whole.doubts, whole.incomplete),
            None => (start.changed_hosts, Vec::new(), None),
        };
        let failures = [start.incomplete, broken, of_whole].into_iter().flatten();
        let failures: Vec<String> = failures.collect();
        let incomplete = failures.first().cloned();
        let mut doubts: Vec<String> = start.doubts;
        for doubt in also.into_iter().chain(failures) {
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

    /// Why the search ends when nothing waits.
    fn exhausted(&self) -> &'static str {
        let is_open = |step: &TuningStep| step.outcome == TuningOutcome::TooFewRuns;
        let last = self.proof.as_ref().and_then(|proof| proof.comparison.as_ref());
        match () {
            () if !self.search.kept().is_empty() && !self.is_shown() => LAST_TOO_SHORT,
            () if last.is_some_and(|last| is_undecided(last, self.runs.request.purpose)) => {
                if self.runs.budget.allows_another() { LAST_UNDECIDED } else { LAST_CUT_SHORT }
            }
            () if self.steps.iter().any(is_open) => TOO_FEW_RUNS,
            () if self.steps.is_empty() => "no finding proposes a change that goodput can make",
            () => "nothing is left to try",
        }
    }

    /// Why the last comparison has not shown what is kept, or why nothing may follow it.
    fn cut_short(&self) -> Option<String> {
        let is_shown = self.search.kept().is_empty() || self.is_shown();
        self.runs.broken_off().or_else(|| self.runs.ended().filter(|_| !is_shown))
    }

    /// Whether a comparison with the start has judged all that is kept.
    pub(super) fn is_shown(&self) -> bool {
        let proof = self.proof.as_ref().filter(|proof| proof.can_judge(self.runs.request.purpose));
        proof.is_some_and(|proof| proof.changes == self.search.kept())
    }

    /// Whether the last comparison has not failed to prove what is kept. One that proves it leaves its error to the next.
    fn is_proven(&self) -> bool {
        if self.is_error_spent {
            return false;
        }
        let purpose = self.runs.request.purpose;
        let proof = self.proof.as_ref().filter(|_| self.is_shown());
        proof.is_none_or(|proof| !proof.proven(purpose).is_empty())
    }

    /// Notes what became of a change.
    pub(super) fn ended_step(&mut self, step: TuningStep, listener: &mut Listener<'_>) {
        listener(Event::ChangeEnded { step: Box::new(step.clone()) });
        self.steps.push(step);
    }
}
