//! A far end that says nothing for a while, or nothing more: what this end knows is not lost.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use goodput_model::{Known, Record};

use crate::common::{Home, Server};

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
    let way = &record.result.directions[0];
    assert!(way.sent_bytes.value().is_some_and(|bytes| *bytes > 0), "{way:?}");
    assert!(matches!(way.received_bytes, Known::Missing(_)), "{way:?}");
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
    let way = &record.result.directions[0];
    assert_eq!(way.received_bytes.value(), way.sent_bytes.value(), "all of it came");
}
