//! What a comparison has shown so far.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use goodput_experiment::conditions::REFERENCE_COPY;
use goodput_experiment::{ArmAnalysis, Design, TimeLeft, analyse};
use goodput_model::{BitRate, EndName, FilesAlone, Judgement, Kind, Known, Length, Record, Trial};

use super::costs::{self, RunCost};
use super::max_time::MaxTime;
use super::nfs_reads::{self, ReadRun};
use super::pace::Pace;
use super::polled_runs::{self, PolledRun};
use super::run_responses::{changed_ends, run_responses};
use super::same_values;
use super::shown_runs::ShownRuns;
use super::turns::{self, Pattern, Turn};
use super::watch::{self, Watched};
use super::{Arm, CompareRequest, winner};
use crate::error::EngineError;
use crate::events::{Decided, Event, Listener, Outlook};
use crate::near::latency::IDLE_PHASE_TIME;
use crate::result::call_sizes;
use crate::result::conclude::Conclusion;
use crate::result::settled::settled;

/// What a comparison has shown.
pub struct Compared {
    /// All of it.
    pub record: Record,
    /// The first run of an arm that is not the baseline, warm-ups included.
    pub challenger: Option<Record>,
    /// Mean time of a run of the second arm.
    pub changed_run: Option<Duration>,
    /// What could not be put back afterwards, if anything.
    pub not_put_back: Option<String>,
    /// Why the last run was given up, if it did not end when it was asked to.
    pub given_up: Option<String>,
}

/// Why a comparison ended before its design was satisfied.
pub struct Aborted {
    /// What failed, without its cause.
    pub what: String,
    /// The error of the last run.
    pub cause: EngineError,
}

impl Aborted {
    /// In words, once for a whole comparison: a cause may say at length what to do.
    fn why(&self) -> String {
        format!("{}: {}", self.what, self.cause)
    }
}

/// A completed run, and the state of the host beside it.
pub struct Run {
    pub conclusion: Conclusion,
    /// Cost of copying memory before and after, seconds per 10^9 bytes.
    pub copy_s_per_gb: Option<f64>,
    /// What the hosts reached by SSH counted.
    pub watched: Vec<Watched>,
}

/// The runs so far.
pub struct RunLog {
    pub trials: Vec<Trial>,
    /// Cost of the runs that count, by arm.
    costs: Vec<(usize, RunCost)>,
    /// The READs of those runs, if they made any.
    reads: Vec<(usize, ReadRun)>,
    shown: ShownRuns,
    first: Option<Record>,
    /// The first run of any other arm, if the baseline never has one.
    other: Option<Record>,
    /// Names of the settings that move what limited a run, by its finding.
    pub move_limits: BTreeSet<String>,
    /// The values of each arm.
    pub values: Vec<Vec<String>>,
    /// The ends whose hosts the arms change.
    changed: Vec<EndName>,
    began: Instant,
    max_time: MaxTime,
    /// Blocks at the first look.
    first_look: u32,
    pub pace: Pace,
    /// Whether only the first runs show how long a run takes.
    tries: bool,
    pub doubts: Vec<String>,
    /// Runs with a polled card.
    polled: Vec<PolledRun>,
    /// Whether a run counts from when its rate stays the same.
    settled: bool,
}

impl RunLog {
    /// Before the first run. The first look comes with `first_look` blocks.
    pub fn new(request: &CompareRequest, first_look: u32) -> Self {
        let arms = &request.arms;
        let (run, is_known) = match request.plan.length {
            Length::Seconds(seconds) => (seconds, true),
            Length::Auto { max_s, .. } => (max_s, true),
            // Not known before the first run; it is tried.
            Length::Bytes(_) | Length::Source => (0.05, false),
        };
        let idle = if request.plan.latency { IDLE_PHASE_TIME.as_secs_f64() } else { 0.0 };
        let run = run + idle;
        Self {
            trials: Vec::new(),
            costs: Vec::new(),
            reads: Vec::new(),
            shown: ShownRuns::default(),
            first: None,
            other: None,
            move_limits: BTreeSet::new(),
            values: arms.iter().map(Arm::values).collect(),
            changed: changed_ends(arms),
            began: Instant::now(),
            max_time: request.max_time,
            first_look,
            pace: Pace::new(Duration::from_secs_f64(run)),
            tries: !is_known,
            doubts: Vec::new(),
            polled: Vec::new(),
            settled: request.settled,
        }
    }

    /// How many more runs fit into the time, judged by the longest block so far; before the first block, by the length
    /// of the plan.
    pub fn time_left(&self) -> TimeLeft {
        let tried_first = if self.knows_pace() { 0 } else { self.values.len() as u32 };
        TimeLeft { runs: self.pace.runs(self.left()).max(tried_first) }
    }

    /// The remaining time.
    pub fn left(&self) -> Duration {
        let max_time = self.max_time.with(self.whole_blocks(), self.first_look);
        max_time.saturating_sub(self.began.elapsed())
    }

