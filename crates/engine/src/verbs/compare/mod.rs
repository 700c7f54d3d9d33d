//! A comparison: the same measurement under several arms, interleaved, each on fresh connections or in turns within
//! one. Every setting is put back at the end.

pub(crate) mod appliers;
mod arms;
mod copy_cost;
mod costs;
mod ending;
mod max_time;
mod nfs_reads;
mod pace;
mod polled_runs;
mod rehearsal;
mod run_log;
mod run_responses;
mod same_values;
mod shown_runs;
mod taking;
mod turns;
mod watch;
mod whose_cpu;
mod winner;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_experiment::starting::warmed_up_in_slow_start;
use goodput_experiment::{Design, Step, WARM_UP, alike};
use goodput_model::{EndName, Length, Plan, Record, Response, Seconds};
use goodput_remote::Hosts;

pub use arms::{Arm, Factor, factorial, one_at_a_time};
pub use costs::cpu_s_per_gb;
pub use max_time::MaxTime;
pub use pace::{LONGEST_RUN_S, TimeToJudge, least_time, run_s, time_to_judge};
pub use whose_cpu::check_cpu;

use crate::control::credentials::Credentials;
use crate::control::target::Target;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::{Interrupt, unless_raised};
use crate::near::client::Client;
use crate::near::measure::measure_one_of_many;
use crate::near::own_check;
use crate::result::conclude::conclude_at;
use crate::result::measurement::{FarSettings, Measurement};
use crate::verbs::deadline::within;
use crate::verbs::retry::{RETRY_PAUSES, may_pass};
use appliers::{Appliers, planned};
use ending::{at_time_limit, given_up, with_restored};
use rehearsal::{Rehearsal, rehearse};
pub(crate) use run_log::Compared;
use run_log::{Aborted, Run, RunLog};
use taking::{Needs, ends_of_hosts};
use turns::{Alternation, Blocks, Pattern};
use watch::Watch;
use whose_cpu::watch_far;

/// What to compare, and for how long.
#[derive(Clone)]
pub struct CompareRequest {
    /// Who is at the other end.
    pub target: Target,
    /// Credentials that the far end may ask for.
    pub credentials: Credentials,
    /// The measurement of every run, before an arm changes it.
    pub plan: Plan,
    /// What differs, the baseline first. All have the same settings, in the same order.
    pub arms: Vec<Arm>,
    /// What the arms are judged by; the first response decides.
    pub responses: Vec<Response>,
    /// How many responses may each prove an arm better; they share the error.
    pub ways_to_win: usize,
    /// Stop when every interval's half-width is below this, percent.
    pub precision_percent: f64,
    /// Smallest effect that counts, percent.
    pub threshold_percent: f64,
    /// Whether later runs may be shorter than the plan says, if those of the warm-up show that they would not fit.
    pub may_shorten: bool,
    /// Whether the question is which part of a file transfer is slowest, not how the arms differ.
    pub is_about_parts: bool,
    /// Whether a run counts from when its rate stays the same: a token bucket lets a first burst through faster.
    pub settled: bool,
    /// Whether to end after the warm-up if it was mostly slow start: longer runs would show more.
    pub past_slow_start: bool,
    /// If the runs only choose what is compared with the start later: when that comparison has to be done. An obvious
    /// difference ends them, as long as it has time enough.
    pub proof_by: Option<Instant>,
    /// If the arms take turns within one connection: how long each turn counts. Only goodput is judged then.
    pub turns: Option<Duration>,
    /// When runs that do not end have to be given up, if at a certain time. Putting back is not.
    pub given_up_at: Option<Instant>,
    /// Stop after this time at the latest.
    pub max_time: MaxTime,
    /// Seed for the order of the runs.
    pub seed: u64,
    /// Where the journal of settings is kept.
    pub state_dir: PathBuf,
    /// Which hosts are changed by SSH.
    pub hosts: Hosts,
    /// What is configured at a far end that reports nothing itself, before any change. If it is given, runs are diagnosed
    /// with it, as the arms have changed it.
    pub far_settings: Option<Arc<FarSettings>>,
    /// When it began, RFC 3339, UTC.
    pub started: String,
}

