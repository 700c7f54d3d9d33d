//! A comparison: the same measurement under several arms, interleaved, each on fresh connections,
//! with every setting put back at the end.

mod arms;
mod costs;
pub(crate) mod near_far;
mod winner;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use goodput_experiment::{Design, Step, TimeLeft, WARM_UP};
use goodput_model::{Kind, Known, Length, Plan, Record, Trial};
use goodput_wire::session::Credentials;

pub use arms::{Arm, Factor, factorial};

use crate::client::Client;
use crate::conclude::{Conclusion, conclude};
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::latency::IDLE;
use crate::target::Target;
use costs::RunCost;
use near_far::Appliers;

/// What to compare, and for how long.
#[derive(Clone)]
pub struct CompareRequest {
    /// Who is at the other end.
    pub target: Target,
    /// What the far end may ask for.
    pub credentials: Credentials,
    /// The measurement of every run, before an arm changes it.
    pub plan: Plan,
    /// The settings and their values.
    pub factors: Vec<Factor>,
    /// Stop when every interval's half-width is below this, percent.
    pub precision_percent: f64,
    /// Smallest effect that counts, percent.
    pub threshold_percent: f64,
    /// Stop after this time at the latest.
    pub max_time: Duration,
    /// Where the order of the runs comes from.
    pub seed: u64,
    /// Where the journal of settings is kept.
    pub state_dir: PathBuf,
    /// When it began, RFC 3339, UTC.
    pub started: String,
}

/// Runs the comparison. Settings are put back before it returns, however it ends. An interrupt ends
/// it early with what the runs so far have shown.
pub async fn compare(
    request: &CompareRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let (options, credentials) = (&request.plan.socket, request.credentials.clone());
    let mut client =
        Client::connect(&request.target, options, credentials, interrupt, listener).await?;
    let mut appliers = Appliers::new(request.state_dir.clone());
    let outcome = run(request, &mut client, &mut appliers, interrupt, listener).await;
    // Put back first, then report what went wrong, if anything did.
    let restored = appliers.restore(&mut client).await;
    client.leave().await;
    let record = outcome?;
    restored?;
    Ok(record)
}

async fn run(
    request: &CompareRequest,
    client: &mut Client,
    appliers: &mut Appliers,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let arms = factorial(&request.factors);
    let design = Design {
        arms: arms.len(),
        precision_percent: request.precision_percent,
        threshold_percent: request.threshold_percent,
        seed: request.seed,
        ..Design::default()
    };
    rehearse(request, client, appliers, &arms).await?;
    let mut book = Book::new(request, &arms);
    book.doubts = appliers.forget_metrics(client, &request.plan, &arms).await;
    let stopped = loop {
        match design.next(&book.trials, book.time_left()) {
            Step::Stop(why) => break why.to_string(),
            _ if interrupt.is_raised() => break "it was interrupted".into(),
            Step::RunBlock { block, order, warm_up } => {
                let began = Instant::now();
                let discarded = warm_up.then_some(WARM_UP);
                for arm in order {
                    let run = one(request, client, appliers, &arms[arm], interrupt, listener);
                    let conclusion = run.await;
                    // A run that was cut short is not like the others and does not count.
                    if interrupt.is_raised() {
                        break;
                    }
                    book.enter(block, arm, discarded, conclusion?, listener);
                }
                book.longest_block = book.longest_block.max(began.elapsed());
            }
        }
    };
    book.close(request, &arms, &design, &stopped)
}

/// Brings every arm about once, the baseline last, so that a value or a permission that is wrong, or an
/// arm that makes no sense, shows before any time is spent.
async fn rehearse(
    request: &CompareRequest,
    client: &mut Client,
    appliers: &mut Appliers,
    arms: &[Arm],
) -> Result<(), EngineError> {
    for arm in arms.iter().rev() {
        let plan = appliers.apply(client, arm, &request.plan).await?;
        // What another program's protocol can carry is judged by its own session.
        if client.peer.is_goodput() {
            goodput_wire::check::sense(&plan).map_err(|why| {
                let settings = arm.0.iter().map(|(setting, value)| format!("{setting}={value}"));
                let named: Vec<_> = settings.collect();
                EngineError::Flow(format!("{} makes no sense: {why}", named.join(" ")))
            })?;
        }
    }
    Ok(())
}

