//! This test binary as its own guard, and as a run to be killed.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::file::kill_after;
use crate::{Changes, GuardProgram};

/// This test binary as the guard.
pub(crate) fn guard() -> GuardProgram {
    GuardProgram::this_executable(["--exact", "testing::victim::guard_entry", "--nocapture"])
}

/// The guard, when the last argument is a journal; else an empty test.
#[test]
fn guard_entry() {
    let journal = std::env::args().next_back().unwrap();
    if journal.ends_with(".journal.jsonl") {
        std::process::exit(crate::guard_main(Path::new(&journal)));
    }
}

const VICTIM: &str = "GOODPUT_TEST_VICTIM";

/// A separate process in the caller's namespace that changes settings and then waits.
pub(crate) struct Victim {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The guard that watches it, unless it has already ended: another process may then have its number.
    guard: Option<OwnedFd>,
}

impl Victim {
    /// Starts a process that makes the changes of `job`, each `NAME=VALUE`, and waits until its guard
    /// runs. The process kills itself after this many steps of `test.file`, if that is not negative.
    pub(crate) fn start(state_dir: &Path, job: &[String], kill_after: i64) -> Self {
        Self::begin(state_dir, job, kill_after).expect("the victim starts its guard")
    }

    /// The same without a kill; `None` if it may not begin.
    pub(crate) fn try_start(state_dir: &Path, job: &[String]) -> Option<Self> {
        Self::begin(state_dir, job, -1)
    }

    fn begin(state_dir: &Path, job: &[String], kill_after: i64) -> Option<Self> {
        let job = format!("{}\n{kill_after}\n{}", state_dir.display(), job.join("\n"));
        let mut process = Command::new("/proc/self/exe")
            .args(["--exact", "testing::victim::victim_entry", "--nocapture"])
            .env(VICTIM, job)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let Some(guard) = hear(&mut output, "guard ") else {
            process.wait().unwrap();
            return None;
        };
        let guard = Pid::from_raw(guard.parse().unwrap()).unwrap();
        let guard = match pidfd_open(guard, PidfdFlags::empty()) {
            Err(Errno::SRCH) => None,
            guard => Some(guard.unwrap()),
        };
        Some(Self { process, input, output, guard })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits until all changes are made.
    pub(crate) fn wait_until_applied(&mut self) {
        hear(&mut self.output, "applied all").expect("the victim applies its job");
    }

    /// Lets it put everything back as soon as all changes are made.
    pub(crate) fn let_finish(&mut self) {
        // A dead process does not read.
        let _ = self.input.write_all(b"\n");
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Kills its guard, then it, so that nobody is left to put anything back.
    pub(crate) fn kill_with_guard(&mut self) {
        // A guard that has ended puts nothing back either.
        let _ = self.guard.as_ref().map(|guard| pidfd_send_signal(guard, Signal::KILL));
        self.kill();
    }

    /// Makes it put everything back; returns whether it lived to do so.
    pub(crate) fn finish(mut self) -> bool {
        // A dead process does not read.
        let _ = self.input.write_all(b"\n");
        self.process.wait().unwrap().success()
    }
}

/// Waits for the line that contains `word` and returns the rest of it; `None`: the process has ended.
fn hear(output: &mut BufReader<ChildStdout>, word: &str) -> Option<String> {
    output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.split_once(word).map(|(_, rest)| rest.trim().to_owned()))
}

/// The victim, when the environment says so; else an empty test.
#[test]
fn victim_entry() {
    let Ok(job) = std::env::var(VICTIM) else { return };
    let [state_dir, steps, job @ ..] = &job.lines().collect::<Vec<_>>()[..] else {
        panic!("{job:?}")
    };
    let mut changes = match Changes::begin(Path::new(state_dir), guard()) {
        Ok(changes) => changes,
        Err(refused) => return println!("\n{refused}"),
    };
    println!("\nguard {}", changes.guard_pid().unwrap());
    kill_after(steps.parse().unwrap());
    for change in job {
        let (setting, value) = change.split_once('=').unwrap();
        changes.apply(&setting.parse().unwrap(), value).unwrap();
    }
    println!("\napplied all");
    io::stdin().lock().read_line(&mut String::new()).unwrap();
}
