//! Tuning: measure, try what the findings propose one by one, keep what is proven to help, and prove all kept changes
//! against the start. Every setting is put back in the end.

mod deadline;
mod gain;
mod only_change;
mod outcome;
mod run_length;
mod search;
mod time_budget;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_experiment::starting::{counts_in_slow_start, warmed_up_in_slow_start};
use goodput_model::{
    BitRate, Change, Comparison, Confidence, EndName, Finding, Kind, Known, Length, Plan, Purpose,
    Record, Seconds, SettingRef, Tuning, TuningOutcome, TuningStep,
};
use goodput_remote::{Hosts, RemoteChanges};
use goodput_settings::{SettingError, Turn};

use crate::control::credentials::Credentials;
use crate::control::target::Target;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::near::measure::measure_whole;
use crate::result::conclude::conclude;
use crate::threads::blocking;
use crate::verbs::check::check;
use crate::verbs::compare::{Arm, CompareRequest, Compared, MaxTime, compare_whole};
use deadline::within;
use gain::{gains, is_needless, is_undecided, responses, ways_to_win};
use only_change::OnlyChange;
use outcome::{kept_by, outcome_of};
use run_length::{moved_s, payload_s, run_s};
use search::{Candidate, Search};
use time_budget::TimeBudget;

/// Why nothing more is compared.
const TIME_WAS_OVER: &str = "the time was over; --max-time gives more";

/// Why a search ends that could not judge each change.
const TOO_FEW_RUNS: &str =
    "too few runs to judge every change; --max-time gives more, and shorter runs (-t) are more";

/// What to know of a proof that is a trial.
const PROVEN_BY_TRIAL: &str = "there was no time for a last comparison: what is proven rests on the trial of the only \
                               change; --max-time gives more";

/// Why nothing is compared at all.
const ONLY_A_PLAN: &str = "this is only a plan (--dry-run): nothing was changed";

/// Whether a setting can be kept, of a measurement through a mount at this point, if any.
pub type Keepable = Arc<dyn Fn(&SettingRef, Option<&str>) -> bool + Send + Sync>;

/// What to tune, and for how long.
#[derive(Clone)]
pub struct TuneRequest {
    /// Who is at the other end.
    pub target: Target,
    /// Credentials that the far end may ask for.
    pub credentials: Credentials,
    /// The measurement before any change.
    pub plan: Plan,
    /// Length of each run of a comparison; if `None`, past slow start, as the first measurement shows it.
    pub run_length: Option<Length>,
    /// What to improve.
    pub purpose: Purpose,
    /// Smallest gain for which a change is kept, percent.
    pub min_gain_percent: f64,
    /// Stop after this time at the latest.
    pub max_time: Duration,
    /// Seed for the order of the runs.
    pub seed: u64,
    /// What can be kept, if only that is to be tried: only all that is proven together is proven.
    pub keepable: Option<Keepable>,
    /// Whether to name what would be tried, without changing anything.
    pub dry_run: bool,
    /// Where the journal of settings is kept.
    pub state_dir: PathBuf,
    /// Which hosts are changed by SSH.
    pub hosts: Hosts,
    /// When it began, RFC 3339, UTC.
    pub started: String,
}

