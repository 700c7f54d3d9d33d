//! What is measured here now, so that others can follow it: each run appends its events to a file of its own in the state
//! directory. It keeps the file locked, and the kernel unlocks it when the run is gone, however it ended (flock(2)).

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

use goodput_engine::Event;
use goodput_web::NoResult;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::os_error::without_numbers;

/// The directory of these files in the state directory.
const DIRECTORY: &str = "running";

/// How the name of a file ends. Before its first line is there, it has another name.
const ENDING: &str = ".jsonl";

/// Events that may wait for the disk. Those beyond are left out: no measurement waits for its followers.
const MAX_WAITING: usize = 1000;

/// Events that are written of one run: a test of an hour makes 3600, and a file of them has about a megabyte.
const MAX_EVENTS: usize = 10_000;

/// How long the end of a run waits until its last events are written. A disk takes milliseconds; one that is gone, for ever.
const PATIENCE: Duration = Duration::from_secs(1);

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The command, such as `test`.
    pub command: String,
    /// What is measured.
    pub target: String,
    /// When its record begins, RFC 3339, UTC.
    pub started: String,
}

/// A line of a file after the first one.
enum Line {
    /// It is left out if there are many.
    Event(String),
    /// It is written whatever the number of events before it.
    Last(String),
}

/// A run that others can follow. Dropping this removes its file.
pub struct Announced {
    path: PathBuf,
    lines: Option<SyncSender<Line>>,
    /// Closed when everything is written.
    written: Receiver<()>,
}

impl Announced {
    /// Announces a run in this state directory. `None` if nobody can follow it, which stops no measurement.
    pub fn new(state_dir: &Path, command: &str, target: &str, started: &str) -> Option<Self> {
        let [command, target, started] = [command, target, started].map(String::from);
        let announced = Self::begin(&state_dir.join(DIRECTORY), &Head { command, target, started });
        announced.inspect_err(|why| tracing::debug!("nobody can follow this run: {why}")).ok()
    }

    fn begin(directory: &Path, head: &Head) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        remove_left(directory);
        let name = format!("{}-{:08x}", std::process::id(), rand::random::<u32>());
        let (made, path) = (directory.join(&name), directory.join(name + ENDING));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&made)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        writeln!(file, "{}", serde_json::to_string(head)?)?;
        std::fs::rename(&made, &path)?;
        let (lines, waiting) = sync_channel(MAX_WAITING);
        let (writes, written) = channel::<()>();
        let announced = Self { path, lines: Some(lines), written };
        let thread = std::thread::Builder::new().name("followers".into());
        thread.spawn(move || {
            write(file, &waiting);
            drop(writes);
        })?;
        Ok(announced)
    }

    /// The name of its file, which no other run has.
    pub fn id(&self) -> Option<String> {
        Some(self.path.file_name()?.to_string_lossy().into_owned())
    }

    /// An event for those who follow.
    pub fn enter(&self, event: &Event) {
        // The record has all samples.
        if matches!(event, Event::Sampled { .. }) {
            return;
        }
        self.line(serde_json::to_string(event).map(Line::Event));
    }

    /// Why the run ends without a result, for those who follow.
    pub fn fail(&self, why: &str) {
        let failed = NoResult::Failed { why: without_numbers(why).into() };
        self.line(serde_json::to_string(&failed).map(Line::Last));
    }

    fn line(&self, line: serde_json::Result<Line>) {
        if let (Some(lines), Ok(line)) = (&self.lines, line) {
            let _ = lines.try_send(line);
        }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        // The thread then closes the file, which unlocks it. Without the wait, the process could end before the last event.
        self.lines = None;
        let _ = self.written.recv_timeout(PATIENCE);
    }
}

