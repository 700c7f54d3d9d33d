//! What the program of `--notify` is told.

use std::path::PathBuf;

use goodput_model::{BitRate, Known, Record};
use goodput_store::Watched;
use goodput_testing::write_script;
use serde_json::Value;

use super::{history, once};
use crate::common::{Home, Server, stdout};

#[test]
fn a_target_that_is_gone_is_told_once_and_that_it_is_back() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (_taken, gone) = crate::common::refusing();
    let gone = gone.to_string();
    let said = home.path().join("said");
    let script =
        format!("#!/bin/sh\necho \"$GOODPUT_EVENT $GOODPUT_TARGET\" >> {}\n", said.display());
    let program = home.path().join("tell");
    write_script(&program, &script);
    let notify = ["--notify", program.to_str().unwrap()];
    for _ in 0..2 {
        assert_eq!(once(&home, &[&gone], &notify).status.code(), Some(2));
    }
    assert!(once(&home, &[&server.address], &notify).status.success());
    let [series] = &history(&home).series().unwrap()[..] else { panic!("one series") };
    history(&home).set_gone(series, Some("2026-01-01T10:00:00Z")).unwrap();
    for _ in 0..2 {
        assert!(once(&home, &[&server.address], &notify).status.success());
    }
    let said = std::fs::read_to_string(said).unwrap();
    assert_eq!(said, format!("gone {gone}\nback {}\n", server.address));
}

/// Tests of four days, one every quarter of an hour.
const FOUR_DAYS: i64 = 4 * 96;

/// Keeps this number of tests like the only one, each changed by its number and by noise from 0 to 1.
fn plant(home: &Home, tests: i64, change: impl Fn(&mut Record, i64, f64)) {
    let store = history(home);
    let series = store.series().expect("the history of the test works").remove(0);
    let real = store.get(1).expect("the history of the test works");
    let hour_24_s = 86_400;
    for n in 0..tests {
        let at = jiff::Timestamp::now().as_second() - 6 * hour_24_s + n * 900;
        let at = jiff::Timestamp::from_second(at).expect("the history of the test works");
        let mut record = Record { started: at.to_string(), ..real.clone() };
        change(&mut record, n, (n as f64 * 0.618_033_988_75).fract());
        let goodput = record.result.goodput_bits_per_s;
        let watched = Watched { plan: series.plan.clone(), goodput: Some(goodput) };
        store.add_watched(&record, &watched).expect("the history of the test works");
    }
}

/// Tests of four days on a path of 1 Pbit/s with an older kernel, then three of a slower path.
pub fn plant_a_change(home: &Home) {
    plant(home, FOUR_DAYS + 3, |record, n, noise| {
        let before = n < FOUR_DAYS;
        let goodput = if before { 1e15 } else { 1e9 };
        record.result.goodput_bits_per_s = BitRate((1.0 + 0.02 * noise) * goodput);
        if let Known::Value(near) = &mut record.ends.near
            && before
        {
            near.host.kernel = "Linux 2.0.36".into();
        }
    });
}

/// Tests of four days on a path whose goodput is anything, and whose round trip is 500 s: that of a busy machine is still
/// 100 % shorter.
fn plant_a_long_round_trip(home: &Home) {
    plant(home, FOUR_DAYS, |record, _, noise| {
        record.result.goodput_bits_per_s = BitRate(10_f64.powf(6.0 + 6.0 * noise));
        let sender = record.verdict.sender;
        let main = record.result.directions.iter_mut().find(|one| one.sender == sender);
        main.expect("one direction").rtt_us = Known::Value((1.0 + 0.02 * noise) * 5e8);
    });
}

/// A program for --notify, and the file that it writes.
fn teller(home: &Home) -> (PathBuf, PathBuf) {
    let said = home.path().join("said");
    // A test may have several events: they are one behind the other.
    let script = format!("#!/bin/sh\n{{ echo \"$GOODPUT_EVENT\"; cat; }} >> {}\n", said.display());
    let path = home.path().join("tell");
    write_script(&path, &script);
    (path, said)
}

#[test]
fn a_change_is_named_with_what_changed_with_it_and_told_once() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    assert!(once(&home, &[&server.address], &[]).status.success());
    plant_a_change(&home);
    let (program, said) = teller(&home);
    let notify = ["--notify", program.to_str().unwrap()];
    let tests = (0..8).map(|_| once(&home, &[&server.address], &notify));
    let found: Vec<_> = tests.filter(|output| output.status.code() == Some(1)).collect();
    let [output] = &found[..] else { panic!("{found:?}") };
    let text = stdout(output);
    assert!(text.contains("the path gives 100 % less"), "{text}");
    assert!(
        text.contains("kernel of the near end: Linux") && text.contains("before Linux 2.0.36"),
        "{text}"
    );
    let listed = home.run(&["history", "--target", &server.address]);
    let listed = stdout(&listed);
    assert!(
        listed.contains("the path gives 100 % less") && listed.contains("  watch  "),
        "{listed}"
    );
    let told = std::fs::read_to_string(said).unwrap();
    let mut lines = told.lines();
    let (event, json) = (lines.next().unwrap(), lines.next().unwrap());
    assert_eq!(event, "changed");
    let json: Value = serde_json::from_str(json).unwrap();
    assert!(json["percent"].as_f64().unwrap() < -99.0, "{json}");
}

#[test]
fn a_change_of_the_round_trip_alone_is_told_once_and_listed() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    assert!(once(&home, &[&server.address], &[]).status.success());
    plant_a_long_round_trip(&home);
    let (program, said) = teller(&home);
    let notify = ["--notify", program.to_str().unwrap()];
    // It waits for eight tests: the goodput might change with it.
    let tests = (0..10).map(|_| once(&home, &[&server.address], &notify));
    let found: Vec<_> = tests.filter(|output| output.status.code() == Some(1)).collect();
    let [output] = &found[..] else { panic!("{found:?}") };
    let text = stdout(output);
    assert!(text.contains("the path has a round trip 100 % shorter"), "{text}");
    let is_value_before = |line: &str| line.starts_with("before") && line.contains(" 50");
    assert!(text.lines().any(is_value_before), "{text}");
    let listed = stdout(&home.run(&["history", "--target", &server.address]));
    assert!(listed.contains("the path has a round trip 100 % shorter"), "{listed}");
    let told = std::fs::read_to_string(said).unwrap();
    let mut lines = told.lines();
    let (event, json) = (lines.next().unwrap(), lines.next().unwrap());
    assert_eq!(event, "shifted");
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["quantity"], "round-trip", "{json}");
}