/// Tunes. A change that can't be tried becomes a step that says so. When the time is up, or at an interrupt, the record
/// has what was found until then. Settings are put back before it returns, however it ends.
///
/// Any failure after the first measurement ends the search, and is why the record is incomplete.
///
/// # Errors
/// If the first measurement fails.
pub async fn tune(
    request: &TuneRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let _turn = take_turn(request).await?;
    log_in(request).await?;
    let mut budget = TimeBudget::new(request.max_time, ways_to_win(request.purpose));
    let until = budget.end();
    let measured =
        within(until, interrupt, async |interrupt| measure(request, interrupt, listener).await);
    let (mut start, took) = measured.await.unwrap_or_else(|| Err(silent(request)))?;
    if budget.left().is_zero() && !interrupt.is_raised() {
        start.incomplete = start.incomplete.map(|_| TIME_WAS_OVER.into());
    }
    let beside_s = (took.as_secs_f64() - moved_s(&start)).max(0.0);
    let longest_s = budget.longest_run_s() - beside_s;
    let run_length =
        request.run_length.unwrap_or_else(|| Length::Seconds(run_s(&start, longest_s)));
    budget.expect(payload_s(run_length) + beside_s);
    let mut search = Search::default();
    search.consider(&start.findings);
    search.also_consider(&checked(&start).await);
    let mut tuner = Tuner {
        request,
        interrupt,
        run_length,
        compared_length: run_length,
        budget,
        search,
        steps: Vec::new(),
        only: OnlyChange::None,
        kept_by_starts: Vec::new(),
        broken: None,
    };
    let stopped = match request.dry_run {
        true => {
            tuner.leave_untried(ONLY_A_PLAN);
            ONLY_A_PLAN.into()
        }
        false => tuner.try_all(&start, listener).await,
    };
    tuner.leave_out_again(listener).await;
    let whole = tuner.prove(listener).await;
    let Tuner { search, steps, broken, compared_length, .. } = tuner;
    let proves = |whole: &Comparison| gains(whole, request.purpose);
    let is_proven = whole.as_ref().and_then(|whole| whole.comparison.as_ref()).is_some_and(proves);
    start.tuning = Some(Tuning {
        purpose: request.purpose,
        min_gain_percent: request.min_gain_percent,
        steps,
        proven: if is_proven { search.kept().to_vec() } else { Vec::new() },
        kept_in: Vec::new(),
        to_keep: Vec::new(),
        run_length: Some(compared_length),
        stopped,
    });
    start.doubts.extend(broken.clone());
    start.incomplete = start.incomplete.or(broken);
    Ok(with_proof(start, whole))
}

/// The record of tuning: the first measurement, with the last comparison.
fn with_proof(start: Record, whole: Option<Record>) -> Record {
    let Some(whole) = whole else { return Record { kind: Kind::Tune, ..start } };
    let mut doubts = start.doubts;
    doubts.extend(whole.doubts);
    doubts.dedup();
    let (comparison, incomplete) = (whole.comparison, start.incomplete.or(whole.incomplete));
    let changed_hosts = whole.changed_hosts;
    Record { kind: Kind::Tune, comparison, changed_hosts, incomplete, doubts, ..start }
}

/// The right to change this host until tuning ends, so that no other run begins between two comparisons. If something
/// other than another run is in the way, each change says why it is not possible.
async fn take_turn(request: &TuneRequest) -> Result<Option<Turn>, EngineError> {
    if request.dry_run || request.hosts.near.is_some() {
        return Ok(None);
    }
    let state_dir = request.state_dir.clone();
    match blocking(move || Turn::take(&state_dir)).await? {
        Err(busy @ SettingError::Busy { .. }) => Err(busy.into()),
        turn => Ok(turn.ok()),
    }
}

/// Logs in once to each host that is changed by SSH: who names one by mistake learns it before any time is spent, not
/// when the first change is proposed for it.
/// A login may put back what a dead run left, which a plan alone must not do.
async fn log_in(request: &TuneRequest) -> Result<(), EngineError> {
    if request.dry_run {
        return Ok(());
    }
    let Hosts { near, far, access } = &request.hosts;
    for address in near.iter().chain(far) {
        let (state_dir, address) = (request.state_dir.clone(), address.clone());
        let access = access.clone();
        let begun = move || RemoteChanges::begin(&state_dir, &address, &access).map(drop);
        blocking(begun).await??;
    }
    Ok(())
}

/// The far end was silent for the whole time.
fn silent(request: &TuneRequest) -> EngineError {
    let seconds = request.max_time.as_secs_f64();
    EngineError::Incomplete {
        why: format!(
            "{}: the first measurement did not end within {seconds:.0} s (--max-time); nothing was changed",
            request.target.text
        ),
        not_permitted: false,
    }
}

