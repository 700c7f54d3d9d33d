//! The user's program that hears of changes. No shell: far ends choose some of the words.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use anstream::adapter::strip_str;
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::os_error::without_numbers;
use crate::report::watch::{self, Event};
use crate::screen;

/// How long the program may run.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// The program, and its present run.
pub struct Program {
    path: PathBuf,
    running: Option<JoinHandle<()>>,
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
        Ok(Self { path: path.into(), running: None })
    }

    /// Starts it with an event, after its last run has ended. Does not wait for its end.
    pub fn run(&mut self, name: &str, event: &Event) -> Result<()> {
        let shown = self.path.display().to_string();
        if self.running.as_ref().is_some_and(|running| !running.is_finished()) {
            bail!("{shown} still runs for the last event; it was not run for this one ({name})");
        }
        let target = event.target();
        let text = plain_text(event);
        let mut child = Command::new(&self.path)
            .env("GOODPUT_EVENT", name)
            .env("GOODPUT_TARGET", target.replace('\0', "\u{fffd}"))
            .env("GOODPUT_TEXT", text.trim_end())
            .stdin(input(event)?)
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("can't run {shown} (--notify)"))?;
        let tend = move || tend(&mut child, &shown);
        let thread = std::thread::Builder::new().name("notify".into()).spawn(tend);
        self.running = Some(thread.context("can't start a thread for --notify")?);
        Ok(())
    }

    /// Waits for its end.
    pub fn wait(&mut self) {
        if let Some(running) = self.running.take() {
            // A panic of the thread was printed.
            let _ = running.join();
        }
    }
}

/// What goodput prints of the event, as people read it. What a variable can't hold is replaced: a NUL would keep the program
/// from starting.
fn plain_text(event: &Event) -> String {
    let text = strip_str(&watch::text(event)).to_string();
    without_numbers(&text).replace('\0', "\u{fffd}")
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
fn input(event: &Event) -> Result<File> {
    let mut file = tempfile::tempfile().context("can't make a temporary file for --notify")?;
    serde_json::to_writer(&mut file, event)?;
    file.write_all(b"\n")?;
    file.rewind()?;
    Ok(file)
}

/// Waits until the program ends, and ends it when it takes too long.
fn tend(child: &mut Child, shown: &str) {
    let has_ended = wait(child).unwrap_or_else(|why| {
        tracing::debug!("can't wait for {shown} with a limit: {why}");
        true
    });
    if !has_ended {
        screen::say(format_args!("goodput: {shown} (--notify) ran for a minute and was ended"));
        let _ = child.kill();
    }
    match child.wait() {
        Ok(status) if status.success() || !has_ended => {}
        Ok(status) => screen::say(format_args!("goodput: {shown} (--notify): {status}")),
        Err(why) => screen::say(format_args!("goodput: can't wait for {shown} (--notify): {why}")),
    }
}

/// Whether the program ends in time.
fn wait(child: &Child) -> rustix::io::Result<bool> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut ends = [PollFd::new(&process, PollFlags::IN)];
    let ready = retry_on_intr(|| poll(&mut ends, Some(&PATIENCE)))?;
    Ok(ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Bytes;
    use std::os::unix::fs::PermissionsExt;

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
        std::fs::write(&script, lines).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut program = Program::new(&script).unwrap();
        program.run("back", &back("$(touch x); `id`\0")).unwrap();
        program.wait();
        let said = std::fs::read_to_string(out).unwrap();
        let (first, json) = said.split_once('\n').unwrap();
        assert_eq!(first, "back|$(touch x); `id`\u{fffd}");
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(json["event"], "back");
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

    #[test]
    fn a_second_event_does_not_wait_for_a_program_that_still_runs() {
        let folder = tempfile::tempdir().unwrap();
        let (script, go) = (folder.path().join("slow"), folder.path().join("go"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &go, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
        std::fs::write(&script, format!("#!/bin/sh\ncat {} > /dev/null", go.display())).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut program = Program::new(&script).unwrap();
        program.run("back", &back("nas")).unwrap();
        let why = program.run("back", &back("nas")).unwrap_err().to_string();
        assert!(why.contains("still runs"), "{why}");
        std::fs::write(&go, "").unwrap();
        program.wait();
        assert!(program.run("back", &back("nas")).is_ok());
        std::fs::write(&go, "").unwrap();
        program.wait();
    }
}
