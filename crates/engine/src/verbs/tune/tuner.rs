//! The search: tries one change after the other, proves what was kept, and goes on if the proof falls short.

use std::time::Instant;

use goodput_experiment::starting::{counts_in_slow_start, warmed_up_in_slow_start};
use goodput_model::{
    BitRate, Change, Comparison, EndName, Finding, Kind, Known, Length, Plan, Record, Seconds,
    SettingRef, Tuning, TuningOutcome, TuningStep,
};

use super::deadline::within;
use super::gain::{is_needless, is_undecided, responses, ways_to_win};
use super::goal::Goal;
use super::only_change::OnlyChange;
use super::outcome::{kept_by, outcome_of};
use super::proof::{Proof, changed_goodput};
use super::request::TuneRequest;
use super::search::{Candidate, Search};
use super::time_budget::TimeBudget;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::verbs::compare::{Arm, CompareRequest, Compared, MaxTime, compare_whole};

/// Why nothing more is compared.
pub const TIME_WAS_OVER: &str = "the time was over; --max-time gives more";

/// Why a search ends that could not judge each change.
const TOO_FEW_RUNS: &str =
    "too few runs to judge every change; give more time (--max-time), or make runs shorter (-t)";

/// Why a search ends after a failure, which the record names ([`Record::incomplete`]).
const FAILED: &str = "a comparison failed";

/// Looks for changes that help.
pub struct Tuner<'a> {
    request: &'a TuneRequest,
    interrupt: &'a Interrupt,
    /// Of the next comparison.
    run_length: Length,
    /// The run length of the last comparison; before the first one, that of the first.
    compared_length: Length,
    budget: TimeBudget,
    search: Search,
    steps: Vec<TuningStep>,
    /// With the record of its comparison.
    only: OnlyChange<Box<Record>>,
    /// Settings whose changes were kept by runs that were mostly slow start, since the last change kept by other runs.
    kept_by_starts: Vec<SettingRef>,
    /// The last comparison with the start that counts.
    proof: Option<Proof<Record>>,
    /// The failure after which nothing more may be compared.
    broken: Option<String>,
}

