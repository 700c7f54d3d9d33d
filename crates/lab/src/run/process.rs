//! A program that the lab started: its output, its end, and a guarantee that it never outlives this process.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, pidfd_open, set_parent_process_death_signal,
};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::error::LabError;

/// A running program. Dropping it kills it and waits for its end.
#[derive(Debug)]
pub(super) struct Process {
    what: String,
    child: Child,
    lines: Receiver<String>,
    stderr: Arc<Mutex<String>>,
    stderr_closed: Receiver<()>,
}

/// How a program ended, and all its output.
#[derive(Debug)]
pub(super) struct Finished {
    /// `None` if a signal ended it.
    pub(super) exit_code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Restricts a program to the first CPUs, this many.
#[expect(unsafe_code, reason = "pre_exec runs code between fork and exec")]
pub(super) fn pin(command: &mut Command, cpus: usize) {
    let mut set = CpuSet::new();
    (0..cpus.min(CpuSet::MAX_CPU)).for_each(|cpu| set.set(cpu));
    let pin = move || Ok(sched_setaffinity(None, &set)?);
    // SAFETY: the closure makes one system call; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(pin) };
}

impl Process {
    /// Starts `command`; `what` names it in errors. It is killed when the calling thread ends, even if nothing can be
    /// cleaned up.
    #[expect(unsafe_code, reason = "pre_exec runs code between fork and exec")]
    pub(super) fn start(mut command: Command, what: &str) -> Result<Self, LabError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let die_with_us = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
        // SAFETY: the closure makes one system call, prctl; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(die_with_us) };
        let started = command.spawn();
        let mut child = started.map_err(|error| LabError::Process {
            what: what.into(),
            problem: format!("can't start {}: {error}", command.get_program().display()),
            output: String::new(),
        })?;
        let (lines, stderr) = (child.stdout.take(), child.stderr.take());
        let (lines, (stderr, stderr_closed)) = (read_lines(lines), gather(stderr));
        Ok(Self { what: what.into(), child, lines, stderr, stderr_closed })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to stderr so far.
    pub(super) fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it writes a line to stdout that contains `text`.
    pub(super) fn wait_for_line(&mut self, text: &str, within: Duration) -> Result<(), LabError> {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return Ok(()),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.failed(format!("did not say {text:?} within {within:?}")));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.wait(within)?;
                    return Err(self.failed(format!("ended before it said {text:?}")));
                }
            }
        }
    }

    /// Waits for its end and for all its output.
    pub(super) fn finish(mut self, within: Duration) -> Result<Finished, LabError> {
        let deadline = Instant::now() + within;
        let mut stdout = String::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    stdout.push_str(&line);
                    stdout.push('\n');
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.failed(format!("did not end within {within:?}")));
                }
            }
        }
        let exit_code = self.wait(deadline.saturating_duration_since(Instant::now()))?;
        Ok(Finished { exit_code, stdout, stderr: self.stderr() })
    }

    /// Asks it to stop, and waits until it has.
    pub(super) fn stop(mut self, within: Duration) -> Result<(), LabError> {
        // A child that nobody has waited for keeps its number, so this can hit no other process.
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM)
            .map_err(|errno| self.failed(format!("can't be asked to stop: {errno}")))?;
        self.wait(within).map(drop)
    }

    /// Waits for its end; returns its exit code, unless a signal ended it.
    fn wait(&mut self, within: Duration) -> Result<Option<i32>, LabError> {
        let ended = poll_end(&self.child, within)
            .map_err(|errno| self.failed(format!("can't be waited for: {errno}")))?;
        if !ended {
            return Err(self.failed(format!("did not end within {within:?}")));
        }
        let status = self.child.wait();
        // Its last output may still be in the pipe; a grandchild may keep the pipe open for ever.
        let _ = self.stderr_closed.recv_timeout(Duration::from_secs(1));
        let status =
            status.map_err(|error| self.failed(format!("can't be waited for: {error}")))?;
        Ok(status.code())
    }

    fn failed(&self, problem: String) -> LabError {
        let output = quoted("it said", &self.stderr());
        LabError::Process { what: self.what.clone(), problem, output }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has already ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Output for an error's text, or nothing if there is none.
pub(super) fn quoted(who: &str, output: &str) -> String {
    let output = output.trim_end();
    if output.is_empty() { String::new() } else { format!("; {who}:\n{output}") }
}

fn poll_end(child: &Child, within: Duration) -> rustix::io::Result<bool> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos() as _ };
        let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
        match poll(&mut ended, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(|ready| ready > 0),
        }
    }
}

fn read_lines(stdout: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (to, lines) = channel();
    if let Some(stdout) = stdout {
        thread::spawn(move || {
            let read = BufReader::new(stdout).lines().map_while(Result::ok);
            // Nobody listens any longer once the process was given up.
            read.map(|line| to.send(line)).take_while(Result::is_ok).for_each(drop);
        });
    }
    lines
}

fn gather(stderr: Option<impl Read + Send + 'static>) -> (Arc<Mutex<String>>, Receiver<()>) {
    let text = Arc::new(Mutex::new(String::new()));
    let (open, closed) = channel();
    if let Some(stderr) = stderr {
        let text = text.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
                text.push_str(&line);
                text.push('\n');
            }
            drop(open);
        });
    }
    (text, closed)
}
