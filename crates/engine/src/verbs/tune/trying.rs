//! Tries one change after the other on top of what is kept.

use goodput_experiment::starting::counts_in_slow_start;
use goodput_model::{
    BitRate, Change, Comparison, Known, Record, Seconds, TuningOutcome, TuningStep,
};

use super::comparisons::{Aim, Compare, only_started};
use super::explaining::explain_by;
use super::gain::{is_undecided, obviously};
use super::outcome::{outcome_of, proven_by};
use super::proof::changed_goodput;
use super::purposes::first;
use super::search::Candidate;
use super::tuner::Tuner;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::verbs::compare::MaxTime;

/// Why no more changes are tried.
const TOO_LITTLE_TIME: &str = "too little time was left for another change; --max-time gives more";

/// The same, if each change that waits was tried before.
const TOO_LITTLE_TIME_AGAIN: &str =
    "too little time was left to try again what was not proven better; --max-time gives more";

impl<C: Compare> Tuner<'_, C> {
    /// Tries one change after the other. Returns why nothing more may be tried, if that is so; otherwise nothing waits,
    /// or a trial seems to have `reached` what is possible.
    pub(super) async fn try_all(
        &mut self,
        start: &Record,
        reached: &dyn Fn(BitRate) -> Option<String>,
        listener: &mut Listener<'_>,
    ) -> Option<String> {
        while let Some(candidate) = self.search.next() {
            if let Some(why) = self.runs.ended() {
                self.search.give_back(candidate);
                self.leave_untried(&why);
                return Some(why);
            }
            let Some(time) = self.runs.budget.for_a_change(self.search.waiting()) else {
                self.search.give_back(candidate);
                let listed = self.steps.len();
                self.leave_untried(&self.too_little_time());
                return Some(match self.steps.len() > listed {
                    true => TOO_LITTLE_TIME.into(),
                    false => TOO_LITTLE_TIME_AGAIN.into(),
                });
            };
            if let Err(why) = self.may_be_kept(&candidate.change, start) {
                self.leave_out(candidate, &why, listener);
                continue;
            }
            let Candidate { change, rule } = candidate.clone();
            let waiting = self.search.waiting();
            listener(Event::ChangeBegan { change, rule, waiting });
            let goodput = self.try_one(candidate, time, listener).await;
            if goodput.and_then(reached).is_some() {
                return None;
            }
        }
        self.runs.ended()
    }

    /// Why a change is not tried.
    fn too_little_time(&self) -> String {
        let budget = &self.runs.budget;
        format!(
            "too little time: {:.0} s were left; a change takes at least {:.0} s, and the last comparison {:.0} s",
            budget.left().as_secs_f64(),
            budget.least_trial_s(),
            budget.proof_s()
        )
    }

    fn may_be_kept(&self, change: &Change, start: &Record) -> Result<(), EngineError> {
        let point = start.mount.as_ref().map(|mount| mount.point.as_str());
        self.runs.request.keepable.as_ref().map_or(Ok(()), |keepable| keepable(change, point))
    }

    /// Doesn't try a change that could not be kept: what is proven beside it would not be proven without it.
    fn leave_out(
        &mut self,
        Candidate { change, rule }: Candidate,
        why: &EngineError,
        listener: &mut Listener<'_>,
    ) {
        let outcome = match why.not_permitted() {
            true => TuningOutcome::NotPermitted,
            false => TuningOutcome::Failed,
        };
        let why =
            format!("not tried, because it can't be kept: {why}; run without --keep to try it");
        let comparison = Known::missing(why);
        self.ended_step(TuningStep { change, rule, outcome, comparison }, listener);
    }

    /// Tries one change. Returns the goodput with it, if it is kept.
    async fn try_one(
        &mut self,
        candidate: Candidate,
        time: MaxTime,
        listener: &mut Listener<'_>,
    ) -> Option<BitRate> {
        let Candidate { change, rule } = candidate.clone();
        let arms = self.search.without_and_with(&change);
        let past_slow_start = self.runs.may_lengthen(self.needed_comparisons());
        let aim = Aim::Choose { past_slow_start };
        let compared = self.runs.compare(arms, time, aim, listener).await;
        if compared.is_err()
            && let Some(why) = self.runs.interrupted()
        {
            // It was tried, and no run of it counts yet.
            let (outcome, comparison) = (TuningOutcome::TooFewRuns, Known::missing(why));
            self.ended_step(TuningStep { change, rule, outcome, comparison }, listener);
            return None;
        }
        if self.runs.given_up.is_none() && compared.as_ref().is_ok_and(only_started) {
            self.lengthen_after_warm_up(candidate, listener);
            return None;
        }
        // The end of the time says nothing of the change, however the comparison came to its end.
        let is_over = self.runs.given_up.is_some() || self.runs.budget.left().is_zero();
        if compared.is_err() && is_over && self.runs.broken.is_none() {
            self.search.give_back(candidate);
            return None;
        }
        let purpose = self.runs.request.purpose;
        match compared.is_ok() {
            true => self.only.tried(proven_by(&compared, purpose).cloned().map(Box::new)),
            // Nothing was measured, so nothing is chosen by its result.
            false => self.search.refuse(&change),
        }
        let (outcome, mut comparison, better) = outcome_of(compared, purpose);
        if let Known::Value(runs) = &mut comparison {
            explain_by(std::slice::from_ref(&rule), runs);
        }
        let mut goodput = None;
        match (outcome, &comparison) {
            (TuningOutcome::Kept, Known::Value(runs)) => {
                self.keep(change.clone(), runs, better.as_ref());
                goodput = changed_goodput(runs);
            }
            (TuningOutcome::NotBetter, Known::Value(runs)) => self.try_again(candidate, runs),
            // Others may need less time than they were given.
            (TuningOutcome::TooFewRuns, Known::Value(_)) => self.search.postpone(candidate),
            _ => {}
        }
        self.ended_step(TuningStep { change, rule, outcome, comparison }, listener);
        goodput
    }

    /// Keeps a change that its runs have shown to be better, and looks at what those found.
    fn keep(&mut self, change: Change, runs: &Comparison, better: Option<&Record>) {
        match counts_in_slow_start(&runs.trials) {
            true => self.kept_by_starts.push(change.setting.clone()),
            false => self.kept_by_starts.clear(),
        }
        self.search.keep(change);
        self.runs.keep();
        if let Some(better) = better {
            self.search.consider(&first(self.runs.request.purpose, &better.findings));
        }
    }

    /// Tries a change again whose runs have not shown that it is better: at once in longer runs, if these were too
    /// short, or when nothing else is left, if they were too few.
    fn try_again(&mut self, candidate: Candidate, runs: &Comparison) {
        if obviously(runs, self.runs.request.purpose).is_some() {
            return;
        }
        let is_too_short = counts_in_slow_start(&runs.trials);
        if is_too_short && self.runs.lengthen_for(self.needed_comparisons()).is_some() {
            self.search.give_back(candidate);
        } else if is_undecided(runs, self.runs.request.purpose) {
            self.search.postpone(candidate);
        }
    }

    /// The warm-up has shown that runs of this length are mostly slow start: tries the change in longer ones, or in these
    /// if the time does not allow more.
    fn lengthen_after_warm_up(&mut self, candidate: Candidate, listener: &mut Listener<'_>) {
        if let Some(seconds) = self.runs.lengthen_for(self.needed_comparisons()) {
            let text = format!("runs were mostly slow start; each takes {} now", Seconds(seconds));
            listener(Event::Note { text });
        }
        self.search.give_back(candidate);
    }

    /// How many comparisons the next change needs, its proof included.
    fn needed_comparisons(&self) -> u8 {
        self.only.comparisons(self.search.waiting())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use goodput_model::Length;

    use super::super::comparisons::Comparisons;
    use super::super::search::Search;
    use super::super::time_budget::TimeBudget;
    use super::super::tuner_tests::{change, finding, measured, request};
    use super::*;
    use crate::interrupt::{Interrupt, Raise, interrupt};
    use crate::verbs::compare::{CompareRequest, Compared};

    /// A comparison in whose warm-up somebody presses Ctrl-C.
    struct CutShort(Raise);

    impl Compare for &mut CutShort {
        async fn compare(
            &mut self,
            _request: &CompareRequest,
            _interrupt: &Interrupt,
            _listener: &mut Listener<'_>,
        ) -> Result<Compared, EngineError> {
            self.0.raise();
            Err(EngineError::Interrupted)
        }
    }

    #[test]
    fn a_change_whose_warm_up_was_interrupted_was_tried() {
        let (request, (raise, interrupt)) = (request(), interrupt());
        let budget = TimeBudget::new(Duration::from_secs(600), 1);
        let mut by = CutShort(raise);
        let runs = Comparisons::new(&request, &interrupt, Length::Seconds(1.0), budget, &mut by);
        let mut search = Search::default();
        search.consider(&[finding(vec![change("chunk", "1M"), change("socket.sndbuf", "4M")])]);
        let mut tuner = Tuner::new(runs, search);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        let start = measured(10.0);
        let stopped = runtime.block_on(tuner.search_and_prove(&start, &mut |_| {}));
        let tuning = tuner.into_record(start, stopped).tuning.unwrap();
        let outcomes: Vec<_> = tuning.steps.iter().map(|step| step.outcome).collect();
        assert_eq!(outcomes, [TuningOutcome::TooFewRuns, TuningOutcome::Planned]);
        assert_eq!(tuning.stopped, "it was interrupted");
        assert_eq!(tuning.nothing(), "nothing: too few runs to prove a change");
    }
}
