//! `goodput watch`: small tests on a schedule, and what they show.
//!
//! ```text
//! schedule ──▶ budget ──▶ one test (turn) ──▶ history, chart (path) ──▶ event ──▶ screen, program (notify)
//! ```

mod held_up;
mod metrics;
mod notify;
mod path;
mod retention;
mod series;
mod share;
mod shifts;
mod turn;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use goodput_engine::{EngineError, Interrupt};
use goodput_model::{Bytes, Length};
use goodput_store::Store;
use goodput_watch::{Budget, Schedule, Turn, limit, tests_to_learn};
use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use self::held_up::SinceDue;
use self::metrics::Metrics;
use self::notify::Program;
use self::path::{Limits, NoRun, Path, Run};
use self::retention::Keep;
use self::turn::HostTurn;
use super::history::on_full_disk;
use super::measured;
use super::spent::{self, Note};
use super::timed;
use crate::args::{WatchArgs, days_kept};
use crate::data_dirs::history;
use crate::exit::{self, Exit};
use crate::history_thread::HistoryThread;
use crate::json_text;
use crate::report::watch::{self, Event};
use crate::screen;

/// Time between two looks for results that are too old.
const DELETE_EVERY: Duration = Duration::from_secs(3600);

/// Watches until a signal comes, or tests each target once.
pub fn run(args: &WatchArgs, state: Option<PathBuf>) -> Result<Exit> {
    let (outcome, _) = measured::block_on(async |interrupt| {
        Ok::<_, EngineError>(watch(args, state, &interrupt).await)
    })?;
    outcome
}

async fn watch(args: &WatchArgs, state: Option<PathBuf>, interrupt: &Interrupt) -> Result<Exit> {
    let mut watch = Watch::new(args, state).await?;
    watch.name_other_ways()?;
    let exit = match args.schedule.once {
        true => watch.once(interrupt).await?,
        false => watch.go_on(interrupt).await?,
    };
    if let Some(program) = &watch.program {
        program.leave();
    }
    if interrupt.is_raised() && !watch.has_result {
        let hint = if args.schedule.once { "" } else { "; --once tests each target at once" };
        timed::say(format_args!("ended before the first result{hint}"));
    }
    Ok(exit)
}

/// A running watch.
struct Watch<'a> {
    args: &'a WatchArgs,
    history: HistoryThread,
    /// How often the history had been opened when the paths took what it has.
    openings: usize,
    paths: Vec<Path>,
    /// Why the history could not be read when that was last tried.
    unread: Option<String>,
    budget: Budget,
    /// What one test may cost.
    share: Bytes,
    host: HostTurn,
    program: Option<Program>,
    metrics: Option<Metrics>,
    /// Whether a test had a result.
    has_result: bool,
    began: Instant,
    /// How long days of deleted results are kept, seconds, if `--keep` deletes results.
    days_kept_s: f64,
    /// What took the time since the last turn was due.
    since_due: SinceDue,
    /// When old results were last deleted.
    deleted: Option<Instant>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// With a result that is like the ones before.
    Tested,
    /// With a change of the path.
    Changed,
    /// Without a result, with a part of one, or with one that was not kept.
    NoResult,
    /// Before a result, because the user ended it.
    Interrupted,
}

impl<'a> Watch<'a> {
    async fn new(args: &'a WatchArgs, state: Option<PathBuf>) -> Result<Self> {
        share::check_rate(args)?;
        let days_kept_s = days_kept_s(args)?;
        share::short_tests(args).into_iter().for_each(screen::say);
        let history = HistoryThread::begin(history)?;
        history.open().await?;
        let budget = Budget::new(args.schedule.budget);
        let targets = distinct(&args.targets);
        let share = budget.share(args.schedule.every, targets.len());
        let length = Length::Bytes(share::payload(args, share, targets.len())?);
        let mut paths = Vec::new();
        for text in targets {
            let path = Path::open(text, &args.measure, length, state.clone(), &history).await?;
            share::check_fits(&path, budget.limit())?;
            paths.push(path);
        }
        let program = args.output.notify.as_deref().map(Program::new).transpose()?;
        let host = HostTurn::over(args.schedule.line.as_deref())?;
        let metrics = args.output.metrics.map(|_| Metrics::new(args.schedule.budget));
        let began = Instant::now();
        let (openings, deleted) = (history.openings(), None);
        let mut watch = Self {
            args,
            history,
            openings,
            paths,
            unread: None,
            budget,
            share,
            host,
            program,
            metrics,
            has_result: false,
            began,
            days_kept_s,
            since_due: SinceDue::default(),
            deleted,
        };
        watch.count_spent().await?;
        Ok(watch)
    }

