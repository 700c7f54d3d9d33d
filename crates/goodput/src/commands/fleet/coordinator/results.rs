//! The results of a turn: lines as they come, records in the history, and the matrix in the end.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use anyhow::{Error, Result};
use goodput_bus::Keys;
use goodput_fleet::{
    End, Mesh, Outcome, Question, SLOW_PERCENT, Tally, Task, Unusable, seen_between,
};
use goodput_model::{Record, plain_char};

use super::folder::Folder;
use super::metrics::FleetMetrics;
use crate::commands::fleet::saving::Saving;
use crate::data_dirs::history;
use crate::exit::{self, Exit};
use crate::foreign::foreign;
use crate::history_thread::HistoryThread;
use crate::speaker::now;
use crate::{report, screen};

/// The most tests of a turn whose names are kept.
const MOST_NAMED: usize = 1000;

/// What came so far.
pub(in crate::commands::fleet) struct Results<'a> {
    mesh: &'a Mesh,
    /// Into this host's history; none for whoever asks for one test: it then prints and keeps that one itself.
    saving: Option<Saving>,
    metrics: Option<FleetMetrics>,
    /// What the matrix needs of the results: a turn of a thousand sites has a million.
    seen: RefCell<Tally>,
    /// When the turn began, seconds since 1970, by the clock of the bus.
    began_s: Cell<f64>,
    /// Tests that say nothing of a pair, by the reason.
    left_out: RefCell<BTreeMap<Unusable, usize>>,
    /// Tests of the turn.
    all: Cell<usize>,
    done: Cell<usize>,
    /// The ids of those that are done, unless they are too many to be named.
    made: RefCell<HashSet<String>>,
    without_record: Cell<usize>,
}

impl<'a> Results<'a> {
    /// None yet; records go into this host's history. While it is away, they wait in `folder`, and so does from now on what
    /// waits where coordinators of this host have ended.
    ///
    /// # Errors
    /// It can't be used, and waiting would not help.
    pub async fn of(
        mesh: &'a Mesh,
        metrics: Option<FleetMetrics>,
        folder: &Folder,
    ) -> Result<Self> {
        let saving = Saving::open(HistoryThread::begin(history)?, folder.path())?;
        if let Err(why) = take_over(&saving, folder) {
            say(&why.context("records of an earlier coordinator still wait on this disk"));
        }
        saving.begin().await?;
        Ok(Self { saving: Some(saving), metrics, ..Self::silent(mesh) })
    }

    /// The same, neither printed nor kept.
    pub fn silent(mesh: &'a Mesh) -> Self {
        let (seen, began_s, left_out, all, done) = Default::default();
        let (made, without_record) = Default::default();
        Self {
            mesh,
            saving: None,
            metrics: None,
            seen,
            began_s,
            left_out,
            all,
            done,
            made,
            without_record,
        }
    }

    /// Saves the records that wait as soon as the history takes them. Never ends.
    pub async fn go_on<T>(&self) -> T {
        match &self.saving {
            Some(saving) => saving.go_on().await,
            None => std::future::pending().await,
        }
    }

    /// Before this process ends: tries once more to save what waits for the history, and says how much still does.
    pub async fn end(&self) {
        let Some(saving) = &self.saving else { return };
        let (left, them) = match saving.end().await {
            Ok(0) => return,
            Err(why) => return say(&why),
            Ok(1) => ("1 record waits".into(), "it"),
            Ok(left) => (format!("{left} records wait"), "them"),
        };
        screen::say(format_args!(
            "goodput: {left} on this disk for the history; the next `goodput fleet run` here with the same history saves \
             {them}"
        ));
    }

