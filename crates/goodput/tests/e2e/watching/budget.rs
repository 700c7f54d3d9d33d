//! What tests may cost.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as SocketName, UnixDatagram};

use serde_json::Value;

use super::{SMALL, Watch, history, once};
use crate::common::{Home, Server, stderr, stdout};

#[test]
fn a_used_up_budget_is_said_and_not_measured_even_after_a_restart() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let budget = ["--budget", "2MB/day"];
    // A budget that is too small from the first is refused, with one that is not.
    let none = once(&home, &[&server.address], &["--budget", "1MB/day"]);
    assert_eq!(none.status.code(), Some(2), "{}", stdout(&none));
    assert!(stderr(&none).contains("; allow 1.20MB/day, or make it"), "{}", stderr(&none));
    let first = once(&home, &[&server.address], &budget);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let second = once(&home, &[&server.address], &budget);
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    assert!(stdout(&second).contains("not tested: the budget is used up"), "{}", stdout(&second));
    assert_eq!(history(&home).list(10).unwrap().len(), 1);
    for time in [&[][..], &["-t", "5"]] {
        let tiny = ["watch", "--once", &server.address, "--budget", "2MB/day"];
        let tiny = home.run(&[&tiny[..], time].concat());
        assert_eq!(tiny.status.code(), Some(2));
        let said = "allow 110MB/day, test fewer targets, or less often (--every)";
        assert!(stderr(&tiny).contains(said), "{}", stderr(&tiny));
    }
}

#[test]
fn a_used_up_budget_is_said_while_another_watch_has_the_turn() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let line = format!("used-up-{}", std::process::id());
    let schedule = ["-n", "1M", "--every", "1s", "--budget", "2MB/day", "--line", &line];
    let mut watch = Watch::start(&home, &[&[&server.address[..]], &schedule[..]].concat());
    while watch.event()["event"] != "used-up" {}
    let name = SocketName::from_abstract_name(format!("goodput-watch/{line}")).unwrap();
    let _turn = UnixDatagram::bind_addr(&name).expect("nobody tests any more");
    // The first one may be of before.
    assert_eq!([(); 2].map(|()| watch.event()["event"].clone()), ["used-up", "used-up"]);
    assert_eq!(watch.end(), Some(0));
}

#[test]
fn what_was_spent_before_the_clock_was_set_back_stays_spent() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    assert!(once(&home, &[&server.address], &[]).status.success());
    let tomorrow = jiff::Timestamp::now().as_second() + 86_400;
    let started = jiff::Timestamp::from_second(tomorrow).unwrap().to_string();
    history(&home).spend(&server.address, &started, 100_000_000).unwrap();
    let output = once(&home, &[&server.address], &["--budget", "100MB/day"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stdout(&output).contains("the budget is used up"), "{}", stdout(&output));
}

/// Bytes that tests of this target have spent, by the history.
fn spent(home: &Home, target: &str) -> Vec<u64> {
    let spent = history(home).spent(target, "2000").expect("the history can be read");
    spent.into_iter().map(|(_, bytes)| bytes).collect()
}

/// A watch whose only test would take a minute and has begun, by the history.
fn in_a_test(home: &Home, server: &Server) -> Watch {
    let long = ["--once", "-t", "60", "--rate", "1mbit", "--budget", "970MB/day"];
    let watch = Watch::start(home, &[&[&server.address[..]], &long[..]].concat());
    goodput_testing::wait_for("a note of the test", || {
        home.path().join("goodput/history.db").exists() && !spent(home, &server.address).is_empty()
    });
    watch
}

#[test]
fn a_test_that_fails_stays_spent_after_a_restart() {
    let home = Home::new();
    let mut server = Server::start(&home, &[]);
    let mut watch = in_a_test(&home, &server);
    server.stop("-KILL");
    let event = watch.event();
    assert!(event["event"] == "no-result" || event.get("incomplete").is_some(), "{event}");
    assert_eq!(spent(&home, &server.address), [event["bytes"].as_u64().unwrap()], "{event}");
}

#[test]
fn a_watch_that_is_killed_in_a_test_has_spent_what_it_might_have_cost() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    drop(in_a_test(&home, &server));
    // A test of each quarter of an hour, and one more. It ends with twice its share.
    assert_eq!(spent(&home, &server.address), [20_000_000]);
    let again = once(&home, &[&server.address], &["--budget", "20MB/day"]);
    assert!(stdout(&again).contains("the budget is used up"), "{}", stdout(&again));
}

#[test]
fn a_watch_that_is_ended_in_a_test_has_spent_what_it_did_cost() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    assert_eq!(in_a_test(&home, &server).end(), Some(2));
    let [bytes] = spent(&home, &server.address)[..] else { panic!("one test") };
    assert!(bytes < 10_000_000, "{bytes}");
}

