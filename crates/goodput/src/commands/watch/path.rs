//! One watched path: its tests, and its chart.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use goodput_engine::{Credentials, EngineError, Interrupt, Target};
use goodput_model::{Bytes, Length, Plan, Record};
use goodput_store::{Figures, Store, Tested, ToldChange, Watched};
use goodput_watch::{
    Chart, Difference, Limit, MAX_TESTS, Mark, Point, expected_cost, planned_cost, tests_to_learn,
};

use super::series;
use super::shifts::Shifts;
use crate::args::MeasureArgs;
use crate::commands::metered::{self, Ending, Metered, Towards};
use crate::commands::{measured, path_changes, timed};
use crate::data_dirs::state_dir;
use crate::exit;
use crate::far_end::FarEnd;
use crate::history_thread::HistoryThread;
use crate::report::shifted::Shifted;
use crate::report::watch::{self, Changed, Event};
use crate::running::{self, Announced};

/// How long a test that has ended waits for the far end's report after the user ended the watch.
const REPORT_PATIENCE: Duration = Duration::from_secs(3);

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
    /// The time of a test that the user chose: what its plan does not say.
    most_s: Option<f64>,
    /// What tests are compared by, as JSON.
    series: String,
    /// How tests are made in another way than those before, if there was none of this way when the watch began.
    made_otherwise: Vec<Difference>,
    chart: Chart,
    /// The charts of other quantities than the goodput.
    shifts: Shifts,
    /// The first test after the newest change of the goodput.
    changed_at: Option<i64>,
    /// Numbers of the whole tests' records, oldest first.
    records: Vec<i64>,
    /// Whether charts and numbers are of the history that is open.
    is_restored: bool,
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
    /// What else goodput measured on this host when its payload began or ended, as commands.
    pub beside: Vec<String>,
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
    /// Longest time of a test of bytes, from when its flows are open, unless the user chose one. A test of a time has its own.
    pub time: Duration,
    /// Most bytes on the line.
    pub bytes: Bytes,
    /// Whether this is what is left of the budget.
    pub is_rest: bool,
}

impl Path {
    /// The path to the target `text`, with what the history has of it.
    pub async fn open(
        text: &str,
        args: &MeasureArgs,
        length: Length,
        state: Option<PathBuf>,
        history: &HistoryThread,
    ) -> Result<Self> {
        let FarEnd { target, credentials, .. } = FarEnd::standing(text, &args.peer, state.clone())?;
        let mut plan = args.plan_towards(&target, length);
        // A test of a time moves its share at most: with a time alone, a fast path would move all that the budget has.
        let most_s = match plan.length {
            Length::Seconds(seconds) if plan.storage.source.is_none() => {
                Some(seconds + plan.omit_s)
            }
            _ => None,
        };
        plan.length = most_s.map_or(plan.length, |_| length);
        let found = series::of(text, &plan, target.mounted.is_some(), history).await?;
        let (series, made_otherwise) = found;
        let of = goodput_store::Series { target: text.into(), plan: series.clone() };
        let mut path = Self {
            text: text.into(),
            gone_since: history.ask(move |store| Ok(store.gone_since(&of)?)).await?,
            last_cost: None,
            target,
            credentials,
            plan,
            most_s,
            series,
            made_otherwise,
            chart: Chart::restored(&[]),
            shifts: Shifts::restored(text, &[], &[]),
            changed_at: None,
            records: Vec::new(),
            is_restored: false,
            state_dir: state_dir(state).ok(),
        };
        path.restore(history).await?;
        Ok(path)
    }

    /// Another history was opened: its numbers may be others'.
    pub fn forget(&mut self) {
        self.is_restored = false;
    }

