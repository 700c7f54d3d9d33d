//! Tests that pages have started, and those of other programs: their events are kept for pages that follow them.

use std::cmp::Ordering;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::sync::watch;

use crate::answer::Trouble;
use crate::program::Running;
use crate::steps;

/// Events of a run that are kept. A test makes one or two a second.
const MAX_EVENTS: usize = 10_000;

/// The last event of a run that has more; a page says what it means.
const NO_LONGER_FOLLOWED: &str = r#"{"event":"no-longer-followed"}"#;

/// Runs that are kept.
const MAX_RUNS: usize = 50;

/// The most of an error message that is shown, bytes.
const MAX_ERROR_BYTES: u64 = 16 << 10;

/// Events of one run that pages show. Others, such as every sample of every flow, are large.
const SHOWN: [&str; 6] = ["connected", "opened", "began", "interval", "ended", "note"];

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
        /// The command.
        command: String,
    },
}

#[derive(Default, Clone)]
struct State {
    events: Vec<String>,
    end: Option<End>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// When its record began, RFC 3339, UTC; absent if there is no record.
    pub started: Option<String>,
    /// What it printed on standard error.
    pub said: String,
}

impl Runs {
    /// Starts `command`, which measures `target`, unless another run is at work.
    ///
    /// # Errors
    /// Another run is at work, or the command can't be run.
    pub fn start(&self, command: Command, target: &str) -> Result<u32, Trouble> {
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
        let run = Run::start(command, number, target)
            .map_err(|why| Trouble::failed(format!("can't start a test: {why}")))?;
        keep(runs, run);
        Ok(number)
    }

    /// Follows those of these measurements that it does not follow yet.
    pub fn follow(&self, running: Vec<Running>) {
        let runs = &mut self.lock().runs;
        for Running { id, command, target, started, events } in running {
            let followed =
                |run: &Arc<Run>| matches!(&run.by, By::Other { id: known, .. } if *known == id);
            if runs.iter().any(followed) {
                continue;
            }
            let by = By::Other { id: id.clone(), command };
            let run = Run::new(next_number(runs), target, by);
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
    fn start(mut command: Command, number: u32, target: &str) -> std::io::Result<Arc<Self>> {
        // The threads come first, so that no process runs that nobody follows.
        let (errors_to, said) = ready(said)?;
        let (child_to, _) = ready(move |(run, child): (Arc<Self>, Child)| run.follow(child, said))?;
        // The kernel closes its standard input when this program is gone, however it ended, and the test ends with it.
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C on a terminal goes to a whole group; a test gets it from `stop` alone, as a second one would drop its
        // results.
        let mut child = pipes.process_group(0).spawn()?;
        let run = Self::new(number, target.to_owned(), By::Page { pid: child.id() });
        // Both threads wait for these.
        let _ = child.stderr.take().map(|errors| errors_to.send(errors));
        let _ = child_to.send((Arc::clone(&run), child));
        Ok(run)
    }

    fn new(number: u32, target: String, by: By) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), watch::Sender::new(0));
        Arc::new(Self { number, target, by, state, changed })
    }

    /// Whether a page has started it.
    pub fn is_own(&self) -> bool {
        matches!(self.by, By::Page { .. })
    }

    /// The command of another program that measures; `None` if a page has started it.
    pub fn command(&self) -> Option<&str> {
        match &self.by {
            By::Page { .. } => None,
            By::Other { command, .. } => Some(command),
        }
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

    /// The events since the `known` first ones, each a line of JSON; and how the run ended.
    pub fn since(&self, known: usize) -> (Vec<String>, Option<End>) {
        let state = self.lock();
        let new = state.events.get(known..).unwrap_or_default().to_vec();
        (new, state.end.clone())
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
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            match event["event"].as_str() {
                Some("record") => started = event["record"]["started"].as_str().map(Into::into),
                name => self.enter(name, line),
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
        for line in events {
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            self.enter(event["event"].as_str(), line);
        }
        self.lock().end = Some(End { started: Some(started), said: String::new() });
        self.changed.send_modify(|count| *count += 1);
    }

    /// Keeps an event if pages show those of this `name`; of an event of several runs, what they show of it.
    fn enter(&self, name: Option<&str>, line: String) {
        let Some(name) = name else { return };
        if SHOWN.contains(&name) {
            self.keep(line);
        } else if let Some(shown) = steps::shown(name, &line) {
            self.keep(shown);
        }
    }

    fn keep(&self, line: String) {
        let mut state = self.lock();
        match state.events.len().cmp(&MAX_EVENTS) {
            Ordering::Less => state.events.push(line),
            Ordering::Equal => state.events.push(NO_LONGER_FOLLOWED.into()),
            Ordering::Greater => {}
        }
        drop(state);
        self.changed.send_modify(|count| *count += 1);
    }
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
        assert_eq!(runs.start(shell(script), "nas"), Ok(1));
        let why = runs.start(shell(""), "other").unwrap_err();
        assert!(why.status == 409 && why.why.contains("nas runs already"), "{why:?}");
        let run = runs.find(1).unwrap();
        let mut changes = run.changes();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            while run.since(0).0.is_empty() {
                changes.changed().await.unwrap();
            }
        });
        runs.find(1).unwrap().stop();
        let end = ended(&run);
        assert_eq!(run.since(0).0, [r#"{"event":"began"}"#]);
        assert!(run.since(1).0.is_empty() && run.since(99).0.is_empty());
        assert!(end.started.is_none_or(|started| started == "2026"));
        assert_eq!(runs.start(shell("echo why >&2"), "nas"), Ok(2));
        assert_eq!(ended(&runs.find(2).unwrap()), End { started: None, said: "why\n".into() });
        assert_eq!(runs.all().iter().map(|run| run.number).collect::<Vec<_>>(), [2, 1]);
        runs.stop();
        assert!(runs.start(shell(""), "nas").is_err());
    }

    fn running(id: &str, events: Vec<String>) -> Running {
        let [command, target, started] = ["test", "nas", "2026"].map(String::from);
        Running { id: id.into(), command, target, started, events: Box::new(events.into_iter()) }
    }

    #[test]
    fn a_run_with_more_events_than_are_kept_says_so_once() {
        let runs = Runs::default();
        let events = vec![r#"{"event":"began"}"#.to_owned(); MAX_EVENTS + 3];
        runs.follow(vec![running("1", events)]);
        let run = runs.find(1).unwrap();
        ended(&run);
        assert_eq!(run.since(MAX_EVENTS).0, [NO_LONGER_FOLLOWED]);
    }

    #[test]
    fn a_run_of_another_program_is_followed_once_and_is_not_stopped() {
        let runs = Runs::default();
        let events = vec![r#"{"event":"began"}"#.to_owned(), "half a li".into()];
        runs.follow(vec![running("1", events), running("2", Vec::new())]);
        runs.follow(vec![running("1", Vec::new())]);
        let all = runs.all();
        assert_eq!(all.iter().map(|run| run.number).collect::<Vec<_>>(), [2, 1]);
        let run = &all[1];
        assert_eq!(ended(run).started.as_deref(), Some("2026"));
        assert_eq!(run.since(0).0, [r#"{"event":"began"}"#]);
        assert_eq!((run.is_own(), run.command()), (false, Some("test")));
        run.stop();
        assert_eq!(runs.start(shell(""), "nas"), Ok(3));
    }
}
