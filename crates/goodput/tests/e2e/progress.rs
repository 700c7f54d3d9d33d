//! The line at the bottom of a terminal that shows how far a comparison, a search or tuning is.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use goodput_testing::in_namespace;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::common::{Home, Server, stdout};

/// Erases a line, which only a terminal is sent (ECMA-48, 8.3.41).
const ERASE: &str = "\x1b[2K";

/// A command whose standard output is a terminal, and the other side of that.
fn on_a_terminal(command: &mut Command) -> File {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("it is ours");
    let path = ptsname(&terminal, Vec::new()).expect("it has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let own = rustix::fs::open(&*path, flags, Mode::empty()).expect("it can be opened");
    command.stdout(Stdio::from(own)).env("TERM", "xterm").env_remove("NO_COLOR");
    File::from(terminal)
}

/// What a program prints there until it ends, and shows it to `sees` each time.
fn printed(mut terminal: File, mut sees: impl FnMut(&str)) -> String {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    // When nobody has the other side any more, reading fails with EIO.
    while let Ok(length @ 1..) = terminal.read(&mut part) {
        all.extend(&part[..length]);
        sees(&String::from_utf8_lossy(&all));
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn compare<'a>(server: &'a Server, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["compare", &server.address, "chunk=64K,32K", "-n", "1M", "--no-store"];
    [&words[..], more].concat()
}

#[test]
fn a_terminal_shows_how_far_a_comparison_is_and_a_pipe_does_not() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut command = home.goodput(&compare(&server, &["--max-time", "60"]));
    let terminal = on_a_terminal(command.stderr(Stdio::null()));
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let pid = Pid::from_child(&child);
    let mut is_seen = false;
    let shown = printed(terminal, |shown| {
        let has = |words| shown.contains(words);
        if !is_seen && has("block 1 of 6") && has("runs 64K") && has("block 2 of ") {
            is_seen = true;
            kill_process(pid, Signal::INT).expect("it runs");
        }
    });
    child.wait().expect("it was a child");
    assert!(is_seen, "{shown}");
    let (_, report) = shown.rsplit_once(ERASE).expect("the line is drawn again");
    assert!(report.contains("it was interrupted"), "{report}");
    assert!(!report.contains("block "), "it is gone: {report}");
    for more in [&[][..], &["--json"], &["--json-stream"]] {
        let piped = home
            .goodput(&compare(&server, &[&["--max-time", "2"], more].concat()))
            .output()
            .expect("it starts");
        let text = stdout(&piped);
        assert!(!text.contains(ERASE) && !text.contains("block 1 of 6"), "{more:?}: {text}");
    }
}

/// A terminal is no reason for anything but JSON there.
#[test]
fn a_terminal_shows_nothing_beside_json() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut command = home.goodput(&compare(&server, &["--max-time", "4", "--json"]));
    let terminal = on_a_terminal(command.stderr(Stdio::null()));
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let shown = printed(terminal, |_| {});
    child.wait().expect("it was a child");
    assert!(shown.starts_with('{') && !shown.contains(ERASE), "{shown}");
}

/// While the start is measured, which goes on whatever limits it. The lab has the same later, while a change is tried. In a
/// namespace of its own: elsewhere another run may be at work.
#[test]
fn tuning_that_is_interrupted_reports_what_it_knows() {
    in_namespace(|| {
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.is_ok_and(|status| status.success()));
        interrupt_tuning();
    });
}

/// Whether more than words went over the loopback device of a process (proc_pid_net(5)).
fn payload_moves(pid: u32) -> bool {
    const MORE_THAN_WORDS_BYTES: u64 = 10_000_000;
    let devices = std::fs::read_to_string(format!("/proc/{pid}/net/dev")).expect("it runs");
    let received = devices.lines().find_map(|line| line.trim().strip_prefix("lo:"));
    let received = received.and_then(|counts| counts.split_whitespace().next());
    received
        .and_then(|bytes| bytes.parse().ok())
        .is_some_and(|bytes: u64| bytes > MORE_THAN_WORDS_BYTES)
}

fn interrupt_tuning() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let words = ["tune", &server.address, "-t", "60", "--no-store"];
    let mut command = home.goodput(&words);
    let terminal = on_a_terminal(command.stderr(Stdio::null()));
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let pid = Pid::from_child(&child);
    let mut is_interrupted = false;
    let shown = printed(terminal, |shown| {
        // The line is drawn again each second.
        if !is_interrupted && shown.contains("░ measures the start") && payload_moves(child.id())
        {
            is_interrupted = true;
            kill_process(pid, Signal::INT).expect("it runs");
        }
    });
    let status = child.wait().expect("it was a child");
    assert!(is_interrupted, "nothing was measured: {shown}");
    assert_eq!(status.code(), Some(2), "{shown}");
    let (_, report) = shown.rsplit_once(ERASE).expect("the line is drawn again");
    for words in ["start", "stopped", "it was interrupted"] {
        assert!(report.contains(words), "no {words:?} in {report}");
    }
}

/// Leaves the other screen of a terminal (DECSET 1049, xterm's control sequences).
const LEAVES_OTHER_SCREEN: &str = "\x1b[?1049l";

