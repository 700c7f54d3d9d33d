//! `goodput watch`: one test, a gap, a budget, a change, and its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr as SocketName, UnixDatagram};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use goodput_model::{BitRate, Known, Record};
use goodput_store::{Store, Watched};
use serde_json::Value;

use crate::common::{Home, Server, stderr, stdout};

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

#[test]
fn a_test_beside_another_measurement_of_this_host_says_so() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let long = ["test", &server.address, "--rate", "1mbit", "-t", "60"];
    let mut other = home.goodput(&long).stdout(Stdio::null()).spawn().unwrap();
    let announced = || std::fs::read_dir(home.path().join("state/running"));
    goodput_testing::wait_for("an announced test", || {
        announced().is_ok_and(|mut all| all.next().is_some())
    });
    let output = once(&home, &[&server.address], &[]);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(stdout(&output).contains("  beside goodput test "), "{}", stdout(&output));
    let alone = once(&home, &[&server.address], &[]);
    assert!(!stdout(&alone).contains("beside"), "{}", stdout(&alone));
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
        let event: Value = serde_json::from_str(&stdout(&output)).expect("one event");
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

#[test]
fn a_target_that_is_gone_is_told_once_and_that_it_is_back() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (_taken, gone) = crate::common::refusing();
    let gone = gone.to_string();
    let said = home.path().join("said");
    let script =
        format!("#!/bin/sh\necho \"$GOODPUT_EVENT $GOODPUT_TARGET\" >> {}\n", said.display());
    let program = home.file("tell", &script);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
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

/// Tests of four days on a path of 1 Pbit/s with an older kernel, then three of a slower path.
pub fn plant_a_change(home: &Home) {
    let store = history(home);
    let series = store.series().expect("the history of the test works").remove(0);
    let real = store.get(1).expect("the history of the test works");
    let hour_24_s = 86_400;
    let tests = 4 * 96;
    for n in 0..tests + 3 {
        let at = jiff::Timestamp::now().as_second() - 6 * hour_24_s + n * 900;
        let at = jiff::Timestamp::from_second(at).expect("the history of the test works");
        let noise = 1.0 + 0.02 * (n as f64 * 0.618_033_988_75).fract();
        let before = n < tests;
        let goodput = if before { noise * 1e15 } else { noise * 1e9 };
        let mut record = Record { started: at.to_string(), ..real.clone() };
        record.result.goodput_bits_per_s = BitRate(goodput);
        if let Known::Value(near) = &mut record.ends.near
            && before
        {
            near.host.kernel = "Linux 2.0.36".into();
        }
        let watched = Watched { plan: series.plan.clone(), goodput: Some(BitRate(goodput)) };
        store.add_watched(&record, &watched).expect("the history of the test works");
    }
}

/// A program for --notify, and the file that it writes.
fn teller(home: &Home) -> (PathBuf, PathBuf) {
    let said = home.path().join("said");
    let script = format!("#!/bin/sh\n{{ echo \"$GOODPUT_EVENT\"; cat; }} > {}\n", said.display());
    let path = home.file("tell", &script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
        .expect("the history of the test works");
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
    let (event, json) = told.split_once('\n').unwrap();
    assert_eq!(event, "changed");
    let json: Value = serde_json::from_str(json).unwrap();
    assert!(json["percent"].as_f64().unwrap() < -99.0, "{json}");
}

/// A watch that goes on.
pub struct Watch {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watch {
    pub fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::start_with(home, arguments, Stdio::inherit())
    }

    fn start_with(home: &Home, arguments: &[&str], stderr: Stdio) -> Self {
        Self::of(home.goodput(&[&["watch", "--json"][..], arguments].concat()), stderr)
    }

    fn of(mut command: Command, stderr: Stdio) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("the program under test can be started");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, lines }
    }

    /// The next event. If it is a result, its goodput in bits per second is added to `rates`.
    pub fn event_with(&mut self, rates: &mut Vec<f64>) -> Value {
        let event = self.event();
        rates.extend(event["goodput_bits_per_s"].as_f64());
        event
    }

    fn event(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the watch and kill work");
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"))
    }

    /// Ends it as systemd does. Returns its exit code.
    pub fn end(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .expect("the watch and kill work")
                .success()
        );
        self.child.wait().expect("the watch and kill work").code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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