    /// Goes on from what the history has of the path, unless that is known. Until this has succeeded, no test is compared.
    pub async fn restore(&mut self, history: &HistoryThread) -> Result<()> {
        if self.is_restored {
            return Ok(());
        }
        let (text, series) = (self.text.clone(), self.series.clone());
        let read = move |store: &Store| {
            let tests = store.tests_of(&text, &series, MAX_TESTS)?;
            Ok((tests, path_changes::own(store, &text)?, path_changes::own_shifts(store, &text)?))
        };
        let (tests, told, told_shifts) = history.ask(read).await?;
        self.shifts = Shifts::restored(&self.text, &tests, &told_shifts);
        let newest = tests.iter().rfind(|test| test.begins_change);
        self.changed_at = newest.map(|test| test.record);
        let read = |test: Tested| {
            let mark = path_changes::mark(&test, &self.text, &told);
            Some((path_changes::of_test(&test)?, mark))
        };
        let tests: Vec<(Point, Mark)> = tests.into_iter().filter_map(read).collect();
        self.records = tests.iter().map(|(test, _)| test.id).collect();
        self.chart = Chart::restored(&tests);
        self.is_restored = true;
        Ok(())
    }

    /// What the newest whole test showed, if the history has one.
    pub async fn last_result(&self, history: &HistoryThread) -> Option<watch::Tested> {
        let newest = *self.records.last()?;
        let record = history.ask(move |store| Ok(store.get(newest)?)).await.ok()?;
        Some(self.shown(&record))
    }

    /// Further tests, one every `every_s` seconds, before a change can be found; none if it can already.
    pub fn left_to_learn(&self, every_s: f64) -> Option<usize> {
        let left = tests_to_learn(every_s).saturating_sub(self.records.len());
        (!self.chart.has_learned()).then(|| left.max(1))
    }

    /// How tests are made in another way than those before, if there was none of this way when the watch began.
    /// Tests are one every `every_s` seconds.
    pub fn made_in_another_way(&self, every_s: f64) -> Option<Event> {
        let test = Some(self.made_otherwise.clone()).filter(|test| !test.is_empty());
        let (at, target) = (measured::now(), self.text.clone());
        let learning_tests = tests_to_learn(every_s);
        test.map(|test| Event::MadeInAnotherWay { at, target, test, learning_tests })
    }

    /// What the next test may cost, of which `share` is its share of the `budget`.
    pub fn expected_cost(&self, share: Bytes, budget: Bytes) -> Bytes {
        expected_cost(&self.plan, share, self.last_cost, budget)
    }

    /// What a test costs if nothing is lost; none if it moves what the path lets through.
    pub fn planned_cost(&self) -> Option<Bytes> {
        planned_cost(&self.plan)
    }

    /// Tests once, within `limits`.
    pub async fn test(&mut self, limits: Limits, interrupt: &Interrupt) -> Result<Run, NoRun> {
        let test = Metered::new(self.plan.clone());
        let run = self.metered(&test, limits, interrupt).await;
        if let Ok(Run { incomplete, bytes, .. }) = &run {
            // A part shows at least what a whole test costs.
            let least = self.last_cost.filter(|_| incomplete.is_some());
            self.last_cost = Some(least.map_or(*bytes, |least| least.max(*bytes)));
        }
        run.map_err(|why| NoRun { why, bytes: test.bytes() })
    }

    /// Makes a test, which others can follow meanwhile.
    async fn metered(
        &self,
        test: &Metered,
        limits: Limits,
        interrupt: &Interrupt,
    ) -> Result<Run, EngineError> {
        let started = measured::now();
        let announced = self.announced(&started);
        let mut beside = BTreeSet::new();
        let listener = &mut |event: goodput_engine::Event| {
            announced.iter().for_each(|announced| announced.enter(&event));
            // Until its payload begins it may have waited for others, as at a server that takes one at a time.
            if matches!(event, goodput_engine::Event::Began | goodput_engine::Event::Ended) {
                beside.extend(self.others(announced.as_ref()));
            }
        };
        let (target, credentials) = (&self.target, &self.credentials);
        let towards = Towards { target, credentials, text: &self.text, started: &started };
        let outcome = test.run(towards, self.most(limits), interrupt, listener).await;
        if let (Err(why), Some(announced)) = (&outcome, &announced) {
            announced.fail(&why.to_string());
        }
        let mut record = outcome?;
        let early = test.ended().and_then(early).map(str::to_owned);
        let incomplete = early.clone().or(record.incomplete.take());
        record.incomplete.clone_from(&incomplete);
        record.doubts.extend(early);
        Ok(Run {
            record,
            incomplete,
            bytes: test.bytes(),
            beside: beside.into_iter().collect(),
            _announced: announced,
        })
    }