/// Whether a comparison ended after a warm-up that was mostly slow start.
fn only_started(compared: &Compared) -> bool {
    let comparison = compared.record.comparison.as_ref();
    comparison.is_some_and(|comparison| warmed_up_in_slow_start(&comparison.trials))
}

/// A comparison did not end in time, although it was asked to.
fn cut_off() -> EngineError {
    EngineError::Incomplete {
        why: "the time limit was reached, and the far end no longer answered".into(),
        not_permitted: false,
    }
}

/// The measurement before any change, and how long it took once connected: each comparison connects only once.
async fn measure(
    request: &TuneRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<(Record, Duration), EngineError> {
    let TuneRequest { target, credentials, plan, started, .. } = request;
    let mut client = Client::connect(target, plan, credentials, interrupt, listener).await?;
    let began = Instant::now();
    let measured = measure_whole(&mut client, plan, interrupt, listener).await;
    let took = began.elapsed();
    client.leave().await;
    conclude(measured?, &target.text, started).map(|conclusion| (conclusion.record, took))
}

/// Findings about this host and the device towards the target that are more than possible; none if they can't be
/// inspected.
async fn checked(start: &Record) -> Vec<Finding> {
    let device = start.ends.near.get().and_then(|near| near.after.text("route.device"));
    let Ok(device) = device.map(ToOwned::to_owned) else { return Vec::new() };
    let started = start.started.clone();
    let report = blocking(move || check(&[device], None, &started)).await;
    let findings = report.and_then(|report| report).map(|report| report.findings);
    let mut findings = findings.unwrap_or_default();
    findings.retain(|finding| finding.confidence != Confidence::Possible);
    findings
}

struct Tuner<'a> {
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
    /// Why nothing more may be compared, if that is so.
    broken: Option<String>,
}