    /// Says which tests are made in another way than those before.
    fn name_other_ways(&self) -> Result<()> {
        let every_s = self.args.schedule.every;
        let mut events = self.paths.iter().filter_map(|path| path.made_in_another_way(every_s));
        events.try_for_each(|event| self.tell(&event))
    }

    /// Counts anew what the history knows that the tests of the last 24 hours cost.
    async fn count_spent(&mut self) -> Result<()> {
        let mut budget = Budget::new(self.args.schedule.budget);
        for path in &self.paths {
            let spent = spent::of_last_day(&self.history, &path.text).await?;
            let now_s = self.now_s();
            spent.into_iter().for_each(|(age_s, bytes)| budget.spend(now_s - age_s, bytes));
        }
        self.budget = budget;
        Ok(())
    }

    /// One test of each target.
    async fn once(&mut self, interrupt: &Interrupt) -> Result<Exit> {
        let mut exit = Exit::Fine;
        for target in 0..self.paths.len() {
            match self.turn(target, interrupt).await? {
                Ended::Tested => {}
                Ended::Changed if exit == Exit::Fine => exit = Exit::Problem,
                Ended::Changed => {}
                Ended::NoResult => exit = Exit::CouldNot,
                Ended::Interrupted => return Ok(Exit::CouldNot),
            }
        }
        self.delete_old().await;
        if let Some(program) = &mut self.program {
            tokio::select! {
                () = program.wait() => {}
                () = interrupt.raised() => {}
            }
        }
        Ok(exit)
    }

    /// Tests on the schedule until the user ends it.
    async fn go_on(&mut self, interrupt: &Interrupt) -> Result<Exit> {
        let seed = rand::random();
        let mut schedule = Schedule::new(self.args.schedule.every, self.paths.len(), seed);
        self.show_last_results().await;
        if let (Some(address), Some(metrics)) = (self.args.output.metrics, &self.metrics) {
            let listening = goodput_web::listen(address, "--metrics", None).await?;
            screen::say(format_args!("metrics on {}metrics", listening.url()?));
            let metrics = metrics.clone();
            tokio::spawn(listening.serve(goodput_web::Metrics::new(move || {
                metrics.set_back(Timestamp::now().as_second() as f64);
                metrics.text()
            })));
        }
        self.begin()?;
        loop {
            let now_s = self.now_s();
            let turn = schedule.next(now_s);
            self.tell_if_late(&turn, now_s)?;
            self.since_due = SinceDue::new(turn.due_s);
            let wait = Duration::from_secs_f64((turn.due_s - self.now_s()).max(0.0));
            tokio::select! {
                () = sleep(wait) => {}
                () = interrupt.raised() => return Ok(Exit::Fine),
            }
            if self.turn(turn.target, interrupt).await? == Ended::Interrupted {
                return Ok(Exit::Fine);
            }
            self.delete_old().await;
        }
    }

    /// Says if turns have passed before this one, which was dealt out at `now_s`, and why.
    fn tell_if_late(&self, turn: &Turn, now_s: f64) -> Result<()> {
        let history = self.history.take_delay();
        if turn.missed == 0 {
            return Ok(());
        }
        let named = |target: usize| self.paths[target].text.clone();
        self.tell(&Event::Late {
            at: measured::now(),
            tests: turn.missed,
            targets: turn.passed(self.paths.len()).map(named).collect(),
            because: self.since_due.because(now_s, history),
        })
    }

    /// Shows in the metrics what the history knows, until the first tests have ended.
    async fn show_last_results(&self) {
        let Some(metrics) = &self.metrics else { return };
        for path in &self.paths {
            if let Some(last) = path.last_result(&self.history).await {
                metrics.restore(&last, path.gone_since.is_some());
            }
        }
    }

