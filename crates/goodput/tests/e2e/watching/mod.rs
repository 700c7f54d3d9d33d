//! `goodput watch`: one test, a gap, and its end.

mod budget;
mod kept;
mod metrics;
mod process;
mod told;

use std::process::Stdio;

use goodput_store::Store;

use crate::common::{Home, Server, stderr, stdout};
pub use process::Watch;
pub use told::plant_a_change;

/// A test that costs little.
pub const SMALL: [&str; 2] = ["-n", "1M"];

pub fn once(home: &Home, targets: &[&str], options: &[&str]) -> std::process::Output {
    home.run(&[&["watch", "--once"][..], targets, &SMALL, options].concat())
}

fn history(home: &Home) -> Store {
    Store::open(&home.path().join("goodput/history.db")).expect("the history can be opened")
}

#[test]
fn a_test_is_kept_like_any_other() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let output = once(&home, &[&server.address], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains(&server.address), "{}", stdout(&output));
    let shown = home.run(&["history", "1"]);
    assert!(stdout(&shown).contains("goodput"), "{}", stderr(&shown));
    let listed = stdout(&home.run(&["history", "--kind", "watch"])).to_string();
    assert!(listed.contains(&server.address), "{listed}");
    let [series] = &history(&home).series().unwrap()[..] else { panic!("one series") };
    assert_eq!(history(&home).tests_of(&series.target, &series.plan, 10).unwrap().len(), 1);
}

#[test]
fn times_are_those_of_this_hosts_zone_and_the_history_has_utc() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let arguments = [&["watch", "--once", &server.address][..], &SMALL].concat();
    let output = home.goodput(&arguments).env("TZ", "XYZ-14").output().unwrap();
    let text = stdout(&output);
    let (local, _) = text.split_once(" XYZ  ").unwrap_or_else(|| panic!("{text}"));
    let started = history(&home).list(1).unwrap().remove(0).started;
    let utc: jiff::Timestamp = started.parse().unwrap();
    let there = jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", local).unwrap();
    let there = there.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
    let ahead_s = there.as_second() - utc.as_second();
    assert_eq!(ahead_s, 14 * 3600, "{local} and {started}");
}