    /// Blocks that count so far.
    fn whole_blocks(&self) -> usize {
        let counts = |arm| move |trial: &&Trial| trial.arm == arm && trial.discarded.is_none();
        let runs = |arm| self.trials.iter().filter(counts(arm)).count();
        (0..self.values.len()).map(runs).min().unwrap_or(0)
    }

    /// Whether the length of a run is known, from the plan or from the first run.
    pub fn knows_pace(&self) -> bool {
        !self.tries || !self.trials.is_empty()
    }

    /// Records a completed run; `discarded` says why it does not count, if it does not.
    pub fn enter(
        &mut self,
        block: u32,
        arm: usize,
        discarded: Option<&str>,
        run: Run,
        listener: &mut Listener<'_>,
    ) {
        let Run { conclusion, copy_s_per_gb, watched } = run;
        let Conclusion { mut record, witnesses, witness_counts, amount, .. } = conclusion;
        watch::complete(&mut record, &watched);
        // The record of the comparison has the doubts of one arm; the others' values are as doubtful.
        for made in call_sizes::changed(&record) {
            if !self.doubts.contains(&made) {
                self.doubts.push(made);
            }
        }
        let goodput = record.result.goodput_bits_per_s;
        self.polled.extend(watched.iter().filter_map(|host| host.polled_run(goodput)));
        let spent = RunCost::of(&record);
        let limiting = record.findings.iter().find(|finding| finding.rule == record.verdict.limit);
        let changes = limiting.into_iter().flat_map(|finding| &finding.changes);
        self.move_limits.extend(changes.map(|change| change.setting.name.clone()));
        let predicted = limiting.and_then(|finding| finding.predicted_bits_per_s.value());
        let copy = copy_s_per_gb.map(|cost| (REFERENCE_COPY.to_string(), cost));
        let trial = Trial {
            cpu_s_per_gb: costs::cpu_with(spent.as_ref(), &watched),
            latency: record.latency.clone(),
            files_alone: files_alone(&record),
            limit: record.verdict.limit.clone(),
            witnesses,
            witness_counts,
            amount,
            responses: run_responses(&record, &self.changed, &watched),
            conditions: copy.into_iter().collect(),
            predicted_bits_per_s: predicted.copied(),
            discarded: discarded.map(Into::into),
            ..Trial::new(block, arm, Known::Value(self.counted(&record)))
        };
        self.note(trial, listener);
        self.costs.extend(spent.filter(|_| discarded.is_none()).map(|spent| (arm, spent)));
        let read = ReadRun::of(&record).filter(|_| discarded.is_none());
        self.reads.extend(read.map(|read| (arm, read)));
        if discarded.is_none() {
            self.shown.enter(block, arm, &record);
        }
        let place = if arm == 0 { &mut self.first } else { &mut self.other };
        place.get_or_insert(record);
    }

    /// The goodput of a run that counts.
    fn counted(&self, record: &Record) -> BitRate {
        let of_rest = settled(record).filter(|_| self.settled);
        of_rest.map_or(record.result.goodput_bits_per_s, |of_rest| of_rest.goodput)
    }

    /// How many turns fit into the time. A connection begins with something that is no turn; separate runs take longer.
    pub fn time_left_for(&mut self, pattern: Pattern) -> TimeLeft {
        self.pace = Pace::new(Duration::from_secs_f64(pattern.turn_s()));
        TimeLeft {
            runs: self.pace.runs(self.left().saturating_sub(turns::CONNECTION_OVERHEAD_TIME)),
        }
    }

    /// Records a turn of an arm. Only its goodput is its own.
    pub fn take_turn(&mut self, turn: Turn, listener: &mut Listener<'_>) {
        let discarded = turn.goodput.get().err().map(|why| why.to_string());
        let trial = Trial {
            cpu_s_per_gb: Known::missing("the arms take turns within one connection"),
            limit: String::new(),
            discarded,
            ..Trial::new(turn.block, turn.arm, turn.goodput)
        };
        self.note(trial, listener);
    }

    /// Records a failed run. It does not count, but is shown.
    pub fn fail(&mut self, block: u32, arm: usize, why: &str, listener: &mut Listener<'_>) {
        let trial = Trial {
            cpu_s_per_gb: Known::missing(format!("the run failed: {why}")),
            discarded: Some(format!("failed: {why}")),
            ..Trial::new(block, arm, Known::missing(format!("the run failed: {why}")))
        };
        self.note(trial, listener);
    }

    /// Whether any arm has completed a run.
    pub fn has_finished(&self) -> bool {
        self.first.is_some() || self.other.is_some()
    }

    /// Whether an arm has completed a run.
    pub fn has_run(&self, arm: usize) -> bool {
        self.trials
            .iter()
            .any(|trial| trial.arm == arm && trial.goodput_bits_per_s.value().is_some())
    }

