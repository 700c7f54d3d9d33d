//! `goodput history`: choosing, exporting, importing and deleting results.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use goodput_model::{Kind, Record};
use goodput_store::{Store, read_record};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::common::{Home, record, stderr, stdout};

/// A record as a test makes it.
fn kept(target: &str, started: &str, limit: &str) -> Record {
    let json = include_str!("../../src/report/example/record.json");
    let mut record = read_record(json).expect("the example is a record");
    record.target = target.into();
    record.started = started.into();
    record.verdict.limit = limit.into();
    record
}

/// A home with three results.
fn filled() -> Home {
    let home = Home::new();
    let store = Store::open(&home.path().join("goodput/history.db"))
        .expect("the history of the test works");
    for (target, started, limit) in [
        ("nas", "2026-01-01T10:00:00Z", "path-loss"),
        ("nas", "2026-01-03T10:00:00Z", "none"),
        ("backup,\"x\"", "2026-01-02T10:00:00Z", "none"),
    ] {
        store.add(&kept(target, started, limit)).expect("the history of the test works");
    }
    home
}

#[test]
fn results_are_chosen_by_target_verdict_and_time() {
    let home = filled();
    let listed = |options: &[&str]| {
        let output = home.run(&[&["history"][..], options].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let text = stdout(&output);
        let ids = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        ids.filter_map(|id| id.parse().ok()).collect::<Vec<i64>>()
    };
    assert_eq!(listed(&[]), [2, 3, 1], "by the times of the tests");
    assert_eq!(listed(&["--target", "NAS"]), [2, 1]);
    assert_eq!(listed(&["--limit", "none"]), [2, 3]);
    assert_eq!(listed(&["--kind", "test", "--limit", "none"]), [2, 3]);
    assert!(listed(&["--kind", "compare"]).is_empty());
    assert_eq!(listed(&["--since", "2026-01-02", "--until", "2026-01-03"]), [3]);
    assert_eq!(listed(&["--since", "1d"]), [0_i64; 0]);
    assert_eq!(listed(&["--kind", "watch"]), [0_i64; 0]);
    let nothing = stdout(&home.run(&["history", "--limit", "policer"]));
    assert!(nothing.starts_with("no result is like that"), "{nothing}");
}

#[test]
fn a_choice_that_no_result_can_fit_is_refused() {
    let home = filled();
    let store = Store::open(&home.path().join("goodput/history.db")).expect("it is there");
    // Of another version of goodput, which had other rules.
    store.add(&kept("nas", "2026-01-04T10:00:00Z", "sunspots")).expect("it can be written");
    assert!(stdout(&home.run(&["history", "--limit", "sunspots"])).contains("sunspots"));
    for (options, words) in [
        ("--limit nonsense", "no rule \"nonsense\""),
        ("--limit path-los", "did you mean \"path-loss\"?"),
        ("--since 2026-02 --until 2026-01", "a later time than --since"),
        ("--since 2026-01-01 --until 2026-01-01", "a later time than --since"),
        ("--since 1d --until 7d", "a later time than --since"),
        ("--since tomorrow", "2026-11-24"),
        ("--until 2026-13-40", "2026-11-24"),
        ("--kind nonsense", "find-rate"),
        ("--last many", "number"),
    ] {
        for command in ["history", "history export --csv"] {
            if command.contains("export") && options.contains("--last") {
                continue;
            }
            let line = format!("{command} {options}");
            let refused = home.run(&line.split(' ').collect::<Vec<_>>());
            assert_eq!(refused.status.code(), Some(2), "{line}: {}", stdout(&refused));
            assert!(stderr(&refused).contains(words), "{line}: {}", stderr(&refused));
            assert!(refused.stdout.is_empty(), "{line}: {}", stdout(&refused));
        }
    }
}

/// As of a host whose clock was ten years ahead until a time server answered.
#[test]
fn a_result_of_a_clock_that_was_ahead_is_no_last_one() {
    let home = filled();
    let store = Store::open(&home.path().join("goodput/history.db"))
        .expect("the history of the test works");
    let ahead = Timestamp::now() + SignedDuration::from_hours(10 * 365 * 24);
    let ahead = ahead.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    store.add(&kept("nas", &ahead, "none")).expect("the history of the test works");
    let last = |home: &Home| record(&home.run(&["history", "last", "--json"])).started;
    assert_eq!(last(&home), "2026-01-03T10:00:00Z");
    let list = home.run(&["history", "--last", "1"]);
    assert!(stdout(&list).contains("2026-01-03T10:00Z"), "{}", stdout(&list));
    assert!(stderr(&list).contains("a clock was ahead; `--since "), "{}", stderr(&list));
    let since = stderr(&list).split('`').nth(1).map(str::to_owned).expect("it names an option");
    let options: Vec<&str> = since.split(' ').collect();
    let list = home.run(&[&["history"], &options[..]].concat());
    assert!(stdout(&list).contains(&ahead[..16]), "{}", stdout(&list));
    assert!(stderr(&list).is_empty(), "{}", stderr(&list));
    let page = home.path().join("last.html").display().to_string();
    assert!(home.run(&["report", "last", "-o", &page]).status.success());
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("2026-01-03") && !page.contains(&ahead[..10]));
    let there = Home::new();
    let store = Store::open(&there.path().join("goodput/history.db")).expect("it can be made");
    store.add(&kept("nas", &ahead, "none")).expect("it can be written");
    assert_eq!(last(&there), ahead, "there is no other");
    assert!(stdout(&there.run(&["history"])).contains(&ahead[..16]));
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    let home = filled();
    for line in [
        "history 1 --target nas",
        "history 1 --limit none",
        "history last --kind test",
        "history 1 2 --since 2026-01-01",
        "history 1 --until 2026-01-01",
        "history 1 --last 3",
        "history 1 2 --json",
        "history 1 2 --format iperf3",
    ] {
        let refused = home.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(refused.status.code(), Some(2), "{line}: {}", stdout(&refused));
        assert!(refused.stdout.is_empty(), "{line}: {}", stdout(&refused));
    }
}