/// One run of one arm.
async fn one(
    request: &CompareRequest,
    client: &mut Client,
    appliers: &mut Appliers,
    arm: &Arm,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Conclusion, EngineError> {
    let plan = appliers.apply(client, arm, &request.plan).await?;
    let measurement = client.measure(&plan, interrupt, &mut |event| quiet(event, listener)).await?;
    conclude(measurement, &request.target.text, &request.started)
}

/// A comparison shows its runs, not their intervals.
fn quiet(event: Event, listener: &mut Listener<'_>) {
    if matches!(event, Event::Note { .. }) {
        listener(event);
    }
}

/// The runs so far.
struct Book {
    trials: Vec<Trial>,
    /// What the runs that count have cost, by their arms.
    costs: Vec<(usize, RunCost)>,
    first: Option<Record>,
    values: Vec<Vec<String>>,
    began: Instant,
    max_time: Duration,
    longest_block: Duration,
    /// Whether nothing tells how long a run takes but the first one.
    tries: bool,
    doubts: Vec<String>,
}

impl Book {
    fn new(request: &CompareRequest, arms: &[Arm]) -> Self {
        let (run, is_known) = match request.plan.length {
            Length::Seconds(seconds) => (seconds, true),
            Length::Auto { max_s, .. } => (max_s, true),
            // Not known before the first; it is tried.
            Length::Bytes(_) | Length::Source => (0.05, false),
        };
        let idle = if request.plan.latency { IDLE.as_secs_f64() } else { 0.0 };
        let run = run + idle;
        Self {
            trials: Vec::new(),
            costs: Vec::new(),
            first: None,
            values: arms.iter().map(Arm::values).collect(),
            began: Instant::now(),
            max_time: request.max_time,
            longest_block: Duration::from_secs_f64(run * arms.len() as f64),
            tries: !is_known,
            doubts: Vec::new(),
        }
    }

    /// How many more blocks fit into the time, by the longest so far; before the first, by the
    /// length of its runs.
    fn time_left(&self) -> TimeLeft {
        let left = self.max_time.saturating_sub(self.began.elapsed());
        let blocks = left.as_secs_f64() / self.longest_block.as_secs_f64();
        let tried_first = u32::from(self.tries && self.trials.is_empty());
        TimeLeft { blocks: (blocks as u32).max(tried_first) }
    }

    fn enter(
        &mut self,
        block: u32,
        arm: usize,
        discarded: Option<&str>,
        run: Conclusion,
        listener: &mut Listener<'_>,
    ) {
        let spent = RunCost::of(&run.record);
        let trial = Trial {
            block,
            arm,
            goodput_bits_per_s: run.record.result.goodput_bits_per_s,
            cpu_s_per_gb: spent.as_ref().map_or_else(not_counted, RunCost::cpu_s_per_gb),
            latency: run.record.latency.clone(),
            limit: run.record.verdict.limit.clone(),
            witnesses: run.witnesses,
            discarded: discarded.map(Into::into),
        };
        let shown = Box::new(trial.clone());
        listener(Event::TrialEnded { values: self.values[arm].clone(), trial: shown });
        self.trials.push(trial);
        self.costs.extend(spent.filter(|_| discarded.is_none()).map(|spent| (arm, spent)));
        if arm == 0 {
            self.first.get_or_insert(run.record);
        }
    }

    fn close(
        self,
        request: &CompareRequest,
        arms: &[Arm],
        design: &Design,
        stopped: &str,
    ) -> Result<Record, EngineError> {
        let settings = request.factors.iter().map(|f| f.setting.clone()).collect();
        let values = arms.iter().map(Arm::values).collect();
        let mut comparison =
            goodput_experiment::conclude(settings, values, design, self.trials, stopped);
        winner::keep_for_good(&mut comparison);
        let doubts = goodput_experiment::doubts(design, &comparison);
        let first = self.first.ok_or_else(|| {
            EngineError::Flow(format!("no run of the baseline was finished: {stopped}"))
        })?;
        let doubts = first.doubts.iter().cloned().chain(self.doubts).chain(doubts).collect();
        let files = request.plan.storage.source.is_some();
        let table = files.then(|| costs::table(&request.plan, &comparison, &self.costs));
        let transfers = table.into_iter().collect();
        let comparison = Some(comparison);
        Ok(Record { kind: Kind::Compare, comparison, transfers, doubts, ..first })
    }
}

fn not_counted() -> Known<f64> {
    Known::missing("nothing counted what was received")
}