    /// Says what it will do.
    fn begin(&mut self) -> Result<()> {
        let now_s = self.now_s();
        let used_bytes = self.budget.used(now_s);
        let schedule = &self.args.schedule;
        let test_bytes = self.paths.iter().filter_map(Path::planned_cost).max();
        let targets = self.paths.len();
        let lasts = |cost| self.budget.lasts_s(now_s, schedule.every, targets, cost);
        let budget_lasts_s = test_bytes.and_then(lasts);
        let every_s = schedule.every;
        let learning_tests = self.paths.iter().filter_map(|path| path.left_to_learn(every_s)).max();
        self.tell(&Event::Begin {
            at: measured::now(),
            targets: self.paths.iter().map(|path| path.text.clone()).collect(),
            every_s,
            budget_bytes: schedule.budget,
            test_bytes,
            budget_lasts_s,
            used_bytes,
            learning_tests,
        })
    }

    /// Seconds since the watch began.
    fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Opens the history again if it failed, or if its file was moved away: a watch goes on for months. If that fails too,
    /// the next write says why.
    async fn renew_history(&mut self) {
        let opened = self.history.open().await;
        let openings = self.history.openings();
        if opened.is_err() {
            return;
        }
        if openings != self.openings {
            self.openings = openings;
            timed::say(format_args!("the history was opened again"));
            self.paths.iter_mut().for_each(Path::forget);
        }
        let mut unread = None;
        for path in &mut self.paths {
            unread = path.restore(&self.history).await.err().or(unread);
        }
        let unread = unread.map(|why| exit::in_words(&why));
        if let Some(why) = unread.as_ref().filter(|_| unread != self.unread) {
            timed::say(format_args!("no test is compared until the history can be read: {why}"));
        }
        self.unread = unread;
    }

    /// Tests a target, if the budget allows it, and says what this shows.
    async fn turn(&mut self, target: usize, interrupt: &Interrupt) -> Result<Ended> {
        if interrupt.is_raised() {
            return Ok(Ended::Interrupted);
        }
        self.renew_history().await;
        // Said at once: a test that is not made needs no turn. With --once others may be testing the same, and what their
        // tests might cost counts as spent until these end.
        if !self.args.schedule.once && !self.fits(target)? {
            return Ok(Ended::NoResult);
        }
        let patience = Duration::from_secs_f64(self.args.schedule.every);
        let began = Instant::now();
        let taken = self.host.take(patience, interrupt).await;
        self.since_due.waited(began.elapsed());
        let _turn = match taken {
            Ok(Some(turn)) => turn,
            Ok(None) if interrupt.is_raised() => return Ok(Ended::Interrupted),
            Ok(None) => return self.not_made(target, self.host.taken(), Bytes(0)),
            Err(why) => return self.not_made(target, format!("{why:#}"), Bytes(0)),
        };
        let Some((limits, note)) = self.allowed(target).await? else {
            return Ok(Ended::NoResult);
        };
        let began = Instant::now();
        let outcome = self.paths[target].test(limits, interrupt).await;
        self.since_due.tested(&self.paths[target].text, began.elapsed());
        let (Ok(Run { bytes, .. }) | Err(NoRun { bytes, .. })) = &outcome;
        note.settle(&self.history, *bytes).await;
        let now_s = self.now_s();
        self.budget.spend(now_s, *bytes);
        match outcome {
            Err(_) if interrupt.is_raised() => Ok(Ended::Interrupted),
            Err(NoRun { why, bytes }) if why.is_busy() => {
                self.not_made(target, why.to_string(), bytes)
            }
            Err(NoRun { why, bytes }) => self.no_result(target, why.to_string(), bytes).await,
            Ok(run) => self.tested(target, &run, interrupt).await,
        }
    }

    /// What the test whose turn it is may take, and the note of it; none if it is not made, which is said.
    async fn allowed(&mut self, target: usize) -> Result<Option<(Limits, Note)>> {
        // Others that test the same once may have had the turn since.
        if self.args.schedule.once
            && let Err(why) = self.count_spent().await.with_context(|| self.not_tested(target))
        {
            timed::say(format_args!("{why:#}"));
            return Ok(None);
        }
        if !self.fits(target)? {
            return Ok(None);
        }
        let allowed = self.noted(target).await;
        let allowed = allowed.inspect_err(|why| timed::say(format_args!("{why:#}")));
        Ok(allowed.ok())
    }