/// Ends with the run, or when the disk takes no more. It holds the file, and with it the lock.
fn write(mut file: File, lines: &Receiver<Line>) {
    for (number, line) in lines.iter().enumerate() {
        let line = match line {
            Line::Event(_) if number >= MAX_EVENTS => continue,
            Line::Event(line) | Line::Last(line) => line + "\n",
        };
        if let Err(why) = file.write_all(line.as_bytes()) {
            tracing::debug!("those who follow this run see no more: {why}");
            // Without a reader nothing waits, but the lock stays until the run ends.
            lines.iter().for_each(drop);
        }
    }
}

/// A run that can be followed.
pub struct Followable {
    /// The name of its file, which no other run has.
    pub id: String,
    /// What it is.
    pub head: Head,
    /// Its events from now on and from before.
    pub events: Followed,
}

impl Followable {
    /// Whether it measures at this moment, by its events so far: one test does from when its payload begins until that has
    /// ended, and not while it connects or waits for its turn at a server. A run of many does all the time.
    fn measures(&mut self) -> bool {
        let is_one_test = ["test", "watch"].contains(&self.head.command.as_str());
        let lines = std::iter::from_fn(|| self.events.lines.whole());
        lines.fold(!is_one_test, |measures, line| measures_since(&line).unwrap_or(measures))
    }
}

/// Whether a run measures since this event; none if the event does not tell.
fn measures_since(line: &str) -> Option<bool> {
    #[derive(Deserialize)]
    struct Named {
        event: String,
    }
    let Named { event } = serde_json::from_str(line).ok()?;
    match event.as_str() {
        "ended" => Some(false),
        // A transfer of another program was found, and is observed from now on.
        "found" => Some(true),
        event => (event == "began" || event.ends_with("-began")).then_some(true),
    }
}

/// The runs of this state directory that go on.
pub fn all(state_dir: &Path) -> Vec<Followable> {
    let directory = state_dir.join(DIRECTORY);
    remove_left(&directory);
    files(&directory).into_iter().filter_map(|path| follow(&path)).collect()
}

/// The names of the runs of this state directory that measure at this moment, and what each is.
pub fn measuring(state_dir: &Path) -> Vec<(String, Head)> {
    let all = all(state_dir).into_iter();
    all.filter_map(|mut run| run.measures().then_some((run.id, run.head))).collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| is_named(path)).collect();
    files.sort();
    files
}

fn is_named(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ENDING))
}

/// Removes the files of runs that were killed.
fn remove_left(directory: &Path) {
    for path in files(directory) {
        if File::open(&path).is_ok_and(|file| has_ended(&file)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether the run that had this file is gone.
fn has_ended(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockShared).is_ok()
}

fn follow(path: &Path) -> Option<Followable> {
    let mut lines = Lines { file: BufReader::new(File::open(path).ok()?), part: String::new() };
    let head = serde_json::from_str(&lines.whole()?).ok()?;
    let id = path.file_name()?.to_string_lossy().into_owned();
    let changes = inotify::init(CreateFlags::CLOEXEC).ok()?;
    // The second one comes also if the writer is killed.
    inotify::add_watch(&changes, path, WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE).ok()?;
    Some(Followable { id, head, events: Followed { lines, changes, has_ended: false } })
}

/// The events of a run, each a line of JSON: waits for the next one, and ends with the run.
pub struct Followed {
    lines: Lines,
    changes: OwnedFd,
    has_ended: bool,
}

impl Iterator for Followed {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.lines.whole() {
                return Some(line);
            }
            if self.has_ended {
                return None;
            }
            // What was written before it ended is still read.
            self.has_ended = has_ended(self.lines.file.get_ref());
            if !self.has_ended {
                self.wait().ok()?;
            }
        }
    }
}

impl Followed {
    /// Waits until the file has changed since the last time.
    fn wait(&self) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 512];
        inotify::Reader::new(&self.changes, &mut buffer).next()?;
        Ok(())
    }
}

/// The whole lines of a file that grows.
struct Lines {
    file: BufReader<File>,
    /// A line whose end is not written yet.
    part: String,
}

