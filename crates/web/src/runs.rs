//! Tests that pages have started, and those of other programs: their events are kept for pages that follow them.

use std::cmp::Ordering;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use goodput_model::Event;
use maud::Markup;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tokio::sync::watch;

use crate::answer::Trouble;
use crate::program::{NoResult, Running};
use crate::progress::Progress;

/// Events of a run that are followed. A test makes one or two a second.
const MAX_EVENTS: usize = 10_000;

/// Runs that are kept.
const MAX_RUNS: usize = 50;

/// The most of an error message that is shown, bytes.
const MAX_ERROR_BYTES: u64 = 16 << 10;

/// All runs.
#[derive(Default)]
pub struct Runs(Mutex<List>);

#[derive(Default)]
struct List {
    /// The oldest first.
    runs: Vec<Arc<Run>>,
    /// Whether no more may start.
    closed: bool,
}

/// One run.
pub struct Run {
    /// Its number among those that this server started or follows.
    pub number: u32,
    /// The command, such as `test`.
    pub command: String,
    /// What is measured.
    pub target: String,
    /// Who measures.
    by: By,
    state: Mutex<State>,
    /// Counts what has happened.
    changed: watch::Sender<u64>,
}

/// Who measures.
enum By {
    /// A process that a page has started.
    Page {
        /// Its number.
        pid: u32,
    },
    /// Another program on this host.
    Other {
        /// Distinguishes the measurement from all others.
        id: String,
    },
}

#[derive(Default)]
struct State {
    /// How many events have come.
    count: usize,
    /// Those that a page shows one by one, each a line of JSON.
    events: Vec<String>,
    /// What all others say.
    progress: Progress,
    /// How often that has changed.
    steps: usize,
    end: Option<End>,
}

/// How much of a run a page knows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// Events.
    pub events: usize,
    /// Changes of the progress.
    pub steps: usize,
}

/// What a page does not know yet.
pub struct News {
    /// Events, each a line of JSON.
    pub events: Vec<String>,
    /// What several runs have found so far, if that has changed.
    pub progress: Option<Markup>,
    /// What the page then knows.
    pub told: Told,
    /// How the run ended.
    pub end: Option<End>,
}

/// The last line of a process.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Last {
    /// The result.
    Record {
        /// It.
        record: Head,
    },
}

#[derive(Deserialize)]
struct Head {
    started: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// When its record began, RFC 3339, UTC; absent if there is no record.
    pub started: Option<String>,
    /// What it printed on standard error, or why it failed.
    pub said: String,
}

impl Runs {
    /// Starts a process that measures `what`, a command and a target, unless another run is at work.
    ///
    /// # Errors
    /// Another run is at work, or the command can't be run.
    pub fn start(&self, process: Command, what: [&str; 2]) -> Result<u32, Trouble> {
        let List { runs, closed } = &mut *self.lock();
        if *closed {
            return Err(Trouble::busy("the server ends"));
        }
        if let Some(busy) = runs.iter().find(|run| run.is_own() && run.end().is_none()) {
            return Err(Trouble::busy(format!(
                "a test of {} runs already; stop it, or wait for its end",
                busy.target
            )));
        }
        let number = next_number(runs);
        let run = Run::start(process, number, what)
            .map_err(|why| Trouble::failed(format!("can't start a test: {why}")))?;
        keep(runs, run);
        Ok(number)
    }

    /// Follows those of these measurements that it does not follow yet.
    pub fn follow(&self, running: Vec<Running>) {
        let runs = &mut self.lock().runs;
        for Running { id, command, target, started, events } in running {
            let followed =
                |run: &Arc<Run>| matches!(&run.by, By::Other { id: known } if *known == id);
            if runs.iter().any(followed) {
                continue;
            }
            let by = By::Other { id: id.clone() };
            let run = Run::new(next_number(runs), [command, target], by);
            let follows = Arc::clone(&run);
            let thread = thread::Builder::new().name("run".into());
            match thread.spawn(move || follows.read(events, started)) {
                Ok(_) => keep(runs, run),
                Err(why) => tracing::warn!("can't follow {id}: {why}"),
            }
        }
    }

    /// The run with this number.
    pub fn find(&self, number: u32) -> Option<Arc<Run>> {
        self.lock().runs.iter().find(|run| run.number == number).cloned()
    }

    /// All runs, the newest first.
    pub fn all(&self) -> Vec<Arc<Run>> {
        self.lock().runs.iter().rev().cloned().collect()
    }