    /// What a test may take, as it is metered.
    fn most(&self, limits: Limits) -> metered::Limits {
        let ending = if limits.is_rest { Ending::Budget } else { Ending::Cost };
        metered::Limits {
            bytes: Some((limits.bytes, ending)),
            time: Some(self.most_s.map_or(limits.time, Duration::from_secs_f64)),
            report_patience: REPORT_PATIENCE,
        }
    }

    /// What else goodput measures on this host now, as commands.
    fn others(&self, own: Option<&Announced>) -> Vec<String> {
        let own = own.and_then(Announced::id);
        let all = self.state_dir.as_deref().map(running::measuring).unwrap_or_default();
        all.into_iter()
            .filter(|(id, _)| Some(id) != own.as_ref())
            .map(|(_, head)| format!("goodput {} {}", head.command, head.target))
            .collect()
    }

    /// Lets others follow a test that begins at `started`.
    fn announced(&self, started: &str) -> Option<Announced> {
        Announced::new(self.state_dir.as_deref()?, "watch", &self.text, started)
    }

    /// Keeps since when the target has not answered, so that a watch that begins again says it once.
    pub async fn set_gone(&mut self, history: &HistoryThread, since: Option<String>) {
        if self.gone_since == since {
            return;
        }
        self.gone_since.clone_from(&since);
        let series = goodput_store::Series { target: self.text.clone(), plan: self.series.clone() };
        let set = history.ask(move |store| Ok(store.set_gone(&series, since.as_deref())?)).await;
        if let Err(why) = set {
            let (target, why) = (&self.text, exit::in_words(&why));
            timed::say(format_args!(
                "{target}: after a restart, it is not known whether it answered: {why}"
            ));
        }
    }

    /// Stores a test. Returns the number of its record.
    pub async fn keep(&self, history: &HistoryThread, run: &Run) -> Result<i64> {
        let goodput = run.record.result.goodput_bits_per_s;
        let watched = Watched {
            plan: self.series.clone(),
            goodput: (run.incomplete.is_none() && goodput.0 > 0.0).then_some(goodput),
        };
        let record = run.record.clone();
        history.ask(move |store| Ok(store.add_watched(&record, &watched)?)).await
    }

    /// Whether tests can be compared with those before.
    pub fn can_compare(&self) -> bool {
        self.is_restored
    }

    /// Compares the goodput of a whole test with the ones before. Returns a change with what changed with it. The history
    /// keeps it: after a restart, it is not found again.
    pub async fn compare(
        &mut self,
        history: &HistoryThread,
        id: i64,
        record: &Record,
    ) -> Option<Changed> {
        let goodput = record.result.goodput_bits_per_s.0;
        let test = path_changes::point(id, &record.started, goodput)?;
        self.records.push(id);
        let change = self.chart.push(test)?;
        let ids = path_changes::around(&self.records, &change);
        let read = move |store: &Store| Ok(ids.map(|ids| path_changes::read(store, &ids)));
        // Without them, it is not known what changed with it.
        let records = history.ask(read).await.unwrap_or_default();
        let changed = path_changes::explained(&self.text, &records, &change);
        // Numbers and texts: to write them can't fail.
        let event = serde_json::to_string(&changed).unwrap_or_default();
        let told = ToldChange { target: self.text.clone(), event, of_host: None };
        let first = change.first_since.id;
        self.changed_at = Some(first);
        let marked = history.ask(move |store| Ok(store.mark_change(first, &told)?)).await;
        self.warn_of_repetition(marked);
        Some(changed)
    }

