//! The user's program that hears of changes. No shell: far ends choose some of the words.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use anstream::adapter::strip_str;
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::sync::oneshot;

use crate::commands::timed;
use crate::json_text;
use crate::os_error::without_numbers;
use crate::report::style::plain;
use crate::report::watch::{self, Event};

/// How long the program may run.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// Most events that wait for the program while it runs: an hour and a half of runs that take their whole minute.
const MAX_WAITING: usize = 100;

/// The program, and the events that it has yet to hear of.
pub struct Program {
    path: PathBuf,
    queue: Option<Queue>,
}

/// A thread that runs the program for one event after the other.
struct Queue {
    events: Option<SyncSender<Told>>,
    /// Events that the program was not started for.
    waiting: Arc<AtomicUsize>,
    /// Told when its thread ends, of which nothing else is left to do.
    ended: oneshot::Receiver<()>,
}

/// What the program hears of an event.
struct Told {
    name: String,
    target: String,
    text: String,
    json: String,
}

impl Program {
    /// The program at `path`.
    pub fn new(path: &Path) -> Result<Self> {
        if !is_program(path) {
            bail!(
                "--notify: {} is no program that this user can run; name one, without options: a script can add them",
                path.display()
            );
        }
        Ok(Self { path: path.into(), queue: None })
    }

    /// Runs it for an event, after its runs for earlier ones. Does not wait for this.
    pub fn run(&mut self, name: &str, event: &Event) -> Result<()> {
        let json = json_text::one_line(event)? + "\n";
        let told = Told {
            name: name.into(),
            target: plain(event.target()),
            text: plain_text(event).trim_end().into(),
            json,
        };
        let queue = match &mut self.queue {
            Some(queue) => queue,
            none => none.insert(Queue::start(&self.path)?),
        };
        queue.waiting.fetch_add(1, Ordering::Relaxed);
        if queue.events.as_ref().is_none_or(|events| events.try_send(told).is_err()) {
            queue.waiting.fetch_sub(1, Ordering::Relaxed);
            let shown = self.path.display();
            bail!(
                "{shown} has {MAX_WAITING} earlier events to hear of; it is not run for this one ({name})"
            );
        }
        Ok(())
    }

    /// Waits until it has heard of all events. It hears of no more.
    pub async fn wait(&mut self) {
        if let Some(queue) = &mut self.queue {
            // Without a sender, the thread ends after what waits.
            queue.events = None;
            // A panic of the thread was printed.
            let _ = (&mut queue.ended).await;
        }
    }

    /// Says if there are events that it will not hear of, because the watch ends.
    pub fn leave(&self) {
        let waiting = self.queue.as_ref().map_or(0, |queue| queue.waiting.load(Ordering::Relaxed));
        if waiting > 0 {
            let (shown, events) =
                (self.path.display(), if waiting == 1 { "event" } else { "events" });
            timed::say(format_args!(
                "{shown} (--notify) did not hear of the last {waiting} {events}"
            ));
        }
    }
}

impl Queue {
    fn start(path: &Path) -> Result<Self> {
        let (events, told) = sync_channel::<Told>(MAX_WAITING);
        let waiting = Arc::new(AtomicUsize::new(0));
        let (path, yet) = (path.to_owned(), Arc::clone(&waiting));
        let (has_ended, ended) = oneshot::channel();
        let each = move || {
            let _ended = has_ended;
            for told in told {
                let started = start(&path, &told);
                yet.fetch_sub(1, Ordering::Relaxed);
                match started {
                    Ok(mut child) => tend(&mut child, &path.display().to_string(), PATIENCE),
                    Err(why) => timed::say(format_args!("{why:#}")),
                }
            }
        };
        let thread = std::thread::Builder::new().name("notify".into()).spawn(each);
        thread.context("can't start a thread for --notify")?;
        Ok(Self { events: Some(events), waiting, ended })
    }
}

/// Starts the program for an event.
fn start(path: &Path, told: &Told) -> Result<Child> {
    Command::new(path)
        .env("GOODPUT_EVENT", &told.name)
        .env("GOODPUT_TARGET", &told.target)
        .env("GOODPUT_TEXT", &told.text)
        .stdin(input(told.json.as_bytes())?)
        .stdout(Stdio::null())
        // Its own, so that it ends with what it has started.
        .process_group(0)
        .spawn()
        .map_err(|cause| why_not(path, cause))
}