    /// Stops all runs, and starts no more.
    pub fn stop(&self) {
        let mut list = self.lock();
        list.closed = true;
        list.runs.iter().for_each(|run| run.stop());
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        // A panic in between leaves a list that is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_number(runs: &[Arc<Run>]) -> u32 {
    runs.last().map_or(1, |last| last.number + 1)
}

/// Adds a run, in place of the oldest that has ended if there are many.
fn keep(runs: &mut Vec<Arc<Run>>, run: Arc<Run>) {
    if runs.len() >= MAX_RUNS
        && let Some(oldest) = runs.iter().position(|run| run.end().is_some())
    {
        runs.remove(oldest);
    }
    runs.push(run);
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Run {
    fn start(mut process: Command, number: u32, what: [&str; 2]) -> std::io::Result<Arc<Self>> {
        // The threads come first, so that no process runs that nobody follows.
        let (errors_to, said) = ready(said)?;
        let (child_to, _) = ready(move |(run, child): (Arc<Self>, Child)| run.follow(child, said))?;
        // The kernel closes its standard input when this program is gone, however it ended, and the test ends with it.
        let pipes = process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C on a terminal goes to a whole group; a test gets it from `stop` alone, as a second one would drop its
        // results.
        let mut child = pipes.process_group(0).spawn()?;
        let run = Self::new(number, what.map(String::from), By::Page { pid: child.id() });
        // Both threads wait for these.
        let _ = child.stderr.take().map(|errors| errors_to.send(errors));
        let _ = child_to.send((Arc::clone(&run), child));
        Ok(run)
    }

    fn new(number: u32, [command, target]: [String; 2], by: By) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), watch::Sender::new(0));
        Arc::new(Self { number, command, target, by, state, changed })
    }

    /// Whether a page has started it.
    pub fn is_own(&self) -> bool {
        matches!(self.by, By::Page { .. })
    }

    /// Asks the run to end with its results so far; nothing if it has ended, or is another program's.
    pub fn stop(&self) {
        let By::Page { pid } = self.by else { return };
        // Held, so that the process can't be reaped and its number given to another meanwhile.
        let state = self.lock();
        let pid = Pid::from_raw(pid.cast_signed());
        if let (None, Some(pid)) = (&state.end, pid) {
            let _ = kill_process(pid, Signal::INT);
        }
    }

    /// How it ended, if it has.
    pub fn end(&self) -> Option<End> {
        self.lock().end.clone()
    }

    /// Waits for its end.
    pub async fn ended(&self) {
        let mut changes = self.changes();
        // This run has the sender, so waiting can't fail.
        while self.end().is_none() && changes.changed().await.is_ok() {}
    }

    /// What has happened since a page that knows this much.
    pub fn since(&self, known: Told) -> News {
        let state = self.lock();
        let events = state.events.get(known.events..).unwrap_or_default().to_vec();
        let progress = (state.steps > known.steps).then(|| state.progress.markup());
        let told = Told { events: state.events.len(), steps: state.steps };
        News { events, progress, told, end: state.end.clone() }
    }

    /// Changes whenever something happens.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what the process prints until its end. It ends: every test has a length.
    fn follow(&self, mut child: Child, said: JoinHandle<Option<String>>) {
        let mut started = None;
        // Kept until the process has ended.
        let _input = child.stdin.take();
        let output = child.stdout.take().into_iter();
        for line in output.flat_map(|output| BufReader::new(output).lines()) {
            let Ok(line) = line else { break };
            match serde_json::from_str::<Event>(&line) {
                Ok(event) => self.enter(event, line),
                Err(_) => started = started.or_else(|| began(&line)),
            }
        }
        let said = said.join().ok().flatten().unwrap_or_default();
        let mut state = self.lock();
        let _ = child.wait();
        state.end = Some(End { started, said });
        drop(state);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Reads the events of another program. It ends when that program does.
    fn read(&self, events: impl Iterator<Item = String>, started: String) {
        let mut said = String::new();
        for line in events {
            match serde_json::from_str::<Event>(&line) {
                Ok(event) => self.enter(event, line),
                Err(_) => said = failed(&line).unwrap_or(said),
            }
        }
        self.lock().end = Some(End { started: Some(started), said });
        self.changed.send_modify(|count| *count += 1);
    }

    /// Takes an event, and its `line` if a page shows it by itself.
    fn enter(&self, event: Event, line: String) {
        let mut state = self.lock();
        let State { count, events, progress, steps, .. } = &mut *state;
        *count += 1;
        match (*count).cmp(&(MAX_EVENTS + 1)) {
            Ordering::Less if is_shown_by_itself(&event) => events.push(line),
            Ordering::Less => *steps += usize::from(progress.enter(event)),
            Ordering::Equal => {
                progress.lose();
                *steps += 1;
            }
            Ordering::Greater => {}
        }
        drop(state);
        self.changed.send_modify(|count| *count += 1);
    }
}

/// Whether pages show each event of this kind.
fn is_shown_by_itself(event: &Event) -> bool {
    matches!(
        event,
        Event::Connected { .. }
            | Event::Opened { .. }
            | Event::Began
            | Event::Interval(_)
            | Event::Ended
            | Event::Note { .. }
    )
}

/// When the record of a result began; `None` if the line is none.
fn began(line: &str) -> Option<String> {
    let Last::Record { record } = serde_json::from_str(line).ok()?;
    Some(record.started)
}