#[test]
fn what_a_test_costs_is_said_first_and_that_the_budget_is_too_small_for_it() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let schedule = ["--every", "1s", "--budget", "22GB/day", "-n", "3MB"];
    let mut watch = Watch::start(&home, &[&[&server.address[..]], &schedule[..]].concat());
    let begin = watch.event();
    let said = begin["test_bytes"].as_u64().unwrap();
    let lasts_s = begin["budget_lasts_s"].as_f64().unwrap();
    assert!((6000.0..7400.0).contains(&lasts_s), "{begin}");
    let mut tested = watch.event();
    while tested["event"] != "tested" {
        tested = watch.event();
    }
    let bytes = tested["bytes"].as_u64().unwrap();
    // A busy machine loses some on loopback too. What is lost is sent again, and twice the cost ends the test.
    assert!((3_000_000..=2 * said).contains(&bytes), "{begin} {tested}");
    assert_eq!(watch.end(), Some(0));
}

/// Datagrams whose headers are as large as their payload cost more than was expected of this payload.
#[test]
fn a_test_ends_when_the_budget_is_used_up() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let small =
        ["-u", "-l", "32", "-n", "1M", "--rate", "2mbit", "--budget", "1.2MB/day", "--json"];
    let output = home.run(&[&["watch", "--once", &server.address][..], &small].concat());
    let event: Value = serde_json::from_str(&stdout(&output)).expect("one event");
    assert_eq!(event["incomplete"], "the budget was used up", "{event}");
    let bytes = event["bytes"].as_u64().unwrap();
    assert!((300_000..1_250_000).contains(&bytes), "{event}");
    // And whoever looks later sees it, too.
    let why = "only a part: the budget was used up";
    let listed = stdout(&home.run(&["history"])).to_string();
    assert!(listed.contains(why), "{listed}");
    let shown = stdout(&home.run(&["history", "1"])).to_string();
    assert!(shown.contains(", incomplete") && shown.contains("the budget was used up"), "{shown}");
    let samples = stdout(&home.run(&["history", "export", "--openmetrics"])).to_string();
    assert!(samples.contains("incomplete=\"true\""), "{samples}");
}

/// A slow test ends after the time, a fast one with its share.
#[test]
fn a_test_of_a_time_moves_its_share_at_most_and_is_whole() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let share = ["--every", "8h", "--budget", "60MB/day", "--json"];
    let tested = |options: &[&str]| -> u64 {
        let watch = ["watch", "--once", &server.address];
        let output = home.run(&[&watch[..], &share, options].concat());
        // Before it, the second one says that it is made in another way.
        let event = stdout(&output).lines().last().map(serde_json::from_str::<Value>);
        let event = event.expect("an event").expect("JSON");
        assert!(event["event"] == "tested" && event.get("incomplete").is_none(), "{event}");
        event["bytes"].as_u64().unwrap()
    };
    // Long enough that a busy machine sends something; its share would take 13 s.
    let slow = tested(&["-t", "5", "--rate", "8mbit"]);
    assert!(slow < 10_000_000, "{slow}");
    let fast = tested(&["-t", "60"]);
    assert!((13_000_000..=15_000_000).contains(&fast), "{fast}");
}

/// This path moves a test's share before the kernel is asked a second time what the line has carried.
#[test]
fn a_fast_path_is_tested_whole_until_the_budget_is_used_up() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let schedule = ["--every", "8h", "--budget", "60MB/day", "--json"];
    for _ in 0..4 {
        let output = home.run(&[&["watch", "--once", &server.address][..], &schedule].concat());
        let event: Value = serde_json::from_str(&stdout(&output)).expect("one event");
        assert!(event["event"] == "tested" && event.get("incomplete").is_none(), "{event}");
    }
    let spent = spent(&home, &server.address);
    assert!(spent.iter().sum::<u64>() <= 60_000_000, "{spent:?}");
}

/// Another one spends the budget while this one waits for its turn: here, while it tests another target.
#[test]
fn what_others_have_spent_meanwhile_counts_for_a_single_test() {
    let home = Home::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(&home, &[]);
    let first = silent.local_addr().unwrap().to_string();
    let options = [&SMALL[..], &["--budget", "100MB/day"]].concat();
    // The watch waits for a greeting only so long; opening the file takes longer than one entry.
    let kept = history(&home);
    let mut watch =
        Watch::start(&home, &[&["--once", &first, &server.address][..], &options].concat());
    let (connection, _) = silent.accept().unwrap();
    kept.spend(&server.address, &now(), 100_000_000).unwrap();
    drop((connection, silent));
    assert_eq!(watch.event()["event"], "no-result");
    assert_eq!(watch.event()["event"], "used-up");
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}