impl Lines {
    fn whole(&mut self) -> Option<String> {
        self.file.read_line(&mut self.part).ok()?;
        if !self.part.ends_with('\n') {
            return None;
        }
        Some(std::mem::take(&mut self.part).trim_end().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: &str) -> Event {
        Event::Note { text: text.into() }
    }

    #[test]
    fn a_run_is_followed_from_its_first_event_to_its_end() {
        let state = tempfile::tempdir().unwrap();
        assert!(all(state.path()).is_empty(), "not even the directory exists");
        let run = Announced::new(state.path(), "test", "nas", "2026-01-01T00:00:00Z").unwrap();
        run.enter(&Event::Began);
        let mut found = all(state.path());
        let [Followable { head, events, .. }] = &mut found[..] else { panic!("one") };
        assert_eq!((&*head.command, &*head.target), ("test", "nas"));
        assert_eq!(events.next().as_deref(), Some(r#"{"event":"began"}"#));
        run.enter(&note("two\nlines"));
        assert_eq!(events.next().as_deref(), Some(r#"{"event":"note","text":"two\nlines"}"#));
        run.enter(&Event::Ended);
        drop(run);
        assert_eq!(events.next().as_deref(), Some(r#"{"event":"ended"}"#));
        assert_eq!(events.next(), None);
        assert!(all(state.path()).is_empty());
    }

    #[test]
    fn one_test_measures_while_its_payload_moves_and_a_run_of_many_all_the_time() {
        let state = tempfile::tempdir().unwrap();
        let run = |command| Announced::new(state.path(), command, "nas", "").unwrap();
        let (one, many) = (run("test"), run("compare"));
        let next = |command: &str| {
            let mut all = all(state.path()).into_iter();
            all.find(|run| run.head.command == command).unwrap()
        };
        // What is read here was written.
        let mut followed = next("test");
        for (event, measures) in [
            (note("it waits"), false),
            (Event::Began, true),
            (note("so far"), true),
            (Event::Ended, false),
        ] {
            one.enter(&event);
            followed.events.next().unwrap();
            assert_eq!(next("test").measures(), measures, "{event:?}");
            assert!(next("compare").measures());
            let found: Vec<_> = measuring(state.path()).into_iter().map(|(id, _)| id).collect();
            assert_eq!(found.contains(&one.id().unwrap()), measures);
            assert!(found.contains(&many.id().unwrap()));
        }
    }

    /// The process may end at once after that.
    #[test]
    fn all_is_written_when_the_run_has_ended_and_with_it_why_it_failed() {
        let state = tempfile::tempdir().unwrap();
        let run = Announced::new(state.path(), "watch", "nas", "2026-01-01T00:00:00Z").unwrap();
        let Followable { events, .. } = all(state.path()).remove(0);
        let most = MAX_WAITING / 2;
        (0..most).for_each(|_| run.enter(&Event::Began));
        run.fail("can't connect: refused (os error 111)");
        drop(run);
        let lines: Vec<String> = events.collect();
        assert_eq!(lines.len(), most + 1);
        let failed: NoResult = serde_json::from_str(&lines[most]).unwrap();
        assert_eq!(failed, NoResult::Failed { why: "can't connect: refused".into() });
    }

    #[test]
    fn the_file_of_a_killed_run_is_removed_and_one_without_a_whole_line_is_no_run() {
        let state = tempfile::tempdir().unwrap();
        let run = Announced::new(state.path(), "test", "nas", "").unwrap();
        let directory = state.path().join(DIRECTORY);
        let left = directory.join(format!("1-0{ENDING}"));
        std::fs::write(&left, "{\"command\":\"test\"").unwrap();
        let held = directory.join(format!("2-0{ENDING}"));
        std::fs::write(&held, "half a li").unwrap();
        let file = File::open(&held).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(all(state.path()).len(), 1);
        assert!(!left.exists() && held.exists());
        drop(run);
    }

    #[test]
    fn where_nothing_can_be_written_a_run_is_not_announced() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Announced::new(file.path(), "test", "nas", "").is_none());
    }
}
