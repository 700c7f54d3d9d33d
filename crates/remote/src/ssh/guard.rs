//! The session's view of the dead-man at the host.

use crate::command::Command;
use crate::error::RemoteError;

use super::session::Session;

/// The dead-man's script.
const DEAD_MAN: &str = include_str!("dead_man.sh");

/// Part of the command line of every dead-man process, by which a goodput there knows it.
pub(crate) const MARK: &str = goodput_settings::DEAD_MAN;

/// Seconds of silence after which the dead-man considers the session lost.
const PATIENCE_S: u32 = 30;

/// The line that the session runs whenever there is nothing else to do.
const BEAT: &str = "echo beat >&4\n";

/// Longest piece of a script in one line to the dead-man, bytes. Ticks come through the same pipe, where only writes
/// of up to 512 bytes are whole everywhere (`PIPE_BUF`, POSIX.1-2024 limits.h; FreeBSD's is 512).
const PIECE_BYTES: usize = 400;

/// How a dead-man is known at its host. The number alone would not do: another process gets it later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadManId {
    /// Its process id at the host.
    pub(crate) pid: u32,
    /// The word of its command line that no other session has; `None` in journals of earlier versions.
    pub(crate) mark: Option<String>,
}

impl DeadManId {
    /// What its command line has.
    pub(crate) fn word(&self) -> &str {
        self.mark.as_deref().unwrap_or(MARK)
    }
}

/// A dead-man that watches over a session.
#[derive(Debug, Clone)]
pub(crate) struct DeadMan {
    /// Its process at the host.
    pub(crate) id: DeadManId,
}

impl DeadMan {
    /// Starts the dead-man. From now on the end of `session` makes it put back what it is armed with.
    pub(crate) fn start(session: &mut Session) -> Result<Self, RemoteError> {
        // One line, like every request: printf(1) restores the line breaks of the script.
        let script = DEAD_MAN.replace('\\', r"\\").replace('\n', r"\n");
        let script = Command::new("printf", ["%b", &script]);
        session.send(&format!("guarded \"$({script})\" {PATIENCE_S}"));
        let words = session.answer("start the process that puts settings back")?;
        let pid = match &words[..] {
            [guard, pid] if guard == "guard" => pid.parse().ok(),
            _ => None,
        };
        let pid = pid.ok_or_else(|| unexpected(session, "start its guard", &words))?;
        session.keep_sending(BEAT);
        Ok(Self { id: DeadManId { pid, mark: Some(session.mark().to_owned()) } })
    }

    /// Arms put-back number `number` with `script`, replacing the earlier one. The dead-man has it when this returns.
    pub(crate) fn arm(
        &self,
        session: &mut Session,
        number: usize,
        script: &str,
    ) -> Result<(), RemoteError> {
        let mut rest = script;
        while rest.len() > PIECE_BYTES {
            let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            write_line(session, &format!("more {piece}"));
            rest = behind;
        }
        self.exchange(session, &format!("undo {number} {rest}"), "armed", number)
    }

    /// Makes the dead-man put back number `number` after some seconds, unless it is confirmed before.
    pub(crate) fn expect(
        &self,
        session: &mut Session,
        number: usize,
        seconds: u32,
    ) -> Result<(), RemoteError> {
        self.exchange(session, &format!("confirm {number} {seconds}"), "waiting", number)
    }