    /// Compares other quantities of a test that [`Path::compare`] has seen. Returns what is said now: what came with a change that
    /// was said already, or has passed, is only kept, and what the goodput may still change with waits.
    pub async fn compare_others(
        &mut self,
        history: &HistoryThread,
        id: i64,
        record: &Record,
    ) -> Vec<Shifted> {
        for (quantity, change) in self.shifts.push(id, record) {
            let ids = path_changes::around(&self.records, &change);
            let read = move |store: &Store| Ok(ids.map(|ids| path_changes::read(store, &ids)));
            let records = history.ask(read).await.unwrap_or_default();
            let first = change.first_since.id;
            let shift = Shifted {
                waits: true,
                ..path_changes::explained_shift(&self.text, quantity, &records, &change)
            };
            self.keep_shift(history, first, &shift).await;
            self.shifts.wait(first, shift);
        }
        let mut said = Vec::new();
        for (first, shift) in self.shifts.decided(&self.records, self.changed_at) {
            self.keep_shift(history, first, &shift).await;
            said.extend(Some(shift).filter(Shifted::is_said));
        }
        said
    }

    /// Keeps what is known of a change of another quantity that begins with the test `first`.
    async fn keep_shift(&self, history: &HistoryThread, first: i64, shift: &Shifted) {
        // Numbers and texts: to write them can't fail.
        let event = serde_json::to_string(shift).unwrap_or_default();
        let told = ToldChange { target: self.text.clone(), event, of_host: None };
        let quantity = shift.quantity.id();
        let keep = move |store: &Store| Ok(store.keep_shift(first, quantity, &told)?);
        self.warn_of_repetition(history.ask(keep).await);
    }

    /// Says if the history did not keep what was said of a change.
    fn warn_of_repetition(&self, kept: Result<()>) {
        if let Err(why) = kept {
            let (target, why) = (&self.text, exit::in_words(&why));
            timed::say(format_args!("{target}: a restart may report this change again: {why}"));
        }
    }

    /// What a test showed.
    pub fn event(&self, run: &Run, record: Option<i64>, used: Bytes) -> Event {
        Event::Tested(watch::Tested {
            record,
            incomplete: run.incomplete.clone(),
            beside: run.beside.clone(),
            bytes: run.bytes,
            used_bytes: used,
            ..self.shown(&run.record)
        })
    }

    /// What a whole test showed, without what it cost.
    fn shown(&self, record: &Record) -> watch::Tested {
        let limit = Limit::of(record);
        let finding = record.findings.iter().find(|finding| finding.rule == limit.rule);
        let figures = Figures::of(record);
        watch::Tested {
            at: record.started.clone(),
            target: self.text.clone(),
            record: None,
            goodput_bits_per_s: record.result.goodput_bits_per_s,
            limit: limit.rule,
            limiter: limit.limiter,
            end: limit.end,
            probability: finding.and_then(|finding| finding.probability.value().copied()),
            round_trip_s: figures.round_trip_s,
            smallest_round_trip_s: figures.smallest_round_trip_s,
            lost_share: figures.lost_share,
            incomplete: None,
            beside: Vec::new(),
            bytes: Bytes(0),
            used_bytes: Bytes(0),
        }
    }
}

/// Why a test is only a part, by what ended its payload; none if it is whole.
fn early(ended: Ending) -> Option<&'static str> {
    match ended {
        Ending::Plan | Ending::Time => None,
        Ending::Budget => Some("the budget was used up"),
        Ending::Cost => Some("it cost twice as much as was expected"),
        Ending::User => Some("the watch was ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_test_that_came_to_its_end_is_whole() {
        let whole = |ended: Ending| early(ended).is_none();
        assert!([Ending::Plan, Ending::Time].into_iter().all(whole));
        assert!(![Ending::Budget, Ending::Cost, Ending::User].into_iter().any(whole));
    }
}
