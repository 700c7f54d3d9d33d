//! The line at the bottom of a terminal that shows how far a comparison, a search or tuning is.

use std::process::{Command, Stdio};

use goodput_testing::in_namespace;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Home, Server, stdout};
use crate::terminal::{on_a_terminal, printed};

/// Erases a line, which only a terminal is sent (ECMA-48, 8.3.41).
const ERASE: &str = "\x1b[2K";

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
    assert!(
        !report.contains("block 1 of ") && !report.contains("block 2 of "),
        "it is gone: {report}"
    );
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