#[test]
fn who_locks_the_history_is_named_and_is_the_reason_for_tests_left_out() {
    let home = Home::new();
    let server = Server::start(&Home::new(), &[]);
    let mut watch =
        Watch::start(&home, &[&[&server.address[..]], &SMALL[..], &["--every", "1s"]].concat());
    while watch.event()["event"] != "tested" {}
    let file = home.path().join("goodput/history.db");
    let other = rusqlite::Connection::open(&file).unwrap();
    other.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = format!("{}: process {} (", file.display(), std::process::id());
    let pruned = home.run(&["history", "prune", "--keep", "1d"]);
    assert_eq!(pruned.status.code(), Some(2));
    assert!(stderr(&pruned).contains(&locked), "{}", stderr(&pruned));
    let why = loop {
        let event = watch.event();
        if event["event"] == "late" && event["history"]["why"].is_string() {
            break event["history"]["why"].to_string();
        }
    };
    assert!(why.contains(&locked) && why.contains("keeps it locked"), "{why}");
    drop(other);
    assert_eq!(watch.end(), Some(0));
}

/// Runs `command` where the directory of the history has room for little.
fn on_a_full_disk(home: &Home, command: &Command) -> Command {
    let script = "mount -t tmpfs -o size=400k,mode=700 tmpfs \"$HISTORY\"; exec \"$@\"";
    let mut small = Command::new("unshare");
    small.args(["--user", "--map-root-user", "--mount", "sh", "-ec", script, "sh"]);
    small.arg(command.get_program()).args(command.get_args());
    small.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    small.env("HISTORY", home.path().join("goodput"));
    small
}

#[test]
fn a_watch_goes_on_when_the_disk_is_full_and_says_that_nothing_was_kept() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("goodput")).unwrap();
    if !on_a_full_disk(&home, &Command::new("true")).status().is_ok_and(|s| s.success()) {
        return goodput_testing::skip("unshare(1) and mounts in an own user namespace");
    }
    let server = Server::start(&Home::new(), &[]);
    let said = home.path().join("said.log");
    let log = std::fs::File::create(&said).unwrap();
    let arguments = [&["watch", "--json", &server.address, "--every", "1s"][..], &SMALL].concat();
    let mut watch = Watch::of(on_a_full_disk(&home, &home.goodput(&arguments)), log.into());
    let mut lost = 0;
    while lost < 2 {
        let event = watch.event();
        lost += usize::from(event["event"] == "tested" && event.get("record").is_none());
    }
    assert_eq!(watch.end(), Some(0));
    let said = std::fs::read_to_string(said).unwrap();
    assert!(said.contains("the result was not kept") && said.contains("full"), "{said}");
}

#[test]
fn a_single_test_that_a_full_disk_would_not_count_is_not_made() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("goodput")).unwrap();
    if !on_a_full_disk(&home, &Command::new("true")).status().is_ok_and(|s| s.success()) {
        return goodput_testing::skip("unshare(1) and mounts in an own user namespace");
    }
    let server = Server::start(&Home::new(), &[]);
    let test = home.goodput(&[&["watch", "--once", &server.address][..], &SMALL].concat());
    // Until nothing more is noted, not even in what the file has left.
    let script = "for _ in $(seq 40); do \"$@\" || failed=$?; done; exit $failed";
    let mut repeated = Command::new("sh");
    repeated.args(["-c", script, "sh"]).arg(test.get_program()).args(test.get_args());
    repeated.envs(test.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = on_a_full_disk(&home, &repeated).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("was not tested"), "{}", stderr(&output));
}

#[test]
fn a_watch_goes_on_in_a_new_history_when_the_old_one_was_damaged_and_moved_away() {
    let home = Home::new();
    let server = Server::start(&Home::new(), &[]);
    let watched = [&[&server.address, "--every", "1s"][..], &SMALL].concat();
    let watch = Watch::start(&home, &watched);
    let path = home.path().join("goodput/history.db");
    for damaged in [false, true] {
        goodput_testing::wait_for("a result in the history", || {
            path.exists() && !history(&home).list(1).unwrap().is_empty()
        });
        if damaged {
            std::fs::write(&path, "dear diary, ".repeat(10_000)).unwrap();
        }
        for end in ["-wal", "-shm", ""] {
            let part = format!("{}{end}", path.display());
            let _ = std::fs::rename(&part, format!("{part}.{damaged}"));
        }
    }
    goodput_testing::wait_for("a result in a third history", || {
        path.exists() && !history(&home).list(1).unwrap().is_empty()
    });
    assert_eq!(watch.end(), Some(0));
}

