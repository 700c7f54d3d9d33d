//! The rounds of a search: tries what is proposed, proves what was kept, and goes on if the proof falls short.

use goodput_model::{Record, TuningOutcome, TuningStep};

use super::comparisons::Compare;
use super::gain::is_undecided;
use super::goal::Goal;
use super::proof::changed_goodput;
use super::purposes::first;
use super::tuner::Tuner;
use crate::events::Listener;

/// Why a search ends that could not judge each change.
const TOO_FEW_RUNS: &str =
    "too few runs to judge every change; give more time (--max-time), or make runs shorter (-t)";

/// Why a search ends whose last comparison could judge, and proved nothing: the error of the run is spent
/// (docs/decisions/tuning.md).
const NOT_PROVEN: &str = "the last comparison did not show that the kept changes help; repeating it until it does would prove chance";

/// Why a search ends when nothing waits, and what was added to what is proven is not.
const ADDITION_NOT_PROVEN: &str = "the last comparison did not prove what was added to what is proven, and nothing is left to try";

/// Why a search ends when nothing waits, and the last comparison ended before its first look.
const LAST_TOO_SHORT: &str =
    "the last comparison had too few runs to judge what was kept; --max-time gives more";

/// The same, if the last comparison could have gone on.
const LAST_CUT_SHORT: &str =
    "the time was over before the last comparison was decided; --max-time gives more";

/// The same, if it made all of its runs.
const LAST_UNDECIDED: &str = "the last comparison stayed undecided, and nothing is left to try";

impl<C: Compare> Tuner<'_, C> {
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
            let findings = std::mem::take(&mut proof.findings);
            self.search.reconsider(&first(self.runs.request.purpose, &findings));
        }
        self.search.waiting() > 0
    }

    /// Why the search ends when nothing waits.
    fn exhausted(&self) -> &'static str {
        let is_last = |at: usize| {
            let same = |later: &TuningStep| later.change.is_same_step(&self.steps[at].change);
            !self.steps[at + 1..].iter().any(same)
        };
        let is_open =
            |at: usize| self.steps[at].outcome == TuningOutcome::TooFewRuns && is_last(at);
        let purpose = self.runs.request.purpose;
        let unproven = self.proof.as_ref().filter(|proof| proof.proven(purpose).is_empty());
        let last = unproven.and_then(|proof| proof.comparison.as_ref());
        match () {
            () if self.is_error_spent => ADDITION_NOT_PROVEN,
            () if !self.search.kept().is_empty() && !self.is_shown() => LAST_TOO_SHORT,
            () if last.is_some_and(|last| is_undecided(last, purpose)) => {
                if self.runs.budget.allows_proof() { LAST_UNDECIDED } else { LAST_CUT_SHORT }
            }
            () if (0..self.steps.len()).any(is_open) => TOO_FEW_RUNS,
            () if self.steps.is_empty() => "no finding proposes a change that goodput can make",
            () => "nothing is left to try",
        }
    }

    /// Why the last comparison has not shown what is kept, or why nothing may follow it.
    fn cut_short(&self) -> Option<String> {
        let is_shown = self.search.kept().is_empty() || self.is_shown();
        let is_cut = !is_shown || self.was_last_cut;
        let over = || self.runs.ended().filter(|_| is_cut).map(|_| self.over_before_judged());
        self.runs.broken_off().or_else(over)
    }

    /// Why a search ends that had no time to judge what is kept, and what is proven all the same.
    fn over_before_judged(&self) -> String {
        let purpose = self.runs.request.purpose;
        let proof = self.proof.as_ref().filter(|proof| !proof.proven(purpose).is_empty());
        let what = match proof {
            Some(_) => "what an earlier one proved stays proven",
            None => "nothing is proven",
        };
        format!(
            "the time was over before the last comparison could judge what was kept; {what}; --max-time gives more"
        )
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
}