    /// This process coordinates from now on: what was counted before would count twice.
    pub fn begin_anew(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.begin_anew();
        }
    }

    /// Forgets those of the last turn: the next one has so many tests, and began at `began_s` seconds since 1970 by the clock
    /// of the bus.
    pub fn begin(&self, all: usize, began_s: f64) {
        let mut seen = Tally::of_mesh(self.mesh);
        seen.expect(all);
        *self.seen.borrow_mut() = seen;
        self.left_out.take();
        self.began_s.set(began_s);
        self.all.set(all);
        self.made.take();
        self.without_record.set(0);
        self.set_done(0);
    }

    fn set_done(&self, done: usize) {
        self.done.set(done);
        if let Some(metrics) = &self.metrics {
            metrics.turn(done, self.all.get());
        }
    }

    /// Sees which agents run, for the metrics. Never ends.
    pub async fn watch_agents<T>(&self, agents: &Keys) -> T {
        match &self.metrics {
            Some(metrics) => metrics.watch(agents).await,
            None => std::future::pending().await,
        }
    }

    /// Adds the outcome of a task, at `now_s` seconds since 1970 by the clock of the bus; prints it, unless it `is_printed`.
    pub async fn add(
        &self,
        task: &Task,
        outcome: &[u8],
        now_s: f64,
        is_printed: bool,
    ) -> Result<()> {
        let (kept, text) = self.taken(task, outcome).await;
        self.set_done(self.done.get() + 1);
        if self.all.get() <= MOST_NAMED {
            self.made.borrow_mut().insert(task.id.clone());
        }
        match kept {
            // What says nothing of the pair is a dot in the matrix.
            Some((id, record)) => match seen_between(&record, id, [&task.near, &task.far]) {
                Ok(mut seen) => {
                    seen.at_s = within(seen.at_s, self.began_s.get(), now_s);
                    self.seen.borrow_mut().add(&seen);
                }
                Err(why) => *self.left_out.borrow_mut().entry(why).or_default() += 1,
            },
            None => self.without_record.set(self.without_record.get() + 1),
        }
        if is_printed {
            return Ok(());
        }
        print(&format!("{}/{}", self.done.get(), self.all.get()), task, &text)
    }

    /// Adds the outcome of a test that someone asked for in between. If it `is_old`, the wish was delivered again, and its
    /// outcome was printed and counted before.
    pub async fn add_wanted(&self, task: &Task, outcome: &[u8], is_old: bool) -> Result<()> {
        if is_old {
            if let Ok((record, _)) = said(task, outcome) {
                self.keep(task, Arc::new(record)).await;
            }
            return Ok(());
        }
        let (_, text) = self.taken(task, outcome).await;
        if self.saving.is_none() { Ok(()) } else { print("on demand", task, &text) }
    }

    /// Says why a test that someone asked for in between is not made. It is none of the pair's tests.
    pub fn add_refused(&self, task: &Task, why: &str) -> Result<()> {
        if self.saving.is_none() {
            Ok(())
        } else {
            print("on demand", task, &format!("no record: {why}"))
        }
    }

    /// Keeps the record of an outcome, if it has one; and what to say of it.
    async fn taken(&self, task: &Task, outcome: &[u8]) -> (Option<(i64, Arc<Record>)>, String) {
        let said = said(task, outcome);
        if let Some(metrics) = &self.metrics {
            metrics.see(task, said.as_ref().ok().map(|(record, _)| record));
        }
        match said {
            Ok((record, text)) => {
                let record = Arc::new(record);
                (Some((self.keep(task, Arc::clone(&record)).await, record)), text)
            }
            Err(why) => (None, format!("no record: {why}")),
        }
    }

    /// The number of the record in the history, if there is one; 0 while it waits for the history, which must not hold up the
    /// fleet's tests.
    async fn keep(&self, task: &Task, record: Arc<Record>) -> i64 {
        let Some(saving) = &self.saving else { return 0 };
        saving.save_record(&task.id, record).await.unwrap_or(0)
    }

    /// Prints the matrix of this turn, at `now_s` seconds since 1970, and forgets its results: the plan of the next turn
    /// needs their room.
    pub fn print_matrix(&self, now_s: f64) -> Result<()> {
        let question = Question { now_s, slow_percent: SLOW_PERCENT };
        let matrix = self.seen.take().matrix(question);
        screen::print("\n")?;
        for part in report::fleet::matrix::parts(&matrix, false, screen::columns()) {
            screen::print_fitted(&part)?;
        }
        let left_out = self.left_out.take();
        Ok(screen::print_fitted(&report::fleet::matrix::left_out(&left_out))?)
    }

    /// Says how much of a turn is made that the user ends, and what is not: these are its tests. Returns whether anything is.
    pub fn say_part(&self, tests: impl Iterator<Item = Task>) -> bool {
        let (done, all) = (self.done.get(), self.all.get());
        let made = self.made.borrow();
        let left = (all <= MOST_NAMED).then(|| tests.filter(|task| !made.contains(&task.id)));
        let left = left.into_iter().flatten();
        let left: Vec<_> =
            left.map(|task| format!("{} → {}", task.sender(), task.receiver())).collect();
        screen::say(format_args!("goodput: {}", report::fleet::turn::part(done, all, &left)));
        done > 0
    }

    /// Tests without a record are a problem.
    pub fn exit(&self) -> Exit {
        if self.without_record.get() == 0 { Exit::Fine } else { Exit::Problem }
    }
}

/// Has what other coordinators have left wait where this one's records do.
fn take_over(saving: &Saving, folder: &Folder) -> Result<()> {
    folder.left()?.iter().try_for_each(|other| saving.take_over(other.path()))
}