/// Tests that began at these times between two of now, the second with `--keep`. Returns how many are left of all.
fn left_of(started: &[&str], keep: &str) -> usize {
    let home = Home::new();
    let server = Server::start(&Home::new(), &[]);
    assert!(once(&home, &[&server.address], &[]).status.success());
    let store = history(&home);
    let real = store.get(1).expect("the history of the test works");
    let watched = Watched { plan: "{}".into(), goodput: None };
    for started in started {
        let record = Record { started: (*started).into(), ..real.clone() };
        store.add_watched(&record, &watched).expect("the history of the test works");
    }
    drop(store);
    let output = once(&home, &[&server.address], &["--every", "1h", "--keep", keep]);
    assert!(output.status.success(), "{}", stderr(&output));
    history(&home).list(100).expect("the history of the test works").len()
}

#[test]
fn results_are_deleted_when_they_were_watched_for_long_enough_and_not_when_a_clock_jumps() {
    let hours = ["10", "11", "12", "13", "14"].map(|hour| format!("2026-01-01T{hour}:00:00Z"));
    let hours = hours.each_ref().map(String::as_str);
    assert_eq!(left_of(&hours, "90d"), 7, "months without a test are two hours");
    assert_eq!(left_of(&hours, "210m"), 3, "and an hour from one test to the next is an hour");
}

const REQUEST: &[u8] =
    b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\
                         Connection: close\r\n\r\n";

/// Where metrics are, according to the line that says it.
fn metrics_address(said: &str) -> &str {
    let line = said.lines().find_map(|line| line.strip_prefix("metrics on http://"));
    line.and_then(|line| line.strip_suffix("/metrics")).expect("it says where")
}

/// What is at /metrics there, according to the line that says where.
fn scrape(said: &str) -> String {
    let address = metrics_address(said);
    let mut stream = TcpStream::connect(address).expect("the server of metrics answers");
    stream.write_all(REQUEST).expect("the server of metrics answers");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server of metrics answers");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("# EOF\n"), "{answer}");
    answer
}

#[test]
fn a_server_and_a_watch_have_metrics() {
    let (far, home) = (Home::new(), Home::new());
    let server = Server::start(&far, &["--metrics", "127.0.0.1:0"]);
    let said = home.path().join("said.log");
    let log = std::fs::File::create(&said).unwrap();
    let metrics = ["--every", "1s", "--metrics", "127.0.0.1:0"];
    let mut watch = Watch::start_with(
        &home,
        &[&[&server.address[..]], &SMALL[..], &metrics].concat(),
        log.into(),
    );
    while watch.event()["event"] != "tested" {}
    let text = scrape(&std::fs::read_to_string(&said).unwrap());
    let label = format!("{{target=\"{}\"}}", server.address);
    assert!(text.contains(&format!("goodput_watch_up{label} 1.0")), "{text}");
    assert!(text.contains(&format!("goodput_watch_goodput_bytes_per_second{label}")), "{text}");
    let text = scrape(&std::fs::read_to_string(far.path().join("server.log")).unwrap());
    assert!(!text.contains("goodput_serve_measurements_total 0"), "{text}");
    assert!(!text.contains("goodput_serve_received_bytes_total 0"), "{text}");
    assert_eq!(watch.end(), Some(0));
}

/// A connection from another address of this host that sends half a request and waits.
fn half_a_request(address: &str) -> TcpStream {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be made");
    let other: SocketAddr = ([127, 0, 0, 2], 0).into();
    socket.bind(&other.into()).expect("all of 127.0.0.0/8 is this host");
    let address: SocketAddr = address.parse().expect("an address");
    socket.connect(&address.into()).expect("the server of metrics listens");
    let mut stream = TcpStream::from(socket);
    // One that has too many already is closed at once.
    let _ = stream.write_all(&REQUEST[..REQUEST.len() / 2]);
    stream
}

#[test]
fn metrics_are_read_beside_a_crowd_of_another_client() {
    let far = Home::new();
    let _server = Server::start(&far, &["--metrics", "127.0.0.1:0"]);
    let said = std::fs::read_to_string(far.path().join("server.log")).unwrap();
    // More than all clients together may have.
    let crowd: Vec<_> = (0..100).map(|_| half_a_request(metrics_address(&said))).collect();
    for _ in 0..3 {
        assert!(scrape(&said).contains("goodput_serve_clients"));
    }
    drop(crowd);
}
