//! A history that is locked, full, damaged or old.

use std::process::Command;

use goodput_model::Record;
use goodput_store::Watched;

use super::{SMALL, Watch, history, once};
use crate::common::{Home, Server, stderr};

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