    /// Forgets these arms; the others get the numbers that they leave. With the arms that stay, the first look comes with
    /// `first_look` blocks. Before any run counts.
    pub fn leave_out(&mut self, gone: &BTreeSet<usize>, first_look: u32) {
        let all = std::mem::take(&mut self.values).into_iter().enumerate();
        self.values =
            all.filter(|(arm, _)| !gone.contains(arm)).map(|(_, values)| values).collect();
        self.trials = same_values::without(std::mem::take(&mut self.trials), gone);
        self.pace.leave_out(gone);
        self.first_look = first_look;
    }

    /// How far the comparison has got before `block` begins, which runs these arms, and how long it may take.
    pub fn outlook(&self, design: &Design, block: u32, running: &[usize]) -> Outlook {
        let arms = analyse(design, &self.trials);
        let candidates = || arms.iter().enumerate().skip(1);
        let open = candidates().filter(|(_, arm)| arm.settled.is_none()).count();
        let decided = candidates().filter_map(|(number, arm)| {
            let judgement = arm.settled.and_then(|_| judgement(arm))?;
            Some(Decided { values: self.named(number), judgement })
        });
        let looks = design.looks();
        // An arm that lost runs is judged later; this is the first look at any arm.
        let made = candidates().filter(|(number, _)| running.contains(number));
        let made = made.map(|(_, arm)| arm.n as u32).max().unwrap_or(0);
        let warm_up = u32::from(block == 0);
        let blocks_until = |due: u32| due - made + warm_up;
        let runs_a_block = running.len() as u32;
        let time_s = |blocks: u32| self.pace.time_s(blocks * runs_a_block);
        let next = looks.next_after(made).map(blocks_until);
        let is_paced = self.knows_pace();
        let left_s = self.left().as_secs_f64();
        Outlook {
            block,
            judged_after_block: next.map(|blocks| block + blocks - 1),
            judged_in_s: next.map(time_s).filter(|look_s| is_paced && *look_s <= left_s),
            at_most_s: match is_paced {
                true => time_s(blocks_until(looks.last().max(made))).min(left_s),
                false => left_s,
            },
            open,
            decided: decided.collect(),
        }
    }

    /// The values of an arm as its lines name it: the baseline that runs as an arm of its own has the same values.
    pub fn named(&self, arm: usize) -> Vec<String> {
        let mut values = self.values[arm].clone();
        if arm > 0 && values == self.values[0] {
            values.push("again".into());
        }
        values
    }

    fn note(&mut self, trial: Trial, listener: &mut Listener<'_>) {
        let (values, shown) = (self.named(trial.arm), Box::new(trial.clone()));
        listener(Event::TrialEnded { values, trial: shown });
        self.trials.push(trial);
    }

    /// What all runs showed; the last run's error if nothing was measured.
    pub fn close(
        self,
        request: &CompareRequest,
        design: &Design,
        stopped: &str,
        broken: Option<Aborted>,
    ) -> Result<Compared, EngineError> {
        let settings = request.arms.first().map_or_else(Vec::new, Arm::settings);
        let mut comparison =
            goodput_experiment::conclude(settings, self.values, design, self.trials, stopped);
        self.shown.place(&mut comparison);
        winner::keep_for_good(&mut comparison, &|end| request.hosts.named(end));
        let doubts = goodput_experiment::doubts(design, &comparison);
        let no_baseline = self.first.is_none();
        let incomplete = broken.as_ref().map(Aborted::why);
        let (challenger, changed_run) = (self.other.clone(), self.pace.mean_of(1));
        let first = self.first.or(self.other).ok_or_else(|| match broken {
            Some(broken) => broken.cause,
            None => EngineError::Flow(format!("no run finished: {stopped}")),
        })?;
        let no_baseline = no_baseline.then(|| {
            "no run of the baseline finished: plan, ends and result are those of another arm".into()
        });
        let of_runs = self.doubts.into_iter().filter(|doubt| !first.doubts.contains(doubt));
        let doubts = first
            .doubts
            .iter()
            .cloned()
            .chain(of_runs)
            .chain(doubts)
            .chain(no_baseline)
            .chain(polled_runs::notes(&self.polled))
            .collect();
        let files = request.plan.storage.source.is_some();
        let table = files.then(|| costs::table(&request.plan, &comparison, &self.costs));
        let transfers = table.into_iter().collect();
        let nfs_reads = nfs_reads::table(&comparison, &self.reads);
        let comparison = Some(comparison);
        let kind = Kind::Compare;
        let record = Record { kind, comparison, transfers, nfs_reads, incomplete, doubts, ..first };
        Ok(Compared { record, challenger, changed_run, not_put_back: None, given_up: None })
    }
}

fn judgement(arm: &ArmAnalysis) -> Option<Judgement> {
    arm.responses.first()?.against.as_ref().map(|effect| effect.judgement)
}

/// The rates of a run's files without the network.
fn files_alone(record: &Record) -> Option<FilesAlone> {
    let storage = record.result.directions.first()?.storage.as_ref()?;
    let source = storage.source.as_ref().map(|_| storage.alone_bits_per_s.clone());
    let sink = storage.sink.as_ref().map(|_| storage.sink_alone_bits_per_s.clone());
    Some(FilesAlone { source_bits_per_s: source, sink_bits_per_s: sink })
}
