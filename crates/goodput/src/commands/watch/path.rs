//! One watched path: its tests, and its chart.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use goodput_engine::{Client, Credentials, EngineError, Interrupt, Target, conclude, measure};
use goodput_model::record::DirectionResult;
use goodput_model::{BitRate, Bytes, EndName, Length, Plan, Record};
use goodput_store::{Store, StoreError, Watched};
use goodput_watch::{
    Change, Chart, Limit, MAX_TESTS, Meter, Point, Series, bytes_on_the_path, differences,
    expected_cost,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::time::sleep;

use crate::args::MeasureArgs;
use crate::commands::measured;
use crate::credentials::credentials;
use crate::data_dirs::state_dir;
use crate::file_servers;
use crate::report::watch::{Changed, Event, Tested};
use crate::running::Announced;
use crate::screen;

/// Records before a change that it is compared with: eight hours of tests every 15 minutes.
const COMPARED: usize = 32;
const MINUTES_OF_A_DAY: f64 = 1440.0;

/// A watched path.
pub struct Path {
    /// The target, as typed.
    pub text: String,
    /// The first test without a result since the last one with a result.
    pub gone_since: Option<String>,
    /// What the last test cost.
    last_cost: Option<Bytes>,
    target: Target,
    credentials: Credentials,
    plan: Plan,
    /// What tests are compared by, as JSON.
    series: String,
    chart: Chart,
    /// Numbers of the whole tests' records, oldest first.
    records: Vec<i64>,
    /// Where a test is announced, so that it can be followed from elsewhere.
    state_dir: Option<PathBuf>,
}

/// A test with a result.
pub struct Run {
    /// The result.
    pub record: Record,
    /// Why it is only a part, if it is.
    pub incomplete: Option<String>,
    /// What it cost the line.
    pub bytes: Bytes,
    /// For those who follow it, until this is dropped: the result is then kept.
    _announced: Option<Announced>,
}

/// A test without a result.
pub struct NoRun {
    /// Why.
    pub why: EngineError,
    /// What it cost the line all the same.
    pub bytes: Bytes,
}

/// What a test may take; it ends with what it has.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time of a test of bytes. A test of a time has its own.
    pub time: Duration,
    /// Most bytes on the line.
    pub bytes: Bytes,
}

impl Limits {
    async fn time_is_over(&self, plan: &Plan) {
        match plan.length {
            Length::Bytes(_) => sleep(self.time).await,
            _ => std::future::pending().await,
        }
    }
}

/// Lets a meter hear what happens in a test.
fn hear(meter: &mut Meter, event: &goodput_engine::Event) {
    match event {
        goodput_engine::Event::Opened { connections } => meter.open(connections),
        goodput_engine::Event::Sampled { end: EndName::Near, sample } => meter.see(sample),
        _ => {}
    }
}

impl Path {
    /// The path to the target `text`, with what the history has of it.
    pub fn open(
        text: &str,
        args: &MeasureArgs,
        length: Length,
        state: Option<PathBuf>,
        store: &Store,
    ) -> Result<Self> {
        let target = file_servers::target(text, &args.peer.files, state.clone())?;
        let credentials = credentials(&args.peer.credentials, &target)?;
        let plan = args.plan_towards(&target, length);
        let series = serde_json::to_string(&Series::from(&plan))?;
        let mut path = Self {
            text: text.into(),
            gone_since: None,
            last_cost: None,
            target,
            credentials,
            plan,
            series,
            chart: Chart::restored(&[]),
            records: Vec::new(),
            state_dir: state_dir(state).ok(),
        };
        path.restore(store)?;
        Ok(path)
    }

    /// Goes on from what the history has of the path.
    pub fn restore(&mut self, store: &Store) -> Result<(), StoreError> {
        let tests = store.tests_of(&self.text, &self.series, MAX_TESTS)?.into_iter();
        let read = |test: goodput_store::Tested| {
            Some((point(test.record, &test.started, test.goodput)?, test.begins_change))
        };
        let tests: Vec<(Point, bool)> = tests.filter_map(read).collect();
        self.records = tests.iter().map(|(test, _)| test.id).collect();
        self.chart = Chart::restored(&tests);
        Ok(())
    }

    /// What the next test may cost, of which `share` is its share of the budget.
    pub fn expected_cost(&self, share: Bytes) -> Bytes {
        expected_cost(self.plan.length, share, self.last_cost)
    }

    /// Tests once, within `limits`.
    pub async fn test(&mut self, limits: Limits, interrupt: &Interrupt) -> Result<Run, NoRun> {
        let meter = RefCell::new(Meter::new(&self.plan));
        let run = self.metered(limits, interrupt, &meter).await;
        if let Ok(Run { incomplete, bytes, .. }) = &run {
            // A part shows at least what a whole test costs.
            let least = self.last_cost.filter(|_| incomplete.is_some());
            self.last_cost = Some(least.map_or(*bytes, |least| least.max(*bytes)));
        }
        run.map_err(|why| NoRun { why, bytes: meter.borrow().bytes() })
    }