/// Why the program can't be run: what the kernel says of a file that is there is about its interpreter (execve(2)).
fn why_not(path: &Path, cause: std::io::Error) -> anyhow::Error {
    let hint = match Errno::from_io_error(&cause) {
        Some(Errno::NOENT) if is_program(path) => {
            "; what its first line names after #! is not there"
        }
        Some(Errno::NOEXEC) => "; a script begins with a line such as #!/bin/sh",
        _ => "",
    };
    anyhow::Error::from(cause).context(format!("can't run {} (--notify){hint}", path.display()))
}

/// What goodput prints of the event, as people read it. What does not show as itself is replaced: a NUL would keep the program
/// from starting, and the program may hand the text to a terminal.
fn plain_text(event: &Event) -> String {
    let text = strip_str(&watch::text(event)).to_string();
    without_numbers(&text).split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// Whether it can be run: a file, or a name that is in a directory of `PATH` (execvp(3)).
fn is_program(path: &Path) -> bool {
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if path.as_os_str().as_bytes().contains(&b'/') {
        return runs(path);
    }
    let directories = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&directories).any(|directory| runs(&directory.join(path)))
}

/// A file with the facts: unlike a pipe, it needs nobody who reads it in time.
fn input(json: &[u8]) -> Result<File> {
    let mut file = tempfile::tempfile().context("can't make a temporary file for --notify")?;
    file.write_all(json)?;
    file.rewind()?;
    Ok(file)
}

