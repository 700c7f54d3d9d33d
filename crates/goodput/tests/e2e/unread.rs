//! A reader of goodput's output may be gone, and a disk may be full: goodput then exits as documented and
//! never panics.

use std::fs::File;
use std::process::{ExitStatus, Output, Stdio};

use crate::common::{Home, refusing, stderr};

/// A file to which every write fails: there is no space left, or nobody reads any more.
fn unwritable() -> [(&'static str, Stdio); 2] {
    let full = File::options().write(true).open("/dev/full").expect("every Linux has it");
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    drop(reader);
    [("full", full.into()), ("closed", writer.into())]
}

fn with_errors_to(home: &Home, arguments: &[&str], errors: Stdio) -> ExitStatus {
    home.goodput(arguments).stdout(Stdio::null()).stderr(errors).status().expect("it starts")
}

fn with_results_to(home: &Home, arguments: &[&str], results: Stdio) -> Output {
    let child = home.goodput(arguments).stdout(results).stderr(Stdio::piped()).spawn();
    child.and_then(std::process::Child::wait_with_output).expect("it starts")
}

#[test]
fn an_error_that_nobody_can_read_changes_no_exit_code() {
    let home = Home::new();
    let (_bound, address) = refusing();
    let [own, iperf2] = ["", "iperf2://"].map(|protocol| format!("{protocol}{address}"));
    let fails: [&[&str]; 8] = [
        &["settings", "set", "nonsense=1"],
        &["settings", "get", "nope"],
        &["test", &own, "--no-store"],
        &["test", &iperf2, "--no-store"],
        &["history", "7"],
        &["explain", "nope"],
        &["no-such-verb"],
        &["as", "iperf3", "--no-such-option"],
    ];
    for arguments in fails {
        let read = home.run(arguments);
        assert!(!stderr(&read).is_empty() && !read.status.success(), "{arguments:?}");
        for (what, errors) in unwritable() {
            let unread = with_errors_to(&home, arguments, errors);
            assert_eq!(unread.code(), read.status.code(), "{arguments:?} to a {what} one");
        }
    }
}

#[test]
fn a_result_that_nobody_wants_is_no_error_and_one_that_is_lost_is() {
    let home = Home::new();
    let prints: [&[&str]; 9] = [
        &["--help"],
        &["test", "--help"],
        &["--version"],
        &["list", "rules"],
        &["settings", "list"],
        &["history"],
        &["explain", "pacing-cap"],
        &["as", "--list"],
        &["as", "iperf3", "-h"],
    ];
    for arguments in prints {
        let [(_, full), (_, closed)] = unwritable();
        let lost = with_results_to(&home, arguments, full);
        assert!(lost.status.code().is_some_and(|code| [1, 2].contains(&code)), "{arguments:?}");
        assert!(stderr(&lost).contains("No space left"), "{arguments:?}: {}", stderr(&lost));
        let unwanted = with_results_to(&home, arguments, closed);
        assert!(!stderr(&unwanted).contains("panicked"), "{arguments:?}: {}", stderr(&unwanted));
        assert!(unwanted.status.success(), "{arguments:?}: {}", stderr(&unwanted));
    }
}