#[test]
fn results_go_to_another_machine_and_into_other_programs() {
    let (here, there) = (filled(), Home::new());
    let export = |options: &[&str]| {
        let output = here.run(&[&["history", "export"][..], options].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    assert!(export(&["--csv"]).contains("3,2026-01-02T10:00:00Z,test,\"backup,\"\"x\"\"\","));
    let metrics = export(&["--openmetrics", "--target", "backup"]);
    assert!(
        metrics.contains(r#"target="backup,\"x\"",transport="tcp"}"#)
            && metrics.ends_with("# EOF\n"),
        "{metrics}"
    );
    let runs = export(&["--pscheduler", "--target", "nas"]);
    let runs: Vec<Value> =
        runs.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    let starts: Vec<_> = runs.iter().map(|run| run["schedule"]["start"].as_str()).collect();
    assert_eq!(starts, [Some("2026-01-01T10:00:00Z"), Some("2026-01-03T10:00:00Z")]);
    assert_eq!(runs[0]["test"]["spec"]["dest"], "nas");
    let file = there.file("results", &export(&["--json"]));
    let file = file.to_str().unwrap();
    for expected in [
        "kept 3 of 3 results as 1 to 3\n",
        "kept 0 of 3 results; 3 were there already, as 1 to 3\n",
    ] {
        let imported = there.run(&["history", "import", file]);
        assert!(imported.status.success(), "{}", stderr(&imported));
        assert_eq!(stdout(&imported), expected);
    }
    let objects = stdout(&there.run(&["history", "import", "--json", file])).to_string();
    let first: Value = serde_json::from_str(objects.lines().next().unwrap()).unwrap();
    assert_eq!((&first["id"], &first["is_new"]), (&1.into(), &false.into()), "{objects}");
    let listed = stdout(&there.run(&["history"]));
    assert_eq!(listed.lines().count(), 4, "{listed}");
    let one = record(&there.run(&["history", "1", "--json"]));
    assert_eq!(one, kept("nas", "2026-01-01T10:00:00Z", "path-loss"));
    let page = there.path().join("page.html");
    let drawn = there.run(&["report", "1", "-o", page.to_str().unwrap()]);
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    let broken = there.file("broken", "{\"format\": 1");
    let refused = there.run(&["history", "import", broken.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
}

#[test]
fn what_can_not_be_read_makes_no_history() {
    let home = Home::new();
    let broken = home.file("broken", "{\"format\": 1}\nx\n");
    let refused = home.run(&["history", "import", broken.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(!home.path().join("goodput/history.db").exists());
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let home = filled();
    for (words, why) in [
        (&["history", "--target", "nas", "export", "--csv"][..], "behind the command"),
        (&["history", "prune", "--keep", "90d", "--keep-days", "30d"], "shorter than --keep"),
        (&["watch", "nas", "--keep", "90d", "--keep-days", "30d"], "shorter than --keep"),
    ] {
        let refused = home.run(words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(stderr(&refused).contains(why), "{words:?}: {}", stderr(&refused));
    }
    assert_eq!(stdout(&home.run(&["history"])).lines().count(), 4, "nothing was deleted");
    assert!(home.run(&["history", "--since", "30m"]).status.success());
}

#[test]
fn what_pscheduler_could_not_have_tested_is_left_out_and_named() {
    let home = filled();
    let store = Store::open(&home.path().join("goodput/history.db")).expect("it is there");
    let searched = Record { kind: Kind::FindRate, ..kept("nas", "2026-01-05T10:00:00Z", "none") };
    store.add(&searched).expect("it can be written");
    let attached = Record { kind: Kind::Attach, ..kept("nas", "2026-01-06T10:00:00Z", "none") };
    store.add(&attached).expect("it can be written");
    let output = home.run(&["history", "export", "--pscheduler"]);
    assert_eq!(stdout(&output).lines().count(), 3, "{}", stdout(&output));
    let words = "warning: results that are no throughput test of pScheduler: 1 (4) (several runs)";
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
    let one = home.run(&["history", "5", "--format", "pscheduler"]);
    assert_eq!((one.status.code(), &*stdout(&one)), (Some(2), ""), "{}", stderr(&one));
    let words = "this result is no throughput test of pScheduler: a connection of another program";
    assert!(stderr(&one).contains(words), "{}", stderr(&one));
}

/// A command on a copy of the history in a file system of its own, after `then`.
fn on_own_disk(home: &Home, then: &str, arguments: &[&str]) -> Command {
    let script = format!(
        "COPY=$(mktemp -d); cp \"$HISTORY\"/* \"$COPY\"; mount -t tmpfs -o size=4m,mode=700 tmpfs \"$HISTORY\"; \
         cp \"$COPY\"/* \"$HISTORY\"; rm -r \"$COPY\"; {then}; exec \"$@\""
    );
    let command = home.goodput(arguments);
    let mut own = Command::new("unshare");
    own.args(["--user", "--map-root-user", "--mount", "sh", "-ec", &script, "sh"]);
    own.arg(command.get_program()).args(command.get_args());
    own.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    own.env("HISTORY", home.path().join("goodput"));
    own
}

#[test]
fn results_are_read_on_a_full_disk_and_where_nothing_may_be_written() {
    let home = filled();
    if !on_own_disk(&home, "true", &["--version"]).output().is_ok_and(|o| o.status.success()) {
        return goodput_testing::skip("unshare(1) and mounts in an own user namespace");
    }
    let page = home.path().join("page.html").display().to_string();
    let full = "cat /dev/zero 2>/dev/null >\"$HISTORY/others\" || true";
    for then in [full, "mount -o remount,ro \"$HISTORY\""] {
        let run = |arguments: &[&str]| {
            let output = on_own_disk(&home, then, arguments).output();
            let output = output.expect("unshare ran just before");
            assert!(output.status.success(), "{then}: {arguments:?}: {}", stderr(&output));
            stdout(&output)
        };
        assert_eq!(run(&["history"]).lines().count(), 4);
        assert!(run(&["history", "export", "--csv"]).contains("nas"));
        run(&["report", "last", "-o", &page]);
    }
}

#[test]
fn old_results_are_deleted_on_a_disk_without_a_free_byte() {
    let home = filled();
    if !on_own_disk(&home, "true", &["--version"]).output().is_ok_and(|o| o.status.success()) {
        return goodput_testing::skip("unshare(1) and mounts in an own user namespace");
    }
    let full = "cat /dev/zero 2>/dev/null >\"$HISTORY/others\" || true";
    let prune = |keep| {
        let pruned = on_own_disk(&home, full, &["history", "prune", "--keep", keep]).output();
        pruned.expect("unshare ran just before")
    };
    let pruned = prune("1h");
    assert!(pruned.status.success(), "{}", stderr(&pruned));
    let said = stdout(&pruned);
    assert!(said.contains("deleted 3 results"), "{said}");
    let nothing = prune("520w");
    assert_eq!(nothing.status.code(), Some(2), "{}", stdout(&nothing));
    let why = stderr(&nothing);
    assert!(why.contains("no result is from before") && why.contains("the disk is full"), "{why}");
}

#[test]
fn pages_say_once_what_an_older_history_lacks() {
    let home = filled();
    if !on_own_disk(&home, "true", &["--version"]).output().is_ok_and(|o| o.status.success()) {
        return goodput_testing::skip("unshare(1) and mounts in an own user namespace");
    }
    let older =
        "DROP INDEX records_by_time; DROP INDEX records_of_target; UPDATE schema SET number = 11";
    let db = rusqlite::Connection::open(home.path().join("goodput/history.db"));
    db.and_then(|db| db.execute_batch(older)).expect("it is there");
    let token = home.path().join("token").display().to_string();
    let arguments = ["web", "--listen", "127.0.0.1:0", "--token-file", &token];
    let mut web = on_own_disk(&home, "mount -o remount,ro \"$HISTORY\"", &arguments);
    let mut web = web.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can start");
    let mut lines = BufReader::new(web.stdout.take().expect("stdout is piped")).lines();
    let first = lines.next().expect("it says where it listens").expect("it is text");
    let address = first.rsplit("//").next().unwrap_or_default().trim_end_matches('/').to_owned();
    for _ in 0..3 {
        let mut browser = TcpStream::connect(&address).expect("it listens");
        let ask = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        browser.write_all(ask.as_bytes()).expect("it listens");
        let mut page = String::new();
        browser.read_to_string(&mut page).expect("it answers");
        assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("/results/3"), "{page}");
    }
    web.kill().expect("it runs");
    let said = web.wait_with_output().expect("it has ended");
    let said = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.matches("is of an older goodput").count(), 1, "{said}");
}

#[test]
fn old_results_are_deleted_on_request() {
    let home = filled();
    let pruned = home.run(&["history", "prune", "--keep", "1h"]);
    assert!(stdout(&pruned).contains("deleted 3 results"), "{}", stderr(&pruned));
    let nothing = stdout(&home.run(&["history"]));
    assert!(nothing.starts_with("all results were deleted; `goodput history"), "{nothing}");
    assert_eq!(nothing.lines().count(), 1, "{nothing}");
    let days = stdout(&home.run(&["history", "--target", "nas"]));
    assert!(days.starts_with("days of deleted results\n"), "no table of results: {days}");
    assert!(days.contains("2026-01-03") && days.contains("2026-01-01"), "{days}");
    assert!(!days.contains("2026-01-02"), "of another target: {days}");
    assert!(!days.contains("left out"), "there are no more: {days}");
    let newest = stdout(&home.run(&["history", "--target", "nas", "--last", "1"]));
    assert!(newest.contains("2026-01-03") && !newest.contains("2026-01-01"), "{newest}");
    assert!(newest.contains("older days are left out (--last 1); `goodput"), "{newest}");
    let exported = stdout(&home.run(&["history", "export", "--days", "--since", "2026-01-02"]));
    let lines: Vec<_> = exported.lines().collect();
    assert!(lines[1].starts_with("2026-01-02,test,\"backup,\"\"x\"\"\",tcp,"), "{exported}");
    assert!(lines[2].starts_with("2026-01-03,test,nas,tcp,"), "{exported}");
    assert_eq!(lines.len(), 3, "{exported}");
    for kind in ["watch", "compare"] {
        let refused = home.run(&["history", "export", "--days", "--kind", kind]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(refused.stdout.is_empty(), "{}", stdout(&refused));
    }
    let of_tests = stdout(&home.run(&["history", "export", "--days", "--kind", "test"]));
    assert_eq!(of_tests.lines().count(), 4, "{of_tests}");
}

#[test]
fn commands_that_only_read_make_no_history_and_name_the_place_without_one() {
    let home = Home::new();
    let wrong = home.path().join("typo.db");
    let page = home.path().join("page.html");
    let (wrong, page) = (wrong.to_str().expect("plain"), page.to_str().expect("plain"));
    for command in [
        &["history"][..],
        &["history", "last"],
        &["history", "export", "--csv"],
        &["history", "prune", "--keep", "1d"],
        &["report", "-o", page],
    ] {
        let output = home.run(&[&["--store", wrong], command].concat());
        let said = stdout(&output) + &stderr(&output);
        let named = said.contains(&format!("no results are kept yet in {wrong}"));
        assert!(named || command.contains(&"export"), "{command:?}: {said}");
        assert!(!std::path::Path::new(wrong).exists(), "{command:?}");
    }
}