    /// Confirms number `number`. Returns whether that was in time; if not, it is put back already.
    pub(crate) fn confirm(
        &self,
        session: &mut Session,
        number: usize,
    ) -> Result<bool, RemoteError> {
        let said = self.exchange(session, &format!("confirmed {number}"), "confirmed", number);
        match said {
            Ok(()) => Ok(true),
            Err(RemoteError::Unexpected { words, .. }) if words == format!("late {number}") => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// From now on, the dead-man puts nothing back, and only keeps others away until the session ends. On an error it may have
    /// put back, or may still do so.
    pub(crate) fn release(&self, session: &mut Session) -> Result<(), RemoteError> {
        self.exchange(session, "bye", "released", 0)
    }

    fn exchange(
        &self,
        session: &mut Session,
        line: &str,
        answer: &str,
        number: usize,
    ) -> Result<(), RemoteError> {
        write_line(session, line);
        let words = session.answer("send a command to the process that puts settings back")?;
        match words == [answer, &number.to_string()] {
            true => Ok(()),
            false => Err(unexpected(session, answer, &words)),
        }
    }
}

/// Makes the host's shell write a line to the dead-man.
fn write_line(session: &mut Session, line: &str) {
    let print = Command::new("printf", [r"%s\n", line]);
    session.send(&format!("{print} >&4"));
}

fn unexpected(session: &Session, doing: &str, words: &[String]) -> RemoteError {
    use crate::shell::Shell;
    RemoteError::Unexpected {
        host: session.host().into(),
        doing: doing.into(),
        words: words.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::Shell;
    use goodput_testing::wait_for;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process;

    /// A file for a host's setting, and a dead-man armed to write `original` into it.
    struct Scene {
        folder: tempfile::TempDir,
        session: Session,
        dead_man: DeadMan,
    }

    impl Scene {
        fn new(shell: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let mut session = match shell {
                [one] => Session::with_shell([one]),
                [one, two, ..] => Session::with_shell([one, two]),
                [] => unreachable!("a shell has a name"),
            }
            .unwrap();
            let dead_man = DeadMan::start(&mut session).unwrap();
            let mut scene = Self { folder, session, dead_man };
            std::fs::write(scene.file("value"), "original").unwrap();
            let script = scene.script("original");
            scene.dead_man.arm(&mut scene.session, 1, &script).unwrap();
            std::fs::write(scene.file("value"), "ours").unwrap();
            scene
        }

        fn file(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn script(&self, text: &str) -> String {
            format!("[ $phase = judge ] || printf '%s' {text} >'{}'", self.file("value").display())
        }

        fn comes_back(&self) {
            let value = self.file("value");
            wait_for("the value to come back", || read(&value) == "original");
            wait_for("the dead-man to end", || is_over(self.dead_man.id.pid));
        }
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    /// An ended process has no command line any more, whether or not it was waited for.
    fn is_over(pid: u32) -> bool {
        std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().is_empty()
    }

    /// Tests end processes only by ids that they got from those processes.
    fn kill(pid: &str) {
        let status = process::Command::new("kill").args(["-9", pid.trim()]).status();
        assert!(status.unwrap().success());
    }

    #[test]
    fn whatever_ends_the_session_the_dead_man_puts_back() {
        for shell in [&["sh"][..], &["bash"], &["busybox", "sh"]] {
            let known = process::Command::new(shell[0]).arg("--help").output();
            if known.is_err() {
                continue;
            }
            let mut ended = Scene::new(shell);
            ended.session.end();
            ended.comes_back();
            let mut killed = Scene::new(shell);
            killed.session.cut();
            killed.comes_back();
            let mut inner = Scene::new(shell);
            let ppid = Command::new("sh", ["-c", "echo $PPID"]);
            let pid = inner.session.output(&ppid).unwrap();
            kill(&pid);
            inner.comes_back();
        }
    }

    #[test]
    fn a_released_one_puts_nothing_back() {
        let mut scene = Scene::new(&["sh"]);
        scene.dead_man.release(&mut scene.session).unwrap();
        assert!(scene.session.answers() && !is_over(scene.dead_man.id.pid), "it keeps others away");
        scene.session.end();
        wait_for("the dead-man to end", || is_over(scene.dead_man.id.pid));
        assert_eq!(read(&scene.file("value")), "ours");
        let mut scene = Scene::new(&["sh"]);
        scene.session.cut();
        assert!(scene.dead_man.release(&mut scene.session).is_err(), "nobody heard it");
        scene.comes_back();
    }

    #[test]
    fn what_is_not_confirmed_in_time_comes_back_at_once() {
        let mut scene = Scene::new(&["sh"]);
        scene.dead_man.expect(&mut scene.session, 1, 1).unwrap();
        let value = scene.file("value");
        wait_for("the value to come back", || read(&value) == "original");
        assert!(!scene.dead_man.confirm(&mut scene.session, 1).unwrap(), "it is too late");
        std::fs::write(&value, "came late").unwrap();
        assert!(
            scene.session.output(&Command::new("true", [""; 0])).is_ok(),
            "the session goes on"
        );
        scene.session.end();
        assert_eq!(read(&value), "original", "also what arrives after that");
        let mut scene = Scene::new(&["sh"]);
        scene.dead_man.expect(&mut scene.session, 1, 600).unwrap();
        assert!(scene.dead_man.confirm(&mut scene.session, 1).unwrap());
    }

    #[test]
    fn a_long_script_arrives_whole_between_ticks() {
        let mut scene = Scene::new(&["sh"]);
        let text = "a b  ä'$x".repeat(1000);
        let write = Command::new("printf", ["%s", &text]);
        let script = format!("[ $phase = judge ] || {write} >'{}'", scene.file("value").display());
        scene.dead_man.arm(&mut scene.session, 1, &script).unwrap();
        scene.session.end();
        assert_eq!(read(&scene.file("value")), text);
    }

    #[test]
    fn a_script_that_is_known_anew_waits_for_no_confirmation() {
        let mut scene = Scene::new(&["sh"]);
        scene.dead_man.expect(&mut scene.session, 1, 600).unwrap();
        scene.dead_man.arm(&mut scene.session, 1, ":").unwrap();
        assert!(!scene.dead_man.confirm(&mut scene.session, 1).unwrap(), "it waits for none");
    }

    #[test]
    fn silence_ends_the_session_and_puts_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("value");
        let mut session = process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut dead_man = process::Command::new("sh")
            .args(["-c", DEAD_MAN, MARK, "m1", "3"])
            .stdin(process::Stdio::piped())
            .stdout(process::Stdio::null())
            .spawn()
            .unwrap();
        let mut input = dead_man.stdin.take().unwrap();
        let mut send = |line: &str| writeln!(input, "{line}").unwrap();
        send(&format!("main {}", session.id()));
        send(&format!("undo 1 echo $phase first >>'{}'", file.display()));
        send(&format!("undo 2 echo $phase second >>'{}'", file.display()));
        ["tick", "tick", "beat", "tick", "tick"].iter().for_each(|line| send(line));
        assert!(
            session.try_wait().unwrap().is_none() && !file.exists(),
            "it was heard of meanwhile"
        );
        send("tick");
        assert!(dead_man.wait().unwrap().success());
        let said = "judge second\njudge first\nback second\nback first\n";
        assert_eq!(
            read(&file),
            said,
            "the last change goes first, and all judge before one writes"
        );
        assert!(!session.wait().unwrap().success(), "the session changes nothing more");
    }

    #[test]
    fn the_dead_man_is_found_by_its_command_line() {
        const PARENT: &str = "sed -n 's/^PPid:[^0-9]*//p' /proc/$1/status";
        let mut scene = Scene::new(&["sh"]);
        let pid = scene.dead_man.id.pid;
        let system = crate::systems::of(&mut scene.session).unwrap();
        let found = system.processes(&mut scene.session, MARK).unwrap();
        assert!(found.iter().any(|process| process.pid == pid && process.trusted), "{found:?}");
        let line = read(Path::new(&format!("/proc/{pid}/cmdline")));
        let namespace = std::fs::read_link("/proc/self/ns/net").unwrap();
        let parent =
            scene.session.output(&Command::new("sh", ["-c", PARENT, "sh", &pid.to_string()]));
        let mut last = line.trim_end_matches('\0').rsplit('\0');
        assert_eq!(last.next(), Some(parent.unwrap().trim()), "{line:?}");
        assert_eq!(last.next(), namespace.to_str(), "{line:?}");
    }
}