    /// Whether a test may begin, by what was spent so far. If not, this is said.
    fn fits(&mut self, target: usize) -> Result<bool> {
        let expected = self.expected_cost(target);
        let now_s = self.now_s();
        let Err(why) = self.budget.allow(now_s, expected) else { return Ok(true) };
        self.tell(&Event::UsedUp {
            at: measured::now(),
            target: self.paths[target].text.clone(),
            used_bytes: why.used,
            budget_bytes: why.limit,
            free_at: why.free_in_s.is_finite().then(|| time_in(why.free_in_s)),
        })?;
        Ok(false)
    }

    fn expected_cost(&self, target: usize) -> Bytes {
        self.paths[target].expected_cost(self.share, self.budget.limit())
    }

    /// What a test may take, noted as spent if this process is killed.
    async fn noted(&mut self, target: usize) -> Result<(Limits, Note)> {
        let now_s = self.now_s();
        let left = self.budget.left(now_s);
        let bytes = limit(self.expected_cost(target), left);
        let time = Duration::from_secs_f64(self.args.schedule.max_time);
        let note = self.note(target, bytes).await?;
        Ok((Limits { time, bytes, is_rest: bytes == left }, note))
    }

    /// Notes what a test may cost. A watch that goes on counts it all the same; one of a single test each has nothing but the
    /// history to count by, and does not test.
    async fn note(&self, target: usize, most: Bytes) -> Result<Note> {
        let text = &self.paths[target].text;
        let note = Note::begin(&self.history, text, most).await;
        if !self.args.schedule.once {
            return Ok(note.unwrap_or_else(|_| Note::unkept(text)));
        }
        note.with_context(|| self.not_tested(target))
    }

    /// What is said if a history can't count.
    fn not_tested(&self, target: usize) -> String {
        let target = &self.paths[target].text;
        format!(
            "{target} was not tested: without the history, nothing counts what `watch --once` costs"
        )
    }

    /// A gap that says nothing of the path.
    fn not_made(&mut self, target: usize, why: String, bytes: Bytes) -> Result<Ended> {
        let used_bytes = self.budget.used(self.now_s());
        let target = self.paths[target].text.clone();
        self.tell(&Event::NotTested { at: measured::now(), target, why, bytes, used_bytes })?;
        Ok(Ended::NoResult)
    }

    /// A gap, which cost `bytes`.
    async fn no_result(&mut self, target: usize, why: String, bytes: Bytes) -> Result<Ended> {
        let used_bytes = self.budget.used(self.now_s());
        let path = &mut self.paths[target];
        let is_new = path.gone_since.is_none();
        let at = measured::now();
        let since = path.gone_since.clone().unwrap_or_else(|| at.clone());
        path.set_gone(&self.history, Some(since.clone())).await;
        let target = path.text.clone();
        let event = Event::NoResult { at, target, why, since, bytes, used_bytes };
        self.tell(&event)?;
        if is_new {
            self.notify("gone", &event);
        }
        Ok(Ended::NoResult)
    }

    /// Keeps a test, and compares it with the ones before.
    async fn tested(&mut self, target: usize, run: &Run, interrupt: &Interrupt) -> Result<Ended> {
        // What the test is compared with must be of the history that gets it.
        self.has_result = true;
        self.renew_history().await;
        let used = self.budget.used(self.now_s());
        let path = &mut self.paths[target];
        let whole = run.incomplete.is_none();
        // A full disk must not end the watch: it may have room again for the next result.
        let kept = path.keep(&self.history, run).await;
        if let Err(why) = &kept {
            let why = exit::in_words(why);
            timed::say(format_args!("{}: the result was not kept: {why}", path.text));
        }
        let kept = kept.ok();
        let back = path.gone_since.clone().map(|since| Event::Back {
            at: run.record.started.clone(),
            target: path.text.clone(),
            since,
        });
        path.set_gone(&self.history, None).await;
        let comparable = kept.filter(|_| whole && path.can_compare());
        let mut changes = Vec::new();
        if let Some(id) = comparable {
            let changed = path.compare(&self.history, id, &run.record).await;
            changes.extend(changed.map(|change| ("changed", Event::Changed(change.into()))));
            let shifts = path.compare_others(&self.history, id, &run.record).await;
            let shifts = shifts.into_iter().map(|shift| Event::Shifted(shift.into()));
            changes.extend(shifts.map(|shift| ("shifted", shift)));
        }
        let event = path.event(run, kept, used);
        if let Some(back) = back {
            self.tell(&back)?;
            self.notify("back", &back);
        }
        self.tell(&event)?;
        if !whole && interrupt.is_raised() {
            return Ok(Ended::Interrupted);
        }
        let ended = match kept {
            _ if !whole => Ended::NoResult,
            None => Ended::NoResult,
            Some(_) if changes.iter().any(|(_, change)| change.is_of_path()) => Ended::Changed,
            Some(_) => Ended::Tested,
        };
        for (name, change) in changes {
            self.tell(&change)?;
            if change.is_of_path() {
                self.notify(name, &change);
            }
        }
        Ok(ended)
    }