impl Tuner<'_> {
    /// Notes what could be tried next. Later candidates depend on what helps.
    fn leave_untried(&mut self, why: &str) {
        while let Some(Candidate { mut change, rule }) = self.search.next() {
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

    /// Tries one change after the other. Returns why it ends.
    async fn try_all(&mut self, start: &Record, listener: &mut Listener<'_>) -> String {
        if let Some(why) = self.ended() {
            self.leave_untried(&why);
            return why;
        }
        let ceiling = start.result.ceiling_bits_per_s.clone();
        if let Some(reached) = self.reaches(start.result.goodput_bits_per_s, &ceiling) {
            return reached;
        }
        while let Some(candidate) = self.search.next() {
            if let Some(why) = self.ended() {
                self.search.give_back(candidate);
                self.leave_untried(&why);
                return why;
            }
            let Some(time) = self.budget.for_a_change(self.search.waiting()) else {
                self.search.give_back(candidate);
                let (least, left) = (self.budget.shortest_s(), self.budget.left().as_secs_f64());
                self.leave_untried(&format!(
                    "too little time: {left:.0} s were left; a change takes at least {least:.0} s, and the last \
                     comparison as long again"
                ));
                return "too little time was left for another change; --max-time gives more".into();
            };
            if !self.may_be_kept(&candidate.change, start) {
                self.leave_out(candidate, listener);
                continue;
            }
            let Candidate { change, rule } = candidate.clone();
            let waiting = self.search.waiting();
            listener(Event::ChangeBegan { change, rule, waiting });
            let better = self.try_one(candidate, time, listener).await;
            let goodput = better.as_ref().map(|better| better.result.goodput_bits_per_s);
            if let Some(reached) = goodput.and_then(|goodput| self.reaches(goodput, &ceiling)) {
                return reached;
            }
        }
        self.ended().unwrap_or_else(|| self.exhausted().into())
    }

    /// Why the search ends when nothing waits.
    fn exhausted(&self) -> &'static str {
        let is_open = |step: &TuningStep| step.outcome == TuningOutcome::TooFewRuns;
        if self.steps.iter().any(is_open) { TOO_FEW_RUNS } else { "nothing is left to try" }
    }

    fn may_be_kept(&self, change: &Change, start: &Record) -> bool {
        let point = start.mount.as_ref().map(|mount| mount.point.as_str());
        self.request.keepable.as_ref().is_none_or(|keepable| keepable(&change.setting, point))
    }

    /// Doesn't try a change that could not be kept: what is proven beside it would not be proven without it.
    fn leave_out(&mut self, Candidate { change, rule }: Candidate, listener: &mut Listener<'_>) {
        let why = "--keep leaves it out, because none of the hosts within reach can keep it; without --keep it is tried";
        let (outcome, comparison) = (TuningOutcome::Failed, Known::missing(why));
        self.ended_step(TuningStep { change, rule, outcome, comparison }, listener);
    }

    /// Why nothing more may be compared, if that is so.
    fn ended(&self) -> Option<String> {
        let interrupted = self.interrupt.is_raised().then(|| "it was interrupted".into());
        let over = || self.budget.left().is_zero().then(|| TIME_WAS_OVER.into());
        interrupted.or_else(|| self.broken.clone()).or_else(over)
    }

    /// Tries one change. Returns a run with the change, if it is kept.
    async fn try_one(
        &mut self,
        candidate: Candidate,
        time: MaxTime,
        listener: &mut Listener<'_>,
    ) -> Option<Record> {
        let Candidate { change, rule } = candidate.clone();
        let arms = self.search.without_and_with(&change);
        let past_slow_start = self.may_lengthen(self.needed_comparisons());
        let compared = self.compare(arms, time, past_slow_start, listener).await;
        if compared.as_ref().is_ok_and(only_started) {
            self.lengthen_after_warm_up(candidate, listener);
            return None;
        }
        let purpose = self.request.purpose;
        self.only.tried(kept_by(&compared, purpose).cloned().map(Box::new));
        let (outcome, comparison, better) = outcome_of(compared, purpose);
        match (outcome, &comparison) {
            (TuningOutcome::Kept, Known::Value(runs)) => {
                self.keep(change.clone(), runs, better.as_ref());
            }
            (TuningOutcome::NotBetter, Known::Value(runs)) => self.try_again(candidate, runs),
            _ => {}
        }
        self.ended_step(TuningStep { change, rule, outcome, comparison }, listener);
        better
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

    /// Compares all kept changes with the start, if anything was kept. Without time for another comparison, that of an
    /// only change is the proof.
    async fn prove(&mut self, listener: &mut Listener<'_>) -> Option<Record> {
        if self.search.kept().is_empty() || self.ended().is_some() {
            return None;
        }
        if !self.budget.allows_another()
            && let Some(mut only) = self.only.take_proof()
        {
            only.doubts.push(PROVEN_BY_TRIAL.into());
            return Some(*only);
        }
        if self.search.kept().iter().any(|kept| self.kept_by_starts.contains(&kept.setting)) {
            self.lengthen_runs_for(1);
        }
        listener(Event::ProofBegan { changes: self.search.kept().len() });
        let (arms, left) = (self.search.start_and_kept(), self.budget.left());
        match self.compare(arms, left.into(), false, listener).await {
            Ok(compared) => Some(compared.record),
            Err(why) => {
                self.broken.get_or_insert(format!("the last comparison failed: {why}"));
                None
            }
        }
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
        let compared = compared.await.unwrap_or_else(|| Err(cut_off()));
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

    /// Reports in words if less than the smallest gain lies between the goodput and the ceiling. A goodput well above it
    /// shows that the ceiling is another: the fault was in what it was computed from.
    fn reaches(&self, goodput: BitRate, ceiling: &Known<BitRate>) -> Option<String> {
        let ceiling = ceiling.value().filter(|_| self.request.purpose == Purpose::Throughput)?;
        let least = self.request.min_gain_percent;
        let ratio = 1.0 + least / 100.0;
        (ceiling.0 / ratio..=ceiling.0 * ratio).contains(&goodput.0).then(|| {
            format!(
                "{goodput} is within {least} % of {ceiling}, the most that this path could carry"
            )
        })
    }
}