#[test]
fn tests_that_are_made_in_another_way_are_a_series_of_their_own_and_this_is_said_once() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let said = |options: &[&str]| {
        let output = once(&home, &[&server.address], options);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).contains("made in another way than before")
    };
    assert!(!said(&[]));
    let output = once(&home, &[&server.address], &["--json", "--chunk", "64K", "--sndbuf", "1M"]);
    let event: serde_json::Value =
        serde_json::from_str(stdout(&output).lines().next().unwrap()).unwrap();
    assert_eq!(event["event"], "made-in-another-way", "{event}");
    let what: Vec<_> = (0..2).map(|n| event["test"][n]["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["option chunk_bytes", "option socket.sndbuf_bytes"]);
    assert!(!said(&["--chunk", "64K", "--sndbuf", "1M"]), "it was said");
    assert!(!said(&[]), "those before are known");
    let series = history(&home).series().unwrap();
    let tests = |series: &goodput_store::Series| {
        history(&home).tests_of(&series.target, &series.plan, 10).unwrap().len()
    };
    assert_eq!(series.iter().map(tests).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn a_target_that_is_gone_is_a_gap_and_the_others_are_tested() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (_taken, gone) = crate::common::refusing();
    let output = once(&home, &[&gone.to_string(), &server.address], &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stdout(&output).contains("no result"), "{}", stdout(&output));
    assert_eq!(history(&home).list(10).unwrap().len(), 1);
}

#[test]
fn a_test_beside_another_measurement_of_this_host_says_so() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let long = ["test", &server.address, "--rate", "1mbit", "-t", "60"];
    let mut other = home.goodput(&long).stdout(Stdio::null()).spawn().unwrap();
    wait_for_payload(&home);
    let output = once(&home, &[&server.address], &[]);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(stdout(&output).contains("  beside goodput test "), "{}", stdout(&output));
    let alone = once(&home, &[&server.address], &[]);
    assert!(!stdout(&alone).contains("beside"), "{}", stdout(&alone));
}

/// Waits until the payload of a test moves that others can follow.
fn wait_for_payload(home: &Home) {
    wait_for_event(home, "test", "began");
}

/// Waits until something happened in a run of this command that others can follow.
fn wait_for_event(home: &Home, command: &str, event: &str) {
    let words = [format!(r#""command":"{command}""#), format!(r#""event":"{event}""#)];
    let has_happened = |file: std::io::Result<std::fs::DirEntry>| {
        let text = file.and_then(|file| std::fs::read_to_string(file.path()));
        text.is_ok_and(|text| words.iter().all(|words| text.contains(words)))
    };
    goodput_testing::wait_for(&format!("{event} in {command}"), || {
        let files = std::fs::read_dir(home.path().join("state/running"));
        files.is_ok_and(|mut files| files.any(has_happened))
    });
}

/// The server takes one at a time: what the watch waited for is no neighbour of its test.
#[test]
fn a_test_that_waited_for_its_turn_at_the_server_measured_alone() {
    let home = Home::new();
    let server = Server::start(&home, &["--exclusive=queue"]);
    let long = ["test", &server.address, "--rate", "1mbit", "-t", "60"];
    let mut other = home.goodput(&long).stdout(Stdio::null()).spawn().unwrap();
    wait_for_payload(&home);
    let arguments = [&["watch", "--once", &server.address][..], &SMALL].concat();
    let watch = home.goodput(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    wait_for_event(&home, "watch", "connected");
    // The server sees that the other test has ended when all of it is gone, also what it told of itself.
    server.while_stopped(|| {
        other.kill().unwrap();
        other.wait().unwrap();
    });
    let output = watch.wait_with_output().unwrap();
    let said = stdout(&output);
    assert!(said.contains("bit/s") && !said.contains("beside"), "{said}");
}

/// A small burst of datagrams has the rate of this host's queues, and not that of the path.
#[test]
fn datagrams_without_a_rate_are_refused_before_anything_is_sent() {
    let home = Home::new();
    let (_taken, target) = crate::common::refusing();
    let output = home.goodput(&["watch", "--once", &target.to_string(), "-u"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("--udp needs --rate"), "{}", stderr(&output));
}

#[test]
fn a_target_that_is_named_twice_is_tested_once_and_no_line_is_broken_in_a_file() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (_taken, gone) = crate::common::refusing();
    let gone = gone.to_string();
    let twice = ["watch", "--once", &server.address, &server.address, &gone, SMALL[0], SMALL[1]];
    let output = home.goodput(&twice).env_remove("COLUMNS").output().unwrap();
    let lines: Vec<_> = stdout(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].len() > 80, "{lines:?}");
    assert!(stderr(&output).contains("is named twice, and tested once"), "{}", stderr(&output));
}

#[test]
fn every_target_has_its_turns_until_a_signal_comes() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (_taken, gone) = crate::common::refusing();
    let gone = gone.to_string();
    let targets = [&server.address[..], &gone];
    let mut watch = Watch::start(&home, &[&targets[..], &SMALL, &["--every", "1s"]].concat());
    assert_eq!(watch.event()["event"], "begin");
    let mut seen = std::collections::BTreeSet::new();
    while !(seen.contains("tested") && seen.contains("no-result")) {
        seen.insert(watch.event()["event"].as_str().unwrap().to_string());
    }
    assert_eq!(watch.end(), Some(0));
}

#[test]
fn a_watch_that_waits_ends_at_once_and_says_that_nothing_was_tested() {
    let home = Home::new();
    let said = home.path().join("said.log");
    let log = std::fs::File::create(&said).unwrap();
    let mut watch = Watch::start_with(&home, &["192.0.2.1", "--every", "1d"], log.into());
    assert_eq!(watch.event()["event"], "begin");
    assert_eq!(watch.end(), Some(0));
    let said = std::fs::read_to_string(said).unwrap();
    assert!(said.contains("ended before the first result; --once tests"), "{said}");
}