/// Runs the comparison. Settings are put back before it returns, however it ends. A failed run is discarded and
/// repeated. If several fail in a row, or at an interrupt, the comparison ends early with what the runs so far have
/// shown ([`Record::incomplete`]).
pub async fn compare(
    request: &CompareRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    compare_whole(request, interrupt, listener).await.map(|compared| compared.record)
}

/// The same, with a run of an arm that is not the baseline.
pub(crate) async fn compare_whole(
    request: &CompareRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Compared, EngineError> {
    let CompareRequest { target, credentials, plan, given_up_at, .. } = request;
    let ends = ends_of_hosts(&request.arms);
    let hosts = request.hosts.of_changes(&ends)?;
    if request.turns.is_some() {
        turns::check(request)?;
    }
    if request.responses.first() == Some(&Response::Cpu) {
        check_cpu(&request.target, &request.plan, &hosts)?;
    }
    check_arms(request).await?;
    let connected = within(*given_up_at, interrupt, async |interrupt| {
        Client::connect(target, plan, credentials, interrupt, listener).await
    });
    let connected = connected.await.unwrap_or_else(|| Err(given_up(interrupt, None)));
    let mut client = connected.map_err(|why| at_time_limit(why, interrupt))?;
    let mut appliers = Appliers::new(request.state_dir.clone(), hosts);
    let mut progress = None;
    let made = within(*given_up_at, interrupt, async |interrupt| {
        unless_raised(interrupt, appliers.take(&mut client, Needs::of(request), listener)).await?;
        run(request, &mut client, &mut appliers, &mut progress, interrupt, listener).await
    });
    let made = made.await;
    // Put back first, whatever time that takes, then report what went wrong, if anything did.
    let (mut outcome, restored) = match made {
        Some(outcome) => {
            let restored = appliers.restore(Some(&mut client)).await;
            client.leave().await;
            (outcome.map_err(|why| at_time_limit(why, interrupt)), restored)
        }
        None => {
            // Nobody knows what the far end would answer next.
            drop(client);
            let why = given_up(interrupt, appliers.under_way());
            (finished(request, progress, why), appliers.restore(None).await)
        }
    };
    if let Ok(compared) = &mut outcome {
        compared.record.changed_hosts = appliers.changed_hosts();
    }
    with_restored(outcome, restored)
}

/// What a comparison has shown so far. It counts even if a run is given up.
struct Progress {
    log: RunLog,
    design: Design,
}

/// What the runs showed that had ended when the rest was given up, if any had; otherwise why.
fn finished(
    request: &CompareRequest,
    progress: Option<Progress>,
    why: EngineError,
) -> Result<Compared, EngineError> {
    match progress {
        Some(Progress { log, design }) if log.has_finished() => {
            let why = why.to_string();
            let compared = log.close(request, &design, &why, None)?;
            Ok(Compared { given_up: Some(why), ..compared })
        }
        _ => Err(why),
    }
}

async fn run(
    request: &CompareRequest,
    client: &mut Client,
    appliers: &mut Appliers,
    progress: &mut Option<Progress>,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Compared, EngineError> {
    let arms = request.arms.clone();
    let design = Design {
        arms: arms.len(),
        responses: request.responses.clone(),
        ways_to_win: request.ways_to_win,
        precision_percent: request.precision_percent,
        threshold_percent: request.threshold_percent,
        is_about_parts: request.is_about_parts,
        seed: request.seed,
        ..Design::default()
    };
    let prepared = unless_raised(interrupt, async {
        let rehearsal = rehearse(request, client, appliers, interrupt).await?;
        let mut doubts = appliers.forget_metrics(client, &request.plan, &arms).await;
        doubts.extend(watch_far(request, appliers).await?);
        Ok((rehearsal, doubts))
    });
    let (Rehearsal { change, rounded }, doubts) = prepared.await?;
    let mut log = RunLog::new(request, design.looks().first());
    log.doubts = doubts;
    log.doubts.extend(rounded);
    let Progress { log, design } = progress.insert(Progress { log, design });
    let plan = request.plan.clone();
    let far_settings = BTreeMap::new();
    let mut runs = Runs { request, arms, plan, client, appliers, interrupt, log, far_settings };
    let mut broken = None;
    let stopped = loop {
        if let Some(Aborted { what, .. }) = &broken {
            break what.clone();
        }
        design.chooses = runs.leaves_time_for_proof(design.looks().first());
        match design.next(&runs.log.trials, runs.log.time_left()) {
            Step::Stop(why) => break why.to_string(),
            _ if interrupt.is_raised() => break "it was interrupted".into(),
            _ if request.past_slow_start && warmed_up_in_slow_start(&runs.log.trials) => {
                break "its runs were mostly slow start".into();
            }
            Step::RunBlock { block, order, warm_up } => {
                listener(Event::BlockBegan(runs.log.outlook(design, block, &order)));
                broken = match request.turns {
                    // Separate runs show what limits, and so what to expect of the arms.
                    Some(counted) if !warm_up => {
                        let pattern = Pattern::new(counted, change);
                        let left = runs.log.time_left_for(pattern);
                        let mut blocks = design.up_to_look(&runs.log.trials, left, block, &order);
                        blocks.truncate((pattern.most_turns() / order.len()).max(1));
                        runs.in_turns(pattern, &blocks, listener).await
                    }
                    _ => runs.block(block, order, warm_up, listener).await,
                };
                if warm_up && request.turns.is_none() {
                    runs.leave_out_alike(design);
                    runs.fit(design.looks().first(), listener);
                }
            }
        }
    };
    match progress.take() {
        Some(Progress { log, design }) => log.close(request, &design, &stopped, broken),
        None => Err(EngineError::Flow(format!("no run finished: {stopped}"))),
    }
}

/// Refuses an arm that this end can't measure, before anything is sent.
async fn check_arms(request: &CompareRequest) -> Result<(), EngineError> {
    for arm in &request.arms {
        let plan = planned(arm, &request.plan)?;
        own_check::check(&request.target, &plan).await.map_err(|why| of_arm(arm, &why))?;
    }
    Ok(())
}

/// Why an arm can't be measured, with its settings.
fn of_arm(arm: &Arm, why: &EngineError) -> EngineError {
    let settings = arm.0.iter().map(|(setting, value)| format!("{setting}={value}"));
    let named: Vec<_> = settings.collect();
    let not_permitted = why.not_permitted();
    EngineError::Incomplete { why: format!("{}: {why}", named.join(" ")), not_permitted }
}

/// How much longer than these runs those of a proof may take.
const PROOF_TIME_MARGIN_RATIO: f64 = 1.25;

/// Makes the runs and records them.
struct Runs<'a> {
    request: &'a CompareRequest,
    /// Those that still run.
    arms: Vec<Arm>,
    /// The measurement of the next run, before its arm changes it.
    plan: Plan,
    client: &'a mut Client,
    appliers: &'a mut Appliers,
    interrupt: &'a Interrupt,
    log: &'a mut RunLog,
    /// What is configured at a far end that reports nothing itself, by arm.
    far_settings: BTreeMap<usize, Arc<FarSettings>>,
}

impl Runs<'_> {
    /// Leaves out each arm of which the kernel made the same as of an earlier one: the warm-up has shown it. Only of settings
    /// that move what limited: two runs have the same window by chance, too.
    fn leave_out_alike(&mut self, design: &mut Design) {
        let settings = self.arms.first().map_or_else(Vec::new, Arm::settings);
        let is_moved = settings.iter().all(|one| self.log.move_limits.contains(&one.name));
        let alike = alike(&settings, &self.log.values, &self.log.trials);
        if alike.is_empty() || !is_moved {
            return;
        }
        self.log.doubts.extend(same_values::in_words(&self.log.values, &alike));
        let gone: BTreeSet<usize> = alike.iter().map(|one| one.arm).collect();
        let mut arm = 0..;
        self.arms.retain(|_| arm.next().is_none_or(|arm| !gone.contains(&arm)));
        design.arms = self.arms.len();
        self.far_settings = same_values::of_others(std::mem::take(&mut self.far_settings), &gone);
        self.log.leave_out(&gone, design.looks().first());
    }

    /// Makes the runs shorter if they would not fit into the time until the first look; the warm-up has shown how long
    /// they take.
    fn fit(&mut self, first_look: u32, listener: &mut Listener<'_>) {
        let Length::Seconds(planned_s) = self.plan.length else { return };
        let runs = first_look * self.arms.len() as u32;
        let (needed_s, left_s) = (self.log.pace.time_s(runs), self.log.left().as_secs_f64());
        if needed_s <= left_s || self.interrupt.is_raised() {
            return;
        }
        let shorter_s = match self.request.may_shorten {
            true => pace::shorter_s(planned_s, runs, needed_s, left_s),
            false => planned_s,
        };
        self.plan.length = Length::Seconds(shorter_s);
        self.log.pace.shorten(planned_s - shorter_s);
        if shorter_s < planned_s {
            let text =
                format!("each run takes {} from here on, to judge in time", Seconds(shorter_s));
            self.log.doubts.push(text.clone());
            listener(Event::Note { text });
        }
        let needed_s = self.log.pace.time_s(runs);
        if needed_s <= left_s {
            return;
        }
        // Only a forecast: the result says whether it came true.
        let candidates = self.arms.len() - 1;
        let blocks_runs = self.log.time_left().runs / first_look;
        let text = match (blocks_runs as usize).saturating_sub(1).min(candidates) {
            0 => format!(
                "the {runs} runs until the first judgement take about {needed_s:.0} s, and {left_s:.0} s are left; \
                 --max-time gives more"
            ),
            judged => format!(
                "there is time to judge {judged} of {candidates} arms, those first that do best in the warm-up; the others \
                 need about {:.0} s more (--max-time)",
                needed_s - left_s
            ),
        };
        listener(Event::Note { text });
    }

    /// Whether there is time for a later proof whose first look comes with as many blocks.
    fn leaves_time_for_proof(&self, first_look: u32) -> bool {
        // The warm-up is a block as well.
        let runs = (first_look + 1) * self.arms.len() as u32;
        let needed = Duration::from_secs_f64(PROOF_TIME_MARGIN_RATIO * self.log.pace.time_s(runs));
        let left = |by: Instant| by.saturating_duration_since(Instant::now());
        self.request.proof_by.is_some_and(|by| left(by) >= needed)
    }

    /// Runs each arm of `order` once. Returns why the comparison ends, if it does.
    async fn block(
        &mut self,
        block: u32,
        order: Vec<usize>,
        warm_up: bool,
        listener: &mut Listener<'_>,
    ) -> Option<Aborted> {
        for arm in order {
            let broken = self.whole_run(block, arm, warm_up, listener).await;
            if broken.is_some() || self.interrupt.is_raised() {
                return broken;
            }
        }
        self.log.pace.end_block();
        None
    }

    /// One completed run, after those that failed. Returns why the comparison ends, if it does.
    async fn whole_run(
        &mut self,
        block: u32,
        arm: usize,
        warm_up: bool,
        listener: &mut Listener<'_>,
    ) -> Option<Aborted> {
        for failures in 1.. {
            listener(Event::TrialBegan { values: self.log.named(arm) });
            let began = Instant::now();
            let run = self.one(arm, listener).await;
            // A run that was cut short is unlike the others and does not count.
            if self.interrupt.is_raised() {
                return None;
            }
            let cause = match run {
                Ok(run) => {
                    self.log.pace.run(arm, began.elapsed());
                    let discarded = warm_up.then_some(WARM_UP);
                    self.log.enter(block, arm, discarded, run, listener);
                    return None;
                }
                Err(cause) => cause,
            };
            self.log.fail(block, arm, &cause.of_a_run(), listener);
            let lasts = !may_pass(&cause) && !self.log.has_run(arm)
                || cause.not_permitted()
                || cause.has_lost_host();
            let Some(pause) = RETRY_PAUSES.get(failures - 1).filter(|_| !lasts) else {
                let what = match failures {
                    1 => "a run failed".into(),
                    _ => format!("{failures} runs in a row failed"),
                };
                return Some(Aborted { what, cause });
            };
            tokio::select! {
                () = tokio::time::sleep(*pause) => {}
                () = self.interrupt.raised() => return None,
            }
        }
        None
    }

    /// Runs the arms of `blocks` by turns within one connection. Returns why the comparison ends, if it does.
    async fn in_turns(
        &mut self,
        pattern: Pattern,
        blocks: &Blocks,
        listener: &mut Listener<'_>,
    ) -> Option<Aborted> {
        for pause in RETRY_PAUSES.iter().map(Some).chain([None]) {
            let Self { request, interrupt, .. } = *self;
            let (client, appliers) = (&mut *self.client, &mut *self.appliers);
            let alternation = Alternation { request, pattern, client, appliers, interrupt };
            let cause = match alternation.run(blocks, listener).await {
                Ok(turns) if turns.is_empty() && !interrupt.is_raised() => no_turn(),
                Ok(turns) => {
                    turns.into_iter().for_each(|turn| self.log.take_turn(turn, listener));
                    return None;
                }
                Err(_) if self.interrupt.is_raised() => return None,
                Err(cause) => cause,
            };
            let why = cause.of_a_run();
            self.log.doubts.push(format!("a connection on which arms took turns failed: {why}"));
            let Some(pause) = pause.filter(|_| may_pass(&cause)) else {
                return Some(Aborted { what: "a run failed".into(), cause });
            };
            tokio::select! {
                () = tokio::time::sleep(*pause) => {}
                () = self.interrupt.raised() => return None,
            }
        }
        None
    }

    /// What is configured at the far end while an arm is in effect: each arm always has the same.
    async fn far_settings(
        &mut self,
        arm: usize,
        measured: &Measurement,
    ) -> Result<Option<Arc<FarSettings>>, EngineError> {
        let Some(start) = &self.request.far_settings else { return Ok(None) };
        if let Some(known) = self.far_settings.get(&arm) {
            return Ok(Some(known.clone()));
        }
        let towards = measured.near_address();
        let facts = self.appliers.ask(EndName::Far, move |host| host.facts(towards)).await?;
        // A host that no arm changes is as it was.
        let settings = facts.map_or_else(
            || start.clone(),
            |facts| Arc::new(FarSettings { host: start.host.clone(), facts }),
        );
        self.far_settings.insert(arm, settings.clone());
        Ok(Some(settings))
    }

    /// Sets everything for a run of this arm. Returns its plan, the cost of a copy, and the hosts that are watched.
    async fn set_up(&mut self, arm: usize) -> Result<(Plan, Option<f64>, Watch), EngineError> {
        if self.client.be_met().await? {
            // What the far end had changed for the earlier conversation went with it.
            let plan = &self.request.plan;
            let doubts = self.appliers.forget_metrics(self.client, plan, &self.arms).await;
            let new = doubts.into_iter().filter(|doubt| !self.log.doubts.contains(doubt));
            let new: Vec<_> = new.collect();
            self.log.doubts.extend(new);
        }
        let plan = self.appliers.apply(self.client, &self.arms[arm], &self.plan).await?;
        let before = copy_cost::copy_s_per_gb().await;
        Ok((plan, before, Watch::begin(self.appliers, &self.arms).await?))
    }

    async fn one(&mut self, arm: usize, listener: &mut Listener<'_>) -> Result<Run, EngineError> {
        let Self { request, interrupt, .. } = *self;
        let (plan, before, watch) = unless_raised(interrupt, self.set_up(arm)).await?;
        let quietly = &mut |event| quiet(event, listener);
        let mut measurement = measure_one_of_many(self.client, &plan, interrupt, quietly).await?;
        let asked = unless_raised(interrupt, async {
            Ok((watch.end(self.appliers).await?, self.far_settings(arm, &measurement).await?))
        });
        let (watched, far_settings) = asked.await?;
        measurement.far_settings = far_settings;
        let copy_s_per_gb = copy_cost::mean(before, copy_cost::copy_s_per_gb().await);
        let (hosts, target) = (&request.hosts, &request.target.text);
        let conclusion = conclude_at(hosts, measurement, target, &request.started)?;
        Ok(Run { conclusion, copy_s_per_gb, watched })
    }
}