fn say(why: &Error) {
    screen::say(format_args!("goodput: {}", exit::in_words(why)));
}

/// When a test of a turn was made, which lies between the beginning of the turn and now by the clock of the bus. The clock of
/// the agent that says `at_s` may differ from it by hours.
fn within(at_s: f64, began_s: f64, now_s: f64) -> f64 {
    at_s.max(began_s).min(now_s)
}

/// `2026-11-24T14:05:07Z  1/6  a → b  941.2 Mbit/s, limited by path-rate`
fn print(number: &str, task: &Task, text: &str) -> Result<()> {
    let (now, sender, receiver) = (now(), task.sender(), task.receiver());
    let text: String = text.chars().map(plain_char).collect();
    Ok(screen::line(format_args!("{now}  {number}  {sender} → {receiver}  {text}"))?)
}

/// The record of a task's outcome with what to say of it, or why there is none.
pub(in crate::commands::fleet) fn said(
    task: &Task,
    outcome: &[u8],
) -> Result<(Record, String), String> {
    let record = record(task, outcome)?;
    let text = in_words(&record);
    Ok((record, text))
}

/// The record of a task's outcome, or why there is none. Whoever may publish outcomes of a site can write anything.
fn record(task: &Task, outcome: &[u8]) -> Result<Record, String> {
    match Outcome::read(outcome)?.of(task)? {
        End::Record(record) => {
            let record = foreign(&record.to_string()).map_err(|why| exit::in_words(&why))?;
            task.record(record)
        }
        End::Reason(why) => Err(why),
    }
}

/// `941.2 Mbit/s, limited by path-rate`
fn in_words(record: &Record) -> String {
    let rate = record.result.goodput_bits_per_s;
    match &record.incomplete {
        Some(why) => format!("{rate}, only a part: {why}"),
        None if record.verdict.limit == goodput_model::Verdict::NO_LIMIT => rate.to_string(),
        None => format!("{rate}, limited by {}", record.verdict.limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Sites;
    use goodput_store::read_record;

    #[test]
    fn a_test_of_a_turn_has_a_time_of_the_turn_whatever_its_agent_s_clock_says() {
        let (began_s, now_s) = (1000.0, 1060.0);
        assert_eq!(within(1030.0, began_s, now_s), 1030.0);
        assert_eq!(within(1030.0 + 5.0 * 3600.0, began_s, now_s), now_s, "a clock that is ahead");
        assert_eq!(within(1030.0 - 5.0 * 3600.0, began_s, now_s), began_s, "one that is behind");
        assert_eq!(within(1030.0, began_s, 900.0), 900.0, "the clock of the bus went back");
    }

    #[test]
    fn an_outcome_is_a_record_or_a_reason() {
        let json = include_str!("../../../report/example/record.json");
        let mesh = Mesh::parse("x", "[site.a]\n[site.b]\ntarget = \"nas\"\n").unwrap();
        let task = goodput_fleet::task_between(&mesh, "t", "a", "b").unwrap();
        let outcome = |end| serde_json::to_vec(&Outcome::new("t", "a", end)).unwrap();
        let record = |end| record(&task, &outcome(end));
        let end = End::Record(serde_json::from_str(json).unwrap());
        let read = record(end).unwrap();
        let sites = Some(Sites { near: "a".into(), far: "b".into() });
        let whole = Record { sites, ..read_record(json).unwrap() };
        assert_eq!(read, whole, "to the last bit");
        assert_eq!(in_words(&read), "419.9 Mbit/s, limited by shaper-burst");
        assert_eq!(record(End::Reason("busy".into())), Err("busy".into()));
        let newer = End::Record(serde_json::json!({ "format": 999 }));
        assert!(record(newer).unwrap_err().contains("999"));
        let with = |change: fn(&mut Record)| {
            let mut record = whole.clone();
            change(&mut record);
            End::Record(serde_json::to_value(&record).unwrap())
        };
        let why = record(with(|record| record.started = "soon".into())).unwrap_err();
        assert!(why.contains("no time in UTC"), "{why}");
        let of_others = Sites { near: "b".into(), far: "c".into() };
        let why = record(End::Record(
            serde_json::to_value(Record { sites: Some(of_others), ..whole.clone() }).unwrap(),
        ));
        assert!(why.unwrap_err().contains("one of another test"));
        let evil = record(with(|record| record.verdict.limit = "a\u{1b}[2J".into())).unwrap();
        assert_eq!(evil.verdict.limit, "a\u{fffd}[2J");
        assert!(super::record(&task, b"{").is_err());
    }
}