    fn tell(&self, event: &Event) -> Result<()> {
        if let Some(metrics) = &self.metrics {
            metrics.see(event);
        }
        if self.args.output.json {
            return Ok(screen::line(json_text::one_line(event)?)?);
        }
        Ok(screen::print_unwrapped(&watch::text(event))?)
    }

    fn notify(&mut self, name: &'static str, event: &Event) {
        let Some(program) = &mut self.program else { return };
        if let Err(why) = program.run(name, event) {
            timed::say(format_args!("{why:#}"));
        }
    }

    /// Deletes what is older than --keep, now and then: to find it, all tests are looked at.
    async fn delete_old(&mut self) {
        let schedule = &self.args.schedule;
        let Some(keep_s) = schedule.keep else { return };
        if self.deleted.is_some_and(|deleted| deleted.elapsed() < DELETE_EVERY) {
            return;
        }
        self.deleted = Some(Instant::now());
        let keep = Keep { tests_s: keep_s, days_s: self.days_kept_s };
        if let Err(why) = delete_too_old(&self.history, keep, schedule.every).await {
            let why = exit::in_words(&why);
            timed::say(format_args!("old results were not deleted: {why}"));
        }
        // It may have been closed on purpose: its records have the numbers that they had.
        self.openings = self.history.openings();
    }
}

/// Deletes what is too old, also on a full disk if nobody else uses the history.
async fn delete_too_old(history: &HistoryThread, keep: Keep, every_s: f64) -> Result<()> {
    let delete = move |store: &Store| Ok(retention::delete_old(store, keep, every_s)?);
    let Some(left) = history.ask(delete).await? else { return Ok(()) };
    history.close().await?;
    // Not on another thread: while this one waits, no signal ends the process, which would damage the file.
    on_full_disk(&left, &mut 0)?;
    match history.ask(delete).await? {
        None => Ok(()),
        Some(_) => bail!("the disk is full again"),
    }
}

/// How long days of deleted results are kept, seconds. Warns of a `--keep` that leaves too few tests to find a change by when
/// the watch begins again, as each watch of one test does.
fn days_kept_s(args: &WatchArgs) -> Result<f64> {
    let schedule = &args.schedule;
    let Some(keep_s) = schedule.keep else { return Ok(0.0) };
    let days_s = days_kept(keep_s, schedule.keep_days).map_err(Error::msg)?;
    let needed = tests_to_learn(schedule.every);
    if keep_s < needed as f64 * schedule.every {
        let tests =
            format!("{needed} tests of a target, one every {}", watch::interval(schedule.every));
        let so = "a watch that begins again can report no change before it has made as many anew";
        screen::say(format_args!(
            "warning: --keep leaves less than {tests}, which goodput needs to know what is usual: {so}"
        ));
    }
    Ok(days_s)
}

/// Each target once, in the order in which they were named.
fn distinct(targets: &[String]) -> Vec<&String> {
    let mut once: Vec<&String> = Vec::with_capacity(targets.len());
    for target in targets {
        match once.contains(&target) {
            true => screen::say(format_args!("warning: {target} is named twice, and tested once")),
            false => once.push(target),
        }
    }
    once
}

/// The time in this number of seconds, in the format of records.
fn time_in(seconds: f64) -> String {
    let length = SignedDuration::try_from_secs_f64(seconds).unwrap_or(SignedDuration::MAX);
    let time = Timestamp::now().saturating_add(length).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
