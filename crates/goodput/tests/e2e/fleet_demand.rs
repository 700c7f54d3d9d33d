//! Tests that someone asks for in between, and what a running coordinator shows.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use goodput_testing::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Home, records, stderr, stdout};
use crate::fleet_stage::{Agent, Fleet, PAIR};
use crate::prometheus::{has_prometheus, promtool};

#[test]
fn a_test_on_demand_needs_no_coordinator() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let home = Home::new();
    let output = fleet.test(&home, &["a", "b"]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("--mesh"), "{}", stderr(&output));
    let mesh = fleet.mesh(PAIR);
    let output = fleet.test(&home, &["a", "b", "--mesh", &mesh]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).starts_with("a → b  "), "{}", stdout(&output));
    assert_eq!((b.records().len(), records(home.path()).len()), (1, 1));
    let output = fleet.test(&home, &["b", "a", "--mesh", &mesh]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let said = b.log();
    assert!(
        !said.contains("coordinator"),
        "two, of which an operator needs to know nothing: {said}"
    );
    let output = fleet.test(&home, &["a", "x", "--mesh", &mesh]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("there is no site x in the mesh"), "{}", stderr(&output));
    let output = fleet.test(&home, &["a", "b", "--mesh", &mesh, "--duration", "2h"]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("7200 s is no length of a test"), "{}", stderr(&output));
}

#[test]
fn a_test_on_demand_is_printed_also_where_it_can_t_be_kept() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("goodput/history.db")).expect("it is ours");
    let output = fleet.test(&home, &["a", "b", "--mesh", &fleet.mesh(PAIR)]);
    assert_eq!(output.status.code(), Some(2), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).starts_with("a → b  "), "{}", stdout(&output));
    assert!(stderr(&output).contains("was not saved"), "{}", stderr(&output));
    assert_eq!(b.records().len(), 1, "the site that calls has it");
}

/// One wish is out at a time, so the next one comes a moment after the one before.
#[test]
fn all_wishes_that_are_there_come_before_the_next_round() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, _b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = fleet.mesh(&PAIR.replace("1s", "0.3s"));
    let home = Home::new();
    // Its coordinator makes what the fleet stores.
    let output = fleet.run_to_the_end(&home, &mesh);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    for number in 1..=3 {
        let wish = serde_json::json!({
            "format": goodput_fleet::FORMAT, "id": format!("want-{number}"),
            "near": "b", "sender": "b", "receiver": "a", "length_s": 0.3,
        });
        fleet.nats.publish("goodput.want.coordinator", &wish.to_string());
    }
    let output = fleet.run_to_the_end(&home, &mesh);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    let tests: Vec<_> = said.lines().filter(|line| line.contains(" → ")).collect();
    let is_wanted = |line: &&str| line.contains("Z  on demand  b → a  ");
    assert_eq!(tests.iter().position(|line| line.contains("Z  1/2  ")), Some(3), "{said}");
    assert!(tests[..3].iter().all(is_wanted), "{said}");
}

/// The coordinator is in a long test.
#[test]
fn who_no_longer_waits_for_a_test_takes_it_back() {
    let Some(fleet) = Fleet::new() else { return };
    let (a, _b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let (home, other) = (Home::new(), Home::new());
    let mut run = fleet.run(&home, &fleet.mesh(&PAIR.replace("1s", "50s")));
    wait_for("a server at a", || a.servers() == 1);
    let mut wishes = fleet.nats.hear("goodput.want.coordinator");
    let mut outcomes = fleet.nats.hear("goodput.outcomes.b.*");
    let asks = fleet.coordinate(&other, &["test", "b", "a"]);
    let wish = wishes.next_message();
    kill_process(Pid::from_child(&asks), Signal::INT).expect("it is ours");
    let output = asks.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("the test b → a is not made"), "{}", stderr(&output));
    let wish: serde_json::Value = serde_json::from_str(&wish).expect(&wish);
    let outcome = outcomes.next_message();
    let outcome: serde_json::Value = serde_json::from_str(&outcome).expect(&outcome);
    assert_eq!(outcome["task"], wish["id"]);
    assert!(outcome["end"]["reason"].is_string(), "{outcome}");
    run.kill().expect("it runs");
    run.wait().expect("it is ours");
}