impl<'a> Tuner<'a> {
    /// Before the first comparison, with what the first measurement proposes.
    pub fn new(
        request: &'a TuneRequest,
        interrupt: &'a Interrupt,
        run_length: Length,
        budget: TimeBudget,
        search: Search,
    ) -> Self {
        Self {
            request,
            interrupt,
            run_length,
            compared_length: run_length,
            budget,
            search,
            steps: Vec::new(),
            only: OnlyChange::None,
            kept_by_starts: Vec::new(),
            proof: None,
            broken: None,
        }
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
        let request = self.request;
        let goal = Goal::of(start, request.purpose, request.min_gain_percent);
        let reached = |goodput| goal.and_then(|goal| goal.reached(goodput));
        if self.ended().is_none()
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
        let Self { request, steps, proof, broken, compared_length, .. } = self;
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
    fn leave_untried(&mut self, why: &str) {
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
        let is_here = change.setting.end == EndName::Near && self.request.hosts.near.is_none();
        if change.from.is_none() && is_here {
            change.from = goodput_settings::read(&change.setting).ok();
        }
    }

    /// Tries one change after the other. Returns why nothing more may be tried, if that is so; otherwise nothing waits,
    /// or a trial seems to have `reached` what is possible.
    async fn try_all(
        &mut self,
        start: &Record,
        reached: &dyn Fn(BitRate) -> Option<String>,
        listener: &mut Listener<'_>,
    ) -> Option<String> {
        while let Some(candidate) = self.search.next() {
            if let Some(why) = self.ended() {
                self.search.give_back(candidate);
                self.leave_untried(&why);
                return Some(why);
            }
            let Some(time) = self.budget.for_a_change(self.search.waiting()) else {
                self.search.give_back(candidate);
                let (least, left) = (self.budget.shortest_s(), self.budget.left().as_secs_f64());
                self.leave_untried(&format!(
                    "too little time: {left:.0} s were left; a change takes at least {least:.0} s, and the last \
                     comparison as long again"
                ));
                return Some(
                    "too little time was left for another change; --max-time gives more".into(),
                );
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
        self.ended()
    }

    /// Why the search ends when nothing waits.
    fn exhausted(&self) -> &'static str {
        let is_open = |step: &TuningStep| step.outcome == TuningOutcome::TooFewRuns;
        if self.steps.iter().any(is_open) { TOO_FEW_RUNS } else { "nothing is left to try" }
    }

    fn may_be_kept(&self, change: &Change, start: &Record) -> Result<(), EngineError> {
        let point = start.mount.as_ref().map(|mount| mount.point.as_str());
        self.request.keepable.as_ref().map_or(Ok(()), |keepable| keepable(change, point))
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
        let why = format!("--keep leaves it out, because {why}; without --keep it is tried");
        let comparison = Known::missing(why);
        self.ended_step(TuningStep { change, rule, outcome, comparison }, listener);
    }

    /// Why nothing more may be compared, if that is so.
    fn ended(&self) -> Option<String> {
        let over = || self.budget.left().is_zero().then(|| TIME_WAS_OVER.into());
        self.broken_off().or_else(over)
    }

    /// The same, whatever time is left.
    fn broken_off(&self) -> Option<String> {
        let interrupted = self.interrupt.is_raised().then(|| "it was interrupted".into());
        interrupted.or_else(|| self.broken.as_ref().map(|_| FAILED.into()))
    }

    /// Why the last comparison has not shown what is kept, or why nothing may follow it.
    fn cut_short(&self) -> Option<String> {
        let is_shown = self.search.kept().is_empty() || self.is_shown();
        self.broken_off().or_else(|| self.ended().filter(|_| !is_shown))
    }

    /// Whether a comparison with the start has judged all that is kept.
    fn is_shown(&self) -> bool {
        let proof = self.proof.as_ref().filter(|proof| proof.can_judge(self.request.purpose));
        proof.is_some_and(|proof| proof.changes == self.search.kept())
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
        let past_slow_start = self.may_lengthen(self.needed_comparisons());
        let compared = self.compare(arms, time, past_slow_start, listener).await;
        if compared.as_ref().is_ok_and(only_started) {
            self.lengthen_after_warm_up(candidate, listener);
            return None;
        }
        if compared.is_err() && self.interrupt.is_raised() {
            self.search.give_back(candidate);
            return None;
        }
        let purpose = self.request.purpose;
        self.only.tried(kept_by(&compared, purpose).cloned().map(Box::new));
        let (outcome, comparison, better) = outcome_of(compared, purpose);
        let mut goodput = None;
        match (outcome, &comparison) {
            (TuningOutcome::Kept, Known::Value(runs)) => {
                self.keep(change.clone(), runs, better.as_ref());
                goodput = changed_goodput(runs);
            }
            (TuningOutcome::NotBetter, Known::Value(runs)) => self.try_again(candidate, runs),
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
        if let Some(better) = better {
            self.search.consider(&better.findings);
        }
    }

    /// Tries a change again whose runs have not shown that it is better: at once in longer runs, if these were too
    /// short, or when nothing else is left, if they were too few.
    fn try_again(&mut self, candidate: Candidate, runs: &Comparison) {
        if counts_in_slow_start(&runs.trials) && self.lengthen_runs() {
            self.search.give_back(candidate);
        } else if is_undecided(runs, self.request.purpose) {
            self.search.postpone(candidate);
        }
    }

    /// The warm-up has shown that runs of this length are mostly slow start: tries the change in longer ones, or in these
    /// if the time does not allow more.
    fn lengthen_after_warm_up(&mut self, candidate: Candidate, listener: &mut Listener<'_>) {
        if self.lengthen_runs()
            && let Length::Seconds(seconds) = self.run_length
        {
            let text = format!("runs were mostly slow start; each takes {} now", Seconds(seconds));
            listener(Event::Note { text });
        }
        self.search.give_back(candidate);
    }

    /// Doubles the length of the runs if the next change may have longer ones. Returns whether it did.
    fn lengthen_runs(&mut self) -> bool {
        self.lengthen_runs_for(self.needed_comparisons())
    }

    /// The same if there is time for this many comparisons.
    fn lengthen_runs_for(&mut self, comparisons: u8) -> bool {
        let longer = self.may_lengthen(comparisons);
        if let Length::Seconds(seconds) = &mut self.run_length
            && longer
        {
            self.budget.lengthen(*seconds);
            *seconds *= 2.0;
        }
        longer
    }

    /// How many comparisons the next change needs, its proof included.
    fn needed_comparisons(&self) -> u8 {
        self.only.comparisons(self.search.waiting())
    }

    /// Whether the runs may be twice as long: their length was chosen here, and there is time for this many comparisons.
    fn may_lengthen(&self, comparisons: u8) -> bool {
        let Length::Seconds(seconds) = self.run_length else { return false };
        self.request.run_length.is_none() && self.budget.may_lengthen(seconds, comparisons)
    }

    /// Retries all kept changes without each one, the first one first: a later change may have made it needless, or it
    /// was found better by chance. It is dropped if it makes no difference. The proof covers a single change.
    async fn leave_out_again(&mut self, listener: &mut Listener<'_>) {
        if self.is_shown() {
            return;
        }
        let kept = self.search.kept().to_vec();
        for (index, change) in kept.iter().cloned().enumerate() {
            let time = self.budget.for_a_change(kept.len() - 1 - index);
            let Some(time) =
                time.filter(|_| self.search.kept().len() > 1 && self.ended().is_none())
            else {
                return;
            };
            let rule = self.rule_of(&change);
            let text = format!("tries all that helped without {}={}", change.setting, change.to);
            listener(Event::Note { text });
            let arms = self.search.all_but(&change);
            let compared = self.compare(arms, time, false, listener).await;
            // Without an answer the change stays; the proof shows what all of them are worth.
            let Some(comparison) = compared.ok().and_then(|compared| compared.record.comparison)
            else {
                continue;
            };
            let outcome = match is_needless(&comparison, self.request.purpose) {
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

    fn ended_step(&mut self, step: TuningStep, listener: &mut Listener<'_>) {
        listener(Event::ChangeEnded { step: Box::new(step.clone()) });
        self.steps.push(step);
    }

    /// Compares all kept changes with the start, if anything was kept and that was not shown yet. However that ends, it
    /// is worth what its runs say. If these are too few, the trial of an only change is the proof.
    async fn prove(&mut self, listener: &mut Listener<'_>) {
        if self.search.kept().is_empty() || self.is_shown() {
            return;
        }
        let is_trial_all = !self.budget.allows_another() && self.only.is_proof();
        if self.ended().is_none() && !is_trial_all {
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
        let why = match self.broken_off() {
            Some(_) => "no last comparison in fresh runs came to its judgement",
            None => "there was no time for a last comparison in fresh runs; --max-time gives more",
        };
        format!("what is proven rests on the trial of the only change: {why}")
    }

    async fn compare_with_start(&mut self, listener: &mut Listener<'_>) {
        if self.search.kept().iter().any(|kept| self.kept_by_starts.contains(&kept.setting)) {
            self.lengthen_runs_for(1);
        }
        listener(Event::ProofBegan { changes: self.search.kept().len() });
        let (arms, left) = (self.search.start_and_kept(), self.budget.left());
        match self.compare(arms, left.into(), false, listener).await {
            Ok(Compared { record, challenger, .. }) => {
                self.broken = self.broken.take().or_else(|| record.incomplete.clone());
                self.enter(record, challenger.map(|run| run.findings).unwrap_or_default());
            }
            // Without runs there is nothing to report.
            Err(_) if self.ended().is_some() => {}
            Err(why) => self.broken = Some(format!("the last comparison failed: {why}")),
        }
    }

    /// Takes a comparison of all that is kept with the start.
    fn enter(&mut self, mut record: Record, findings: Vec<Finding>) {
        let changes = self.search.kept().to_vec();
        let comparison = record.comparison.take();
        let proof = Proof { changes, comparison, findings, rest: record };
        self.proof = Some(proof.or(self.proof.take(), self.request.purpose));
    }

    async fn compare(
        &mut self,
        arms: Vec<Arm>,
        max_time: MaxTime,
        past_slow_start: bool,
        listener: &mut Listener<'_>,
    ) -> Result<Compared, EngineError> {
        let request = self.request;
        self.compared_length = self.run_length;
        let compare = CompareRequest {
            target: request.target.clone(),
            credentials: request.credentials.clone(),
            plan: Plan { length: self.run_length, ..request.plan.clone() },
            arms,
            responses: responses(request.purpose),
            ways_to_win: ways_to_win(request.purpose),
            precision_percent: request.min_gain_percent / 2.0,
            threshold_percent: request.min_gain_percent,
            may_shorten: false,
            is_about_parts: false,
            past_slow_start,
            turns: None,
            max_time,
            seed: request.seed.wrapping_add(self.steps.len() as u64),
            state_dir: request.state_dir.clone(),
            hosts: request.hosts.clone(),
            started: request.started.clone(),
        };
        let began = Instant::now();
        // The connection was already reported.
        let runs_only = &mut |event| match event {
            Event::Connected { .. } => {}
            event => listener(event),
        };
        let until = self.budget.end();
        let compared = within(until, self.interrupt, async |interrupt| {
            compare_whole(&compare, interrupt, runs_only).await
        });
        let compared = compared.await.unwrap_or_else(|| Err(self.cut_off()));
        // A warm-up alone is mostly connecting.
        let runs = compared.as_ref().ok().filter(|compared| !only_started(compared));
        let runs = runs.and_then(|compared| compared.record.comparison.as_ref());
        self.budget.took(began.elapsed(), runs.map_or(0, |comparison| comparison.trials.len()));
        match &compared {
            Ok(Compared { not_put_back: Some(why), .. }) => self.broken = Some(why.clone()),
            Err(why @ EngineError::NotPutBack { .. }) => self.broken = Some(why.to_string()),
            _ => {}
        }
        compared
    }

    /// A comparison did not end in time, although it was asked to.
    fn cut_off(&mut self) -> EngineError {
        let why = "the time limit was reached, and the far end no longer answered".to_owned();
        self.broken = Some(why.clone());
        EngineError::Incomplete { why, not_permitted: false }
    }
}

/// Whether a comparison ended after a warm-up that was mostly slow start.
fn only_started(compared: &Compared) -> bool {
    let comparison = compared.record.comparison.as_ref();
    comparison.is_some_and(|comparison| warmed_up_in_slow_start(&comparison.trials))
}