/// Why a measurement has no result; `None` if the line does not say so.
fn failed(line: &str) -> Option<String> {
    let NoResult::Failed { why } = serde_json::from_str(line).ok()?;
    Some(why)
}

/// A thread that waits for something, and does `work` with it; nothing if nothing comes.
fn ready<T: Send + 'static, R: Send + 'static>(
    work: impl FnOnce(T) -> R + Send + 'static,
) -> std::io::Result<(Sender<T>, JoinHandle<Option<R>>)> {
    let (sender, coming) = channel();
    let thread = thread::Builder::new().name("run".into());
    Ok((sender, thread.spawn(move || coming.recv().ok().map(work))?))
}

/// What the process prints on standard error until its end.
fn said(mut errors: ChildStderr) -> String {
    let mut said = String::new();
    let _ = errors.by_ref().take(MAX_ERROR_BYTES).read_to_string(&mut said);
    let _ = std::io::copy(&mut errors, &mut std::io::sink());
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAS: [&str; 2] = ["test", "nas"];

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn ended(run: &Run) -> End {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run.ended());
        run.end().unwrap()
    }

    #[test]
    fn what_a_run_prints_is_kept_and_one_runs_at_a_time() {
        let runs = Runs::default();
        let script = r#"echo '{"event":"began"}'; echo '{"event":"sampled"}'; echo nothing;
            echo '{"event":"record","record":{"started":"2026"}}'; echo why >&2; exec sleep 20"#;
        assert_eq!(runs.start(shell(script), NAS), Ok(1));
        let why = runs.start(shell(""), ["test", "other"]).unwrap_err();
        assert!(why.status == 409 && why.why.contains("nas runs already"), "{why:?}");
        let run = runs.find(1).unwrap();
        let mut changes = run.changes();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            while run.since(Told::default()).events.is_empty() {
                changes.changed().await.unwrap();
            }
        });
        runs.find(1).unwrap().stop();
        let end = ended(&run);
        assert_eq!(events(&run, 0), [r#"{"event":"began"}"#]);
        assert!(events(&run, 1).is_empty() && events(&run, 99).is_empty());
        assert!(end.started.is_none_or(|started| started == "2026"));
        assert_eq!(runs.start(shell("echo why >&2"), NAS), Ok(2));
        assert_eq!(ended(&runs.find(2).unwrap()), End { started: None, said: "why\n".into() });
        assert_eq!(runs.all().iter().map(|run| run.number).collect::<Vec<_>>(), [2, 1]);
        runs.stop();
        assert!(runs.start(shell(""), NAS).is_err());
    }

    fn events(run: &Run, known: usize) -> Vec<String> {
        run.since(Told { events: known, ..Told::default() }).events
    }

    fn running(id: &str, events: Vec<String>) -> Running {
        let [command, target, started] = ["test", "nas", "2026"].map(String::from);
        Running { id: id.into(), command, target, started, events: Box::new(events.into_iter()) }
    }

    #[test]
    fn a_followed_run_that_fails_says_why() {
        let runs = Runs::default();
        let failed = NoResult::Failed { why: "no route".into() };
        let lines = vec![r#"{"event":"began"}"#.into(), serde_json::to_string(&failed).unwrap()];
        runs.follow(vec![running("1", lines)]);
        let run = runs.find(1).unwrap();
        let end = End { started: Some("2026".into()), said: "no route".into() };
        assert_eq!((ended(&run), events(&run, 0).len()), (end, 1));
    }

    #[test]
    fn a_run_with_more_events_than_are_kept_says_so_once() {
        let runs = Runs::default();
        let events = vec![r#"{"event":"began"}"#.to_owned(); MAX_EVENTS + 3];
        runs.follow(vec![running("1", events)]);
        let run = runs.find(1).unwrap();
        ended(&run);
        let News { events, progress, told, .. } = run.since(Told::default());
        assert_eq!((events.len(), told.steps), (MAX_EVENTS, 1));
        assert!(progress.is_some_and(|shown| shown.into_string().contains("no longer follows")));
    }

    #[test]
    fn a_run_of_another_program_is_followed_once_and_is_not_stopped() {
        let runs = Runs::default();
        let lines = vec![r#"{"event":"began"}"#.to_owned(), "half a li".into()];
        runs.follow(vec![running("1", lines), running("2", Vec::new())]);
        runs.follow(vec![running("1", Vec::new())]);
        let all = runs.all();
        assert_eq!(all.iter().map(|run| run.number).collect::<Vec<_>>(), [2, 1]);
        let run = &all[1];
        assert_eq!(ended(run).started.as_deref(), Some("2026"));
        assert_eq!(events(run, 0), [r#"{"event":"began"}"#]);
        assert_eq!((run.is_own(), &*run.command), (false, "test"));
        run.stop();
        assert_eq!(runs.start(shell(""), NAS), Ok(3));
    }
}
