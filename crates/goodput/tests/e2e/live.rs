//! Views on the whole terminal: of runs, of a server, of all connections. And what is printed where nobody could see them.

use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use goodput_testing::{in_namespace, wait_for};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Home, Server, stderr, stdout};
use crate::terminal::{
    LEAVES_OTHER_SCREEN, ROWS, gone_after, not_told_of_hang_ups, on_a_terminal, play, printed,
    with_keys,
};
use crate::transfer::Transfer;

/// A word of the last row of a run's view.
const FOOT: &str = "units";

/// Plays `steps` on the view of a command, and returns its exit code, what the view showed and what is printed after it.
fn played(command: &Command, foot: &str, steps: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let (mut command, terminal) = with_keys(command);
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let shown = play(terminal, foot, steps);
    let status = child.wait().expect("it was a child");
    let (view, after) = shown.rsplit_once(LEAVES_OTHER_SCREEN).expect("it was left");
    (status.code(), view.into(), after.into())
}

#[test]
fn a_run_has_the_whole_terminal_and_gives_it_back_with_the_usual_lines() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let test = home.goodput(&["test", &server.address, "--live", "--time", "60s", "--no-store"]);
    let (code, view, after) = played(&test, FOOT, &[("bit/s", "q")]);
    assert_eq!(code, Some(2), "it was interrupted");
    assert!(!view.contains("connected  "), "lines are held back: {view}");
    assert!(after.contains("connected   ") && after.contains("interrupted after"), "{after}");
}

#[test]
fn keys_show_the_help_other_units_one_flow_and_a_picture_that_stands_still() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let words = ["test", &server.address, "--live", "--time", "60s", "--no-store"];
    let test = home.goodput(&[&words[..], &["--flows", "2"]].concat());
    let steps = [
        ("bit/s", "h"),
        ("Ctrl-C", "h"),
        ("bit/s", "u"),
        ("B/s", " "),
        ("paused", "\x1b[B"),
        ("far,", " "),
        ("far,", "\x1b[B"),
        ("far,", "q"),
    ];
    let (code, view, after) = played(&test, FOOT, &steps);
    assert_eq!(code, Some(2), "it was interrupted");
    assert!(after.contains("interrupted after"), "{after}");
    // The last row of each size has its first column (CUP, ECMA-48, 8.3.21).
    assert!(ROWS.iter().all(|rows| view.contains(&format!("\x1b[{rows};1H"))), "{view}");
}

#[test]
fn a_comparison_and_tuning_show_how_far_they_are_and_end_with_their_report() {
    // Elsewhere another run may be at work.
    in_namespace(|| {
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.is_ok_and(|status| status.success()));
        let home = Home::new();
        let server = Server::start(&home, &[]);
        let compare = ["compare", &server.address, "chunk=64K,32K", "-n", "1M"];
        let tune = ["tune", &server.address, "-t", "60"];
        for (words, word) in [(&compare[..], "block"), (&tune[..], "measures")] {
            let command = home.goodput(&[words, &["--live", "--no-store"]].concat());
            let (_, _, after) = played(&command, FOOT, &[(word, "q")]);
            assert!(after.contains("interrupted"), "{words:?}: {after}");
        }
    });
}

#[test]
fn all_connections_have_the_whole_terminal_and_keys() {
    let transfer = Transfer::start(Duration::from_millis(5));
    let home = Home::new();
    let top = home.goodput(&["top", "--every", "300ms", "--port", &transfer.port.to_string()]);
    let steps = [
        ("limited", "s"),
        ("share", " "),
        ("paused", " "),
        ("share", "s"),
        ("limited", "h"),
        ("segments", "h"),
        ("limited", "/"),
        ("keeps", "none\r"),
        ("none", "q"),
    ];
    let (code, ..) = played(&top, "filter", &steps);
    assert_eq!(code, Some(0));
}

#[test]
fn views_end_with_their_terminal_and_a_run_still_has_its_result() {
    let transfer = Transfer::start(Duration::from_millis(5));
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let top = home.goodput(&["top", "--every", "300ms", "--port", &transfer.port.to_string()]);
    let test = home.goodput(&["test", &server.address, "--live", "--time", "2s"]);
    for (command, foot) in [(top, "filter"), (test, FOOT)] {
        let (mut command, terminal) = with_keys(&not_told_of_hang_ups(&command));
        let mut child = command.spawn().expect("it starts");
        drop(command);
        gone_after(foot, terminal);
        wait_for("a program to end whose terminal is gone", || {
            child.try_wait().expect("it was a child").is_some()
        });
    }
    let last = home.run(&["history", "last", "--json"]);
    assert!(stdout(&last).contains("goodput_bits_per_s"), "{}", stderr(&last));
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
    for (name, value) in [("TERM", "dumb"), ("NO_COLOR", "1")] {
        let terminal = on_a_terminal(command.stderr(Stdio::null()));
        let plain = command.env(name, value).spawn();
        command.stdout(Stdio::null()).env_remove(name);
        let shown = printed(terminal, |_| {});
        plain.expect("it starts").wait().expect("it was a child");
        assert!(shown.contains("connected   ") && !shown.contains("?1049"), "{name}: {shown}");
    }
}

/// A server on a terminal of its own, which has keys too, and the other side of that.
fn server_on_a_terminal(home: &Home, more: &[(&str, &str)]) -> (Child, File) {
    let command = home.goodput(&[
        "serve",
        "--bind",
        "127.0.0.1",
        "--port",
        "0",
        "--live",
        "--max-duration",
        "9s",
    ]);
    let (mut command, terminal) = with_keys(&command);
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