/// The window opens in eleven hours, whatever the time is.
#[test]
fn a_closed_window_is_waited_for_in_words_and_a_test_on_demand_does_not_wait() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let [from, until] = [11, 13].map(|hours| {
        let time = now.checked_add(jiff::SignedDuration::from_hours(hours)).expect("it is a time");
        time.strftime("%H:%M").to_string()
    });
    let windows = format!("[test]\nwindows = [\"{from}-{until}\"]");
    let mesh = fleet.mesh(&PAIR.replace("[test]", &windows));
    let home = Home::new();
    let mut run = fleet.run(&home, &mesh);
    let mut lines = BufReader::new(run.stdout.take().expect("stdout is piped")).lines();
    let said = lines.next().expect("it says that it waits").expect("it is text");
    let waits = format!("Z  waiting until {from} UTC (window {from}-{until})");
    assert!(said.ends_with(&waits), "{said}");
    let output = fleet.test(&Home::new(), &["a", "b"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(b.records().len(), 1);
    run.kill().expect("it runs");
    run.wait().expect("it is ours");
}

#[test]
fn a_running_coordinator_makes_a_test_on_demand_at_once_and_has_metrics() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let (home, other) = (Home::new(), Home::new());
    let mesh = fleet.mesh(&PAIR.replace("[test]", "[test]\nevery = \"1h\""));
    let mut run = fleet.coordinate(&home, &["run", &mesh, "--metrics", "127.0.0.1:0"]);
    let mut said = BufReader::new(run.stderr.take().expect("stderr is piped"));
    let address = metrics_address(&mut said);
    let mut lines = BufReader::new(run.stdout.take().expect("stdout is piped")).lines();
    let mut line_with = |words: &str| loop {
        let line = lines.next().expect("it goes on").expect("it is text");
        if line.contains(words) {
            return line;
        }
    };
    line_with("2/2  b → a");
    let output = fleet.test(&other, &["b", "a", "--duration", "2s"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!((b.records().len(), records(other.path()).len()), (3, 1));
    line_with("on demand  b → a");
    wait_for("the metrics of both agents", || {
        let text = metrics(&address);
        text.contains("goodput_fleet_agent_up{site=\"a\"} 1.0")
            && text.contains("goodput_fleet_agent_up{site=\"b\"} 1.0")
    });
    // A wish of another version is answered where it is waited for.
    let mut heard = fleet.nats.hear("goodput.outcomes.b.want-9");
    let wish = r#"{"format":99,"id":"want-9","near":"b","sender":"b","receiver":"a"}"#;
    fleet.nats.publish("goodput.want.coordinator", wish);
    let answer = heard.next_message();
    assert!(answer.contains("refuses the wish") && answer.contains("version 99"), "{answer}");
    line_with("on demand  b → a  no record: the coordinator refuses the wish");
    let text = metrics(&address);
    let tests = "goodput_fleet_tests_total{sender=\"b\",receiver=\"a\",outcome=\"record\"} 2";
    assert!(text.contains(tests), "{text}");
    assert!(text.contains("goodput_fleet_goodput_bytes_per_second{sender=\"a\""), "{text}");
    assert!(text.contains("goodput_fleet_verdict{sender=\"a\",receiver=\"b\",limit="), "{text}");
    // What is asked for in between is no test of the turn.
    for line in ["goodput_fleet_turn_tests 2", "goodput_fleet_turn_tests_done 2"] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    let (_, scraped) = text.split_once("\r\n\r\n").expect("it has a head");
    if has_prometheus() {
        promtool(&["check", "metrics"], scraped);
    }
    run.kill().expect("it runs");
    run.wait().expect("it is ours");
}

/// Where the metrics are: `metrics on http://127.0.0.1:PORT/metrics`.
fn metrics_address(said: &mut impl BufRead) -> String {
    let mut lines = said.lines().map(|line| line.expect("it is text"));
    let line = lines.find(|line| line.contains("metrics on ")).expect("it says where");
    let (_, rest) = line.split_once("http://").expect(&line);
    rest.trim_end_matches("/metrics").into()
}

#[test]
fn metrics_are_named_only_by_a_coordinator_that_began_and_also_for_one_turn() {
    let home = Home::new();
    let mesh = home.file("mesh.toml", PAIR).display().to_string();
    let run = ["fleet", "run", &mesh, "--once", "--metrics", "127.0.0.1:0", "--nats"];
    let output = home.run(&[&run[..], &["nats://127.0.0.1:1"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    let said = stderr(&output);
    assert!(said.contains("can't connect to NATS") && !said.contains("metrics on"), "{said}");
    let Some(fleet) = Fleet::new() else { return };
    let url = fleet.nats.url();
    let output = home.run(&[&run[..], &[&url]].concat());
    assert_eq!(output.status.code(), Some(1), "no agent runs: {}", stderr(&output));
    assert!(stderr(&output).contains("metrics on http"), "{}", stderr(&output));
}

fn metrics(address: &str) -> String {
    let mut client = TcpStream::connect(address).expect("it listens");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).expect("it reads");
    let mut text = String::new();
    client.read_to_string(&mut text).expect("it answers");
    text
}