#[test]
fn a_run_has_the_whole_terminal_and_gives_it_back_with_the_usual_lines() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut command =
        home.goodput(&["test", &server.address, "--live", "--time", "60s", "--no-store"]);
    let terminal = on_a_terminal(command.stderr(Stdio::null()));
    let path = ptsname(&terminal, Vec::new()).expect("it has a name");
    let own = rustix::fs::open(&*path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
    command.stdin(Stdio::from(own.expect("it can be opened")));
    let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("it has a size");
    let mut keys = terminal.try_clone().expect("it can be shared");
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let mut is_seen = false;
    let shown = printed(terminal, |shown| {
        // Only changed cells are sent, so longer texts may come in parts.
        if !is_seen && shown.contains("bit/s") {
            is_seen = true;
            keys.write_all(b"q").expect("it takes keys");
        }
    });
    assert_eq!(child.wait().expect("it was a child").code(), Some(2), "it was interrupted");
    let (view, after) = shown.rsplit_once(LEAVES_OTHER_SCREEN).expect("it was left");
    assert!(is_seen && !view.contains("connected  "), "lines are held back: {view}");
    assert!(after.contains("connected   ") && after.contains("interrupted after"), "{after}");
}

/// Nobody could see it there.
#[test]
fn without_a_terminal_or_its_control_sequences_a_run_is_shown_as_lines() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut command =
        home.goodput(&["test", &server.address, "--live", "--bytes", "1M", "--no-store"]);
    let piped = stdout(&command.output().expect("it starts"));
    assert!(piped.contains("connected   ") && !piped.contains('\x1b'), "{piped}");
    let terminal = on_a_terminal(command.stderr(Stdio::null()).env("TERM", "dumb"));
    let dumb = command.env("TERM", "dumb").spawn();
    drop(command);
    let shown = printed(terminal, |_| {});
    dumb.expect("it starts").wait().expect("it was a child");
    assert!(shown.contains("connected   ") && !shown.contains("?1049"), "{shown}");
}

/// A server on a terminal of its own, which has keys too, and the other side of that.
fn server_on_a_terminal(home: &Home, more: &[(&str, &str)]) -> (Child, File) {
    let mut command = home.goodput(&[
        "serve",
        "--bind",
        "127.0.0.1",
        "--port",
        "0",
        "--live",
        "--max-duration",
        "9s",
    ]);
    let terminal = on_a_terminal(command.stderr(Stdio::null()));
    let path = ptsname(&terminal, Vec::new()).expect("it has a name");
    let own = rustix::fs::open(&*path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
    command.stdin(Stdio::from(own.expect("it can be opened")));
    let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("it has a size");
    let child = command.envs(more.iter().copied()).spawn().expect("it starts");
    (child, terminal)
}

/// Where the server listens, once it has said so.
fn listens_at(shown: &str) -> Option<String> {
    let (_, rest) = shown.split_once("listening on ")?;
    Some(rest.split_once(['\r', '\n'])?.0.into())
}

#[test]
fn a_server_has_the_whole_terminal_and_shows_who_measures_and_who_is_refused() {
    let home = Home::new();
    let (mut child, terminal) = server_on_a_terminal(&home, &[]);
    let mut keys = terminal.try_clone().expect("it can be shared");
    let measured = |address: &str, length: &[&str]| {
        home.run(&[&["test", address, "--no-store"], length].concat());
    };
    let mut stage = 0;
    let shown = printed(terminal, |shown| match stage {
        0 => {
            let Some(address) = listens_at(shown).filter(|_| shown.contains("measuring")) else {
                return;
            };
            measured(&address, &["-n", "1M"]);
            measured(&address, &["-t", "10s"]);
            stage = 1;
        }
        // Only changed cells are sent, so longer texts may come in parts.
        1 if shown.contains("received") && shown.contains("refused:") => {
            keys.write_all(b"q").expect("it takes keys");
            stage = 2;
        }
        _ => {}
    });
    assert_eq!(child.wait().expect("it was a child").code(), Some(0), "{shown}");
    assert_eq!(stage, 2, "{shown}");
    assert!(shown.contains(LEAVES_OTHER_SCREEN), "{shown}");
}

/// Nobody could see it there.
#[test]
fn without_a_terminal_or_its_control_sequences_a_server_is_shown_as_lines() {
    let home = Home::new();
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (mut child, terminal) = server_on_a_terminal(&home, &[variable]);
        let pid = Pid::from_child(&child);
        let mut is_measured = false;
        let shown = printed(terminal, |shown| {
            if let Some(address) = listens_at(shown).filter(|_| !is_measured) {
                home.run(&["test", &address, "-n", "1M", "--no-store"]);
                is_measured = true;
            }
            if shown.contains("received") {
                kill_process(pid, Signal::INT).expect("it runs");
            }
        });
        child.wait().expect("it was a child");
        let began = shown.contains("127.0.0.1:") && shown.contains("to here, TCP, 1 flow, goodput");
        assert!(began && shown.contains(": received ") && !shown.contains("?1049"), "{shown}");
    }
}
