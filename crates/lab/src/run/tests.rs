//! Runs with a stand-in for goodput: a shell script that behaves as its first lines define.

use std::fs;
use std::path::PathBuf;

use goodput_testing::write_script;
use tempfile::TempDir;

use super::*;
use crate::testing::runnable;

/// A folder with a script that acts as goodput; `serve` and `test` are its commands for each verb. It records its
/// process number in `pids`.
fn stand_in(serve: &str, test: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goodput");
    let script = format!(
        "#!/bin/sh\necho $$ >> \"${{0%/*}}/pids\"\ncase \"$1\" in\nserve)\n{serve}\n;;\ntest)\n{test}\n;;\nesac\n"
    );
    write_script(&path, &script);
    (folder, path)
}

fn nobody_left(folder: &TempDir) {
    for pid in fs::read_to_string(folder.path().join("pids")).unwrap().lines() {
        assert!(!PathBuf::from(format!("/proc/{pid}")).exists(), "process {pid} is still there");
    }
}

/// Waits until it is asked to stop.
const WAITS: &str = "exec tail -f /dev/null";

/// A server that stays until it is asked to stop.
const SERVES: &str = "echo \"goodput: listening on $4\"; exec tail -f /dev/null";

#[test]
fn a_client_without_a_record_is_reported_with_code_and_words() {
    let Some(scenario) = runnable("") else { return };
    let (folder, path) = stand_in(SERVES, "echo \"no route: $*\" >&2; exit 2");
    let observed = run(&scenario, &path, &["--extra".into()]).unwrap();
    assert!(!observed.is_as_expected());
    let failed = observed.record.unwrap_err();
    assert_eq!(failed.exit_code, Some(2));
    assert_eq!(failed.stderr, "no route: test 10.77.1.2 --json --no-store --time 4 --extra\n");
    nobody_left(&folder);
}

#[test]
fn a_server_that_does_not_come_up_is_an_error_with_its_words() {
    let Some(scenario) = runnable("") else { return };
    let (folder, path) = stand_in("echo \"port taken\" >&2; exit 2", "exit 0");
    let error = run(&scenario, &path, &[]).unwrap_err().to_string();
    assert!(error.contains("goodput serve in far") && error.contains("port taken"), "{error}");
    nobody_left(&folder);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let Some(scenario) = runnable("") else { return };
    let error = run(&scenario, Path::new("/no/such/goodput"), &[]).unwrap_err().to_string();
    assert!(error.contains("/no/such/goodput"), "{error}");
}

#[test]
fn output_that_is_no_record_is_said_to_be_none() {
    let Some(scenario) = runnable("") else { return };
    let (folder, path) = stand_in(SERVES, "echo '{\"format\": 1}'");
    let observed = run(&scenario, &path, &[]).unwrap();
    let failed = observed.record.unwrap_err();
    assert!(failed.stderr.contains("not a record"), "{failed:?}");
    nobody_left(&folder);
}

#[test]
fn a_quota_is_on_each_process_that_it_names() {
    for (host, verb) in [("near", "test"), ("far", "serve")] {
        let body = format!("[[fault]]\nkind = \"cpu-quota\"\nhost = \"{host}\"\npercent = 20");
        let Some(scenario) = runnable(&body) else {
            continue;
        };
        // Both wait until they are in a group of the lab, or the client until the server was in one.
        let until_limited =
            "until grep -q goodput-lab- /proc/$$/cgroup; do :; done; echo $1 > \"${0%/*}/seen\"";
        let (serve, test) = match verb {
            "serve" => (
                format!("echo listening on; {until_limited}; {WAITS}"),
                "until [ -s \"${0%/*}/seen\" ]; do :; done",
            ),
            _ => (format!("echo listening on; {WAITS}"), until_limited),
        };
        let (folder, path) = stand_in(&serve, test);
        run(&scenario, &path, &[]).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("seen")).unwrap().trim(), verb);
        nobody_left(&folder);
    }
}

#[test]
fn a_client_that_does_not_end_is_given_up_and_killed() {
    let Some(scenario) = runnable("[run]\nwithin = \"300ms\"") else { return };
    let (folder, path) = stand_in(SERVES, WAITS);
    let error = run(&scenario, &path, &[]).unwrap_err().to_string();
    assert!(error.contains("did not end within 300ms"), "{error}");
    nobody_left(&folder);
}

#[test]
fn what_it_said_is_reported_of_a_program_that_is_given_up() {
    let (_folder, path) = stand_in("", &format!("echo stuck >&2; echo said; {WAITS}"));
    let mut command = Command::new(path);
    command.arg("test");
    let mut process = Process::start(command, "a stand-in").unwrap();
    process.wait_for_line("said", Duration::from_secs(60)).unwrap();
    while process.stderr().is_empty() {
        std::thread::yield_now();
    }
    let error = process.finish(Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains("did not end within 0ns") && error.contains("stuck"), "{error}");
}

#[test]
fn a_comparison_has_a_token_and_a_place_of_its_own() {
    let Some(scenario) = runnable("") else { return };
    let says = "exit 0\n;;\ncompare)\necho \"$*\" in $GOODPUT_STATE_DIR >&2; exit 2";
    let (folder, path) = stand_in(SERVES, says);
    let failed = compare(&scenario, &path, "mover=copy,splice", 7.0, folder.path()).unwrap();
    let said = failed.unwrap_err().stderr;
    let (place, token) = (folder.path().join("state"), folder.path().join("token"));
    assert!(said.starts_with("compare 10.77.1.2 mover=copy,splice "), "{said}");
    assert!(said.contains(&format!("--token-file {}", token.display())), "{said}");
    assert!(said.contains("--max-time 7 "), "{said}");
    assert!(said.ends_with(&format!("in {}\n", place.display())), "{said}");
    assert!(token.exists());
    nobody_left(&folder);
}