/// Waits until the program ends, and ends it when it takes too long.
fn tend(child: &mut Child, shown: &str, patience: Timespec) {
    let has_ended = wait(child, patience).unwrap_or_else(|why| {
        tracing::debug!("can't wait for {shown} with a limit: {why}");
        true
    });
    if !has_ended {
        timed::say(format_args!("{shown} (--notify) ran for a minute and was ended"));
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    match child.wait() {
        Ok(status) if status.success() || !has_ended => {}
        Ok(status) => timed::say(format_args!("{shown} (--notify): {status}")),
        Err(why) => timed::say(format_args!("can't wait for {shown} (--notify): {why}")),
    }
}

/// Whether the program ends in time.
fn wait(child: &Child, patience: Timespec) -> rustix::io::Result<bool> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut ends = [PollFd::new(&process, PollFlags::IN)];
    let ready = retry_on_intr(|| poll(&mut ends, Some(&patience)))?;
    Ok(ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Bytes;

    /// Waits until it has heard of all events.
    fn heard(program: &mut Program) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(program.wait());
    }

    fn back(target: &str) -> Event {
        let at = "2026-11-27T15:20:00Z".to_string();
        Event::Back { at: at.clone(), target: target.into(), since: at }
    }

    #[test]
    fn the_program_gets_hostile_words_as_they_are_and_no_shell_sees_them() {
        let folder = tempfile::tempdir().unwrap();
        let (script, out) = (folder.path().join("tell"), folder.path().join("out"));
        let lines = format!(
            "#!/bin/sh\n{{ echo \"$GOODPUT_EVENT|$GOODPUT_TARGET\"; cat; }} > {}",
            out.display()
        );
        goodput_testing::write_script(&script, &lines);
        let mut program = Program::new(&script).unwrap();
        program.run("back", &back("$(touch x); `id`\0\u{1b}[2J\u{202e}")).unwrap();
        heard(&mut program);
        let said = std::fs::read_to_string(out).unwrap();
        let (first, json) = said.split_once('\n').unwrap();
        assert_eq!(first, "back|$(touch x); `id`\u{fffd}\u{fffd}[2J\u{fffd}");
        assert!(!json.contains(['\u{1b}', '\u{202e}']), "{json}");
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(json["event"], "back");
        assert_eq!(json["target"], "$(touch x); `id`\0\u{1b}[2J\u{202e}", "nothing is lost");
    }

    #[test]
    fn the_text_has_the_words_of_an_error_and_not_its_number() {
        let at = "2026-11-27T15:20:00Z".to_string();
        let event = Event::NoResult {
            at: at.clone(),
            target: "nas".into(),
            why: format!("can't connect: {}\0", std::io::Error::from_raw_os_error(111)),
            since: at,
            bytes: Bytes(0),
            used_bytes: Bytes(0),
        };
        let text = plain_text(&event);
        assert!(
            text.contains("Connection refused\u{fffd}") && !text.contains("os error"),
            "{text}"
        );
    }

    #[test]
    fn a_missing_program_is_named_at_once() {
        for wrong in
            ["/no/such/program", "no-such-program", "sh -c true", "/etc/passwd", "/etc", ""]
        {
            let why = Program::new(Path::new(wrong)).map(drop).unwrap_err();
            assert!(why.to_string().contains(wrong), "{why}");
        }
        assert!(Program::new(Path::new("sh")).is_ok());
    }

    fn told() -> Told {
        let [name, target, text] = ["back", "nas", ""].map(String::from);
        Told { name, target, text, json: String::new() }
    }

    #[test]
    fn a_program_that_takes_too_long_ends_with_what_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let [script, go] = ["slow", "go"].map(|name| folder.path().join(name));
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &go, mode).unwrap();
        // The child holds the FIFO open until it ends.
        let lines = format!("#!/bin/sh\n{{ echo runs; sleep 1000; }} > {} &\nwait", go.display());
        goodput_testing::write_script(&script, &lines);
        let mut child = start(&script, &told()).unwrap();
        let mut held = std::io::BufReader::new(File::open(&go).unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut held, &mut line).unwrap();
        assert_eq!(line, "runs\n");
        tend(&mut child, "slow", Timespec { tv_sec: 0, tv_nsec: 0 });
        // It ends when nobody holds the other side.
        std::io::Read::read_to_end(&mut held, &mut Vec::new()).unwrap();
    }

    #[test]
    fn a_missing_interpreter_is_named_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        goodput_testing::write_script(&script, "#!/no/such/interpreter");
        let why = start(&script, &told()).map(drop).unwrap_err();
        assert!(format!("{why:#}").contains("what its first line names"), "{why:#}");
    }

    /// A program that appends the event's name to a file. For `back`, it first waits until someone has written to a FIFO.
    struct Slow {
        _folder: tempfile::TempDir,
        script: PathBuf,
        go: PathBuf,
        out: PathBuf,
    }

    impl Slow {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let [script, go, out] = ["slow", "go", "out"].map(|name| folder.path().join(name));
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, &go, mode).unwrap();
            let lines = format!(
                "#!/bin/sh\n[ \"$GOODPUT_EVENT\" != back ] || cat {} > /dev/null\necho \"$GOODPUT_EVENT\" >> {}",
                go.display(),
                out.display()
            );
            goodput_testing::write_script(&script, &lines);
            Self { _folder: folder, script, go, out }
        }

        /// Lets the program go on. Returns for which events it ran.
        fn end(&self, mut program: Program) -> Vec<String> {
            std::fs::write(&self.go, "").unwrap();
            heard(&mut program);
            let said = std::fs::read_to_string(&self.out).unwrap();
            said.lines().map(Into::into).collect()
        }
    }

    #[test]
    fn each_event_runs_the_program_in_order_and_nobody_waits_for_it() {
        let slow = Slow::new();
        let mut program = Program::new(&slow.script).unwrap();
        let names = ["back", "changed", "shifted", "gone"];
        for name in names {
            program.run(name, &back("nas")).unwrap();
        }
        assert_eq!(slow.end(program), names);
    }

    #[test]
    fn no_more_events_wait_than_there_is_room_for_and_the_next_is_named() {
        let slow = Slow::new();
        let mut program = Program::new(&slow.script).unwrap();
        program.run("back", &back("nas")).unwrap();
        // The first one may have left the queue already.
        let refused = (1..MAX_WAITING + 2)
            .find_map(|taken| Some((taken, program.run("gone", &back("nas")).err()?)));
        let (taken, why) = refused.expect("there is no room for all of them");
        let why = why.to_string();
        assert!(why.contains("100 earlier events") && why.contains("(gone)"), "{why}");
        assert_eq!(slow.end(program).len(), taken, "those that were taken all hear of it");
    }
}