    async fn metered(
        &self,
        limits: Limits,
        interrupt: &Interrupt,
        meter: &RefCell<Meter>,
    ) -> Result<Run, EngineError> {
        let started = measured::now();
        let announced = self.announced(&started);
        let (raise, soon) = goodput_engine::interrupt();
        let used_up = Cell::new(false);
        let ends_it = async {
            tokio::select! {
                () = limits.time_is_over(&self.plan) => {}
                () = interrupt.raised() => {}
            }
            raise.raise();
            std::future::pending::<()>().await;
        };
        let measured = async {
            let listener = &mut |event: goodput_engine::Event| {
                announced.iter().for_each(|announced| announced.enter(&event));
                hear(&mut meter.borrow_mut(), &event);
                if meter.borrow().will_exceed(limits.bytes) {
                    used_up.set(true);
                    raise.raise();
                }
            };
            let (target, plan) = (&self.target, &self.plan);
            let mut client =
                Client::connect(target, plan, &self.credentials, &soon, listener).await?;
            let conclusion = measure(&mut client, plan, &soon, listener).await;
            let conclusion = conclusion.and_then(|all| conclude(all, &self.text, &started));
            let control = client.control_counts();
            client.leave().await;
            conclusion.map(|conclusion| (conclusion, control))
        };
        let (conclusion, control) = tokio::select! {
            conclusion = measured => conclusion?,
            () = ends_it => return Err(EngineError::Interrupted),
        };
        let bytes = bytes_on_the_path(&conclusion.record, control.as_ref());
        let by_budget = used_up.get().then(|| "the budget was used up".to_owned());
        let incomplete = by_budget.or(conclusion.incomplete.map(|part| part.why));
        Ok(Run { record: conclusion.record, incomplete, bytes, _announced: announced })
    }

    /// Lets others follow a test that begins at `started`.
    fn announced(&self, started: &str) -> Option<Announced> {
        Announced::new(self.state_dir.as_deref()?, "watch", &self.text, started)
    }

    /// Stores a test. Returns the number of its record.
    pub fn keep(&self, store: &Store, run: &Run, whole: bool) -> Result<i64, StoreError> {
        let goodput = run.record.result.goodput_bits_per_s;
        let watched = Watched {
            plan: self.series.clone(),
            goodput: (whole && goodput.0 > 0.0).then_some(goodput),
        };
        store.add_watched(&run.record, &watched)
    }

    /// Compares a whole test with the ones before. The history keeps where a change begins: after a restart, it is not found
    /// again.
    pub fn compare(&mut self, store: &Store, id: i64, record: &Record) -> Option<Change> {
        let test = point(id, &record.started, record.result.goodput_bits_per_s)?;
        self.records.push(id);
        let change = self.chart.push(test)?;
        if let Err(why) = store.mark_change(change.first_since.id) {
            let target = &self.text;
            screen::say(format_args!(
                "goodput: {target}: a restart may report this change again: {why}"
            ));
        }
        Some(change)
    }

    /// A change, with what changed with it.
    pub fn explained(&self, store: &Store, change: &Change) -> Result<Changed, StoreError> {
        let first = self.records.iter().rposition(|id| *id == change.first_since.id);
        let first = first.unwrap_or(self.records.len());
        // A record may have been deleted, or be of a newer goodput.
        let read = |ids: &[i64]| -> Vec<Record> {
            ids.iter().filter_map(|id| store.get(*id).ok()).collect()
        };
        let before = read(&self.records[first.saturating_sub(COMPARED)..first]);
        let since = read(&self.records[first..]);
        let found = differences(&before, &since, goodput_kernel::sources::lasts);
        let time = |point: Point| {
            let time = Timestamp::from_second(point.at_s as i64).unwrap_or_default();
            time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
        };
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        Ok(Changed {
            at: time(change.newest),
            target: self.text.clone(),
            since: time(change.first_since),
            tests: change.tests,
            percent: percent(change.ratio.value),
            low_percent: percent(change.ratio.low),
            high_percent: percent(change.ratio.high),
            probability: change.probability,
            record_before: change.last_before.id,
            record_since: change.newest.id,
            before_bits_per_s: BitRate(change.before),
            since_bits_per_s: BitRate(change.since),
            limit_before: found.before,
            limit_since: found.since,
            changed: found.changed,
        })
    }

    /// What a test showed.
    pub fn event(&self, run: &Run, record: Option<i64>, used: Bytes) -> Event {
        let limit = Limit::of(&run.record);
        let finding = run.record.findings.iter().find(|finding| finding.rule == limit.rule);
        let seconds = |us: f64| us / 1e6;
        let main = main_direction(&run.record);
        Event::Tested(Tested {
            at: run.record.started.clone(),
            target: self.text.clone(),
            record,
            goodput_bits_per_s: run.record.result.goodput_bits_per_s,
            limit: limit.rule,
            limiter: limit.limiter,
            end: limit.end,
            probability: finding.and_then(|finding| finding.probability.value().copied()),
            round_trip_s: main.and_then(|main| main.rtt_us.value().copied()).map(seconds),
            smallest_round_trip_s: main
                .and_then(|main| main.min_rtt_us.value().copied())
                .map(seconds),
            lost_share: main.and_then(lost_share),
            incomplete: run.incomplete.clone(),
            bytes: run.bytes,
            used_bytes: used,
        })
    }
}

/// A test as the chart sees it; none if its time can't be read.
fn point(id: i64, started: &str, goodput: BitRate) -> Option<Point> {
    let at = started.parse::<Timestamp>().ok()?;
    let time = at.to_zoned(TimeZone::system()).time();
    let minutes = f64::from(time.hour()) * 60.0 + f64::from(time.minute());
    Some(Point {
        id,
        at_s: at.as_second() as f64,
        day_share: minutes / MINUTES_OF_A_DAY,
        goodput: goodput.0,
    })
}

/// The direction that the verdict is about.
fn main_direction(record: &Record) -> Option<&DirectionResult> {
    record.result.directions.iter().find(|one| one.sender == record.verdict.sender)
}

/// Share of the datagrams that were lost, or of the payload that was sent again.
fn lost_share(direction: &DirectionResult) -> Option<f64> {
    if let Some(percent) = direction.lost_percent.value() {
        return Some(percent / 100.0);
    }
    let again = *direction.retransmitted_bytes.value()? as f64;
    let all = *direction.sent_bytes.value()? as f64;
    (all > 0.0).then(|| again / all)
}