/// Trying again would end alike.
fn no_turn() -> EngineError {
    let why =
        "no arm could complete a turn before the connection ended; compare without --alternate";
    EngineError::Flow(why.into())
}

/// A comparison shows its runs, not their intervals; who wants to see more has the samples.
fn quiet(event: Event, listener: &mut Listener<'_>) {
    if matches!(event, Event::Note { .. } | Event::Sampled { .. }) {
        listener(event);
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{End, Host, Known};

    use super::*;
    use crate::result::conclude::conclude_at_least;

    fn request() -> CompareRequest {
        let arm = |value: &str| Arm(vec![("chunk".parse().unwrap(), value.into())]);
        CompareRequest {
            target: "example".parse().unwrap(),
            credentials: Default::default(),
            plan: Plan::standard(),
            arms: vec![arm("64K"), arm("1M")],
            responses: vec![Response::Throughput],
            ways_to_win: 1,
            precision_percent: 1.5,
            threshold_percent: 3.0,
            may_shorten: false,
            is_about_parts: false,
            settled: false,
            past_slow_start: false,
            proof_by: None,
            turns: None,
            given_up_at: None,
            max_time: Duration::from_secs(60).into(),
            seed: 1,
            state_dir: "/nowhere".into(),
            hosts: Hosts::default(),
            far_settings: None,
            started: "now".into(),
        }
    }

    fn run() -> Run {
        let near = End::unobserved(Host::foreign("near"));
        let seen = Measurement::made_up(Plan::standard(), near, Known::missing("made up"));
        let conclusion = conclude_at_least(seen, "example", "now");
        Run { conclusion, copy_s_per_gb: None, watched: Vec::new() }
    }

    #[test]
    fn what_had_ended_when_the_rest_was_given_up_counts() {
        let request = request();
        let after = |runs: u32| {
            let mut log = RunLog::new(&request, 6);
            (1..=runs).for_each(|block| log.enter(block, 0, None, run(), &mut |_| {}));
            let responses = request.responses.clone();
            let design = Design { arms: 2, responses, ..Design::default() };
            let why = EngineError::GivenUp("it was interrupted".into());
            finished(&request, Some(Progress { log, design }), why)
        };
        let compared = after(2).ok().unwrap();
        let comparison = compared.record.comparison.unwrap();
        assert_eq!((comparison.trials.len(), compared.record.incomplete), (2, None));
        assert_eq!(compared.given_up.as_deref(), Some("it was interrupted"));
        assert!(matches!(after(0), Err(EngineError::GivenUp(_))), "there is nothing to report");
    }
}
