//! `goodput test --attach`: transfers of this very test, seen from outside.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use goodput_model::{EndName, Kind, Known, Record};

use crate::common::{Home, found, record, stderr, stdout};
use crate::transfer::Transfer;

fn attach(to: &str, length: &str) -> Record {
    let home = Home::new();
    record(&home.run(&["test", "--attach", to, "-t", length, "--json", "--no-store"]))
}

#[test]
fn credentials_in_the_environment_are_no_option_of_this_run() {
    let home = Home::new();
    let mut attach = home.goodput(&["test", "--attach", "4194305", "--no-store"]);
    attach.env("GOODPUT_TOKEN_FILE", "/nonexistent").env("GOODPUT_KEY_FILE", "/nonexistent");
    let text = stderr(&attach.output().expect("the program can be started"));
    assert!(text.contains("no process 4194305"), "{text}");
}

#[test]
fn a_writer_that_pauses_is_the_limit_and_the_senders_end_is_the_near_one() {
    let transfer = Transfer::start(Duration::from_millis(5));
    let record = attach(&format!("port:{}", transfer.port), "1.5");
    assert_eq!(record.kind, Kind::Attach);
    assert_eq!(record.target, format!("127.0.0.1:{}", transfer.port));
    assert_eq!(record.result.directions[0].sender, EndName::Near);
    assert!(found(&record, "sender-application"), "{:?} {:?}", record.findings, record.undecided);
    let near = record.ends.near.value().unwrap();
    let name = near.after.text("process.name").unwrap();
    assert!(!name.is_empty() && record.doubts[0].contains(name), "{:?}", record.doubts);
    let flow = &near.samples.last().unwrap().flows[0];
    assert!(flow.blocked_us.value().is_none() && flow.cpu_us.value().is_some(), "{flow:?}");
    assert!(matches!(record.ends.far, Known::Missing(_)));
}

#[test]
fn a_transfer_that_ends_is_said_to_have_ended() {
    let transfer = Transfer::start(Duration::from_millis(2));
    let home = Home::new();
    let to = format!(":{}", transfer.client_port);
    let mut child = home
        .goodput(&["test", "--attach", &to, "--no-store", "-t", "60", "-i", "0.5"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("bit/s")));
    drop(transfer);
    let rest: String = lines.map(Result::unwrap).collect();
    assert!(rest.contains("the transfer ended after"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn text_says_what_is_watched_and_the_history_keeps_it() {
    let home = Home::new();
    let transfer = Transfer::start(Duration::from_millis(5));
    let output = home.run(&["test", "--attach", &format!("port:{}", transfer.port), "-t", "1"]);
    let text = stdout(&output);
    assert!(text.contains("watches 127.0.0.1:") && text.contains("acknowledged"), "{text}");
    assert!(!text.contains("prove it"), "{text}");
    let shown = stdout(&home.run(&["history", "1"]));
    assert!(shown.contains("acknowledged"), "{shown}");
}

#[test]
fn an_idle_connection_and_a_port_without_one_are_distinguished() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = format!("port:{port}");
    let none = home.run(&["test", "--attach", &to, "--no-store"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("has no TCP connection"), "{}", stderr(&none));
    let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let idle = home.run(&["test", "--attach", &to, "--no-store"]);
    assert_eq!(idle.status.code(), Some(2));
    assert!(stderr(&idle).contains("is idle"), "{}", stderr(&idle));
}

#[test]
fn what_names_no_transfer_is_refused_in_words() {
    let home = Home::new();
    for (arguments, words) in [
        (&["--attach", "4194305"][..], "no process 4194305"),
        (&["--attach", "pid:4194305"], "still runs"),
        (&["--attach", "eth0"], "neither a process id nor a port"),
        (&["--attach", "5201", "--udp"], "can't be used with"),
        (&["localhost", "--attach", "5201"], "can't be used with"),
        (&["--attach", "5201", "--probe"], "can't be used with"),
        (&["localhost", "--probe", "--both"], "can't be used with"),
        (&[], "is missing"),
    ] {
        let output = home.run(&[&["test", "--no-store"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
}
