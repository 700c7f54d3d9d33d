//! A far end that says nothing for a while, or nothing more: what this end knows is not lost.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use goodput_model::{Known, Record};

use crate::common::{Home, Server, stderr};

fn signal(name: &str, server: &Server) {
    let sent = Command::new("kill").args([name, &server.pid().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {name}");
}

/// A test that writes to a sink of the server, and the lines that it prints.
fn begun(home: &Home, server: &Server) -> (Child, impl Iterator<Item = String>) {
    let arguments = ["test", &server.address, "--no-store", "--json-stream", "--sink", "x"];
    // Slow, so that nothing is queued for long. Long, so that the server stands still before the end.
    let more = ["-t", "10", "--rate", "20mbit"];
    let mut command = home.goodput(&[&arguments[..], &more].concat());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let stdout: ChildStdout = child.stdout.take().expect("stdout is piped");
    (child, BufReader::new(stdout).lines().map_while(Result::ok))
}

/// On standard error, like what went wrong; the report only has that its numbers are a part.
#[test]
fn what_cut_a_test_short_is_said_once() {
    let home = Home::new();
    let mut server = Server::start(&home, &[]);
    let arguments = ["test", &server.address, "--no-store", "-t", "60", "--interval", "0.2"];
    let mut command = home.goodput(&arguments);
    let mut client =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut reader = BufReader::new(client.stdout.take().expect("stdout is piped"));
    let mut printed = String::new();
    // Two intervals, whenever their samples were taken.
    while printed.matches("bit/s\n").count() < 2 {
        assert!(reader.read_line(&mut printed).expect("it is text") > 0, "{printed}");
    }
    server.stop("-KILL");
    reader.read_to_string(&mut printed).expect("it is text");
    let output = client.wait_with_output().expect("it was a child");
    assert_eq!(output.status.code(), Some(2));
    let (said, whole) = (stderr(&output), printed + &stderr(&output));
    let causes = |text: &str| text.matches("cut short").count() + text.matches("no report").count();
    assert_eq!((causes(&said), causes(&whole)), (1, 1), "{whole}");
    assert!(whole.contains(", incomplete, "), "{whole}");
    let target = said.matches(&server.address).count();
    assert!(target <= 1, "the target is named once: {said}");
}

/// A server with sinks.
fn server(home: &Home) -> Server {
    let sinks = home.path().join("sinks");
    std::fs::create_dir(&sinks).expect("the directory is the test's own");
    crate::common::set_mode(&sinks, 0o777);
    Server::start(home, &["--sinks", sinks.to_str().expect("it has a plain name")])
}

fn record(lines: impl Iterator<Item = String>) -> Record {
    let last = lines.last().expect("the record is the last line");
    let line: serde_json::Value = serde_json::from_str(&last).expect("a line is JSON");
    serde_json::from_value(line["record"].clone()).expect("it is a record")
}

#[test]
fn a_far_end_that_never_reports_costs_its_half_only() {
    let home = Home::new();
    let mut server = server(&home);
    let (mut child, mut lines) = begun(&home, &server);
    assert!(lines.any(|line| line.contains("\"event\":\"interval\"")), "payload moves");
    signal("-STOP", &server);
    let record = record(lines);
    child.wait().expect("it was a child");
    signal("-CONT", &server);
    let why = record.incomplete.as_deref().unwrap_or_default();
    assert!(why.contains("no report"), "{why:?}");
    assert!(record.doubts.iter().any(|doubt| doubt.contains("no report")), "{:?}", record.doubts);
    let near = record.ends.near.value().expect("this end is known");
    assert!(near.samples.last().is_some_and(|last| last.sent_bytes > 0));
    let direction = &record.result.directions[0];
    assert!(direction.sent_bytes.value().is_some_and(|bytes| *bytes > 0), "{direction:?}");
    assert!(matches!(direction.received_bytes, Known::Missing(_)), "{direction:?}");
    assert!(!record.verdict.summary.is_empty());
    assert!(server.is_alive(), "it goes on once it may");
}

#[test]
fn a_report_that_comes_late_is_waited_for() {
    let home = Home::new();
    let server = server(&home);
    let (mut child, mut lines) = begun(&home, &server);
    assert!(lines.any(|line| line.contains("\"event\":\"interval\"")), "payload moves");
    signal("-STOP", &server);
    assert!(lines.any(|line| line.contains("\"event\":\"ended\"")), "this end is done");
    signal("-CONT", &server);
    let record = record(lines);
    assert!(child.wait().expect("it was a child").success());
    assert_eq!(record.incomplete, None);
    let direction = &record.result.directions[0];
    assert_eq!(direction.received_bytes.value(), direction.sent_bytes.value(), "all of it came");
}

/// Bytes have no end of their own on a path that carries nothing more.
#[test]
fn an_interrupt_waits_only_shortly_for_a_far_end_that_is_gone() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let arguments = ["test", &server.address, "--no-store", "--json-stream", "-n", "1T"];
    let mut command = home.goodput(&arguments);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let stdout: ChildStdout = child.stdout.take().expect("stdout is piped");
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("\"event\":\"interval\"")), "payload moves");
    signal("-STOP", &server);
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.is_ok_and(|status| status.success()));
    let record = record(lines);
    child.wait().expect("it was a child");
    signal("-CONT", &server);
    // Without an interrupt it is given up after a silence of 15 s, which is another reason.
    let why = record.incomplete.as_deref().unwrap_or_default();
    assert!(why.contains("no report within"), "{why:?}");
    assert!(record.doubts.iter().any(|doubt| doubt.contains("interrupted after")), "{record:?}");
    assert!(record.result.goodput_bits_per_s.0 > 0.0, "what is known is kept");
}
