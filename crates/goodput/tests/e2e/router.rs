//! `goodput shaping --router` with routers that can't answer, by a real SSH server. The test on a path through a router is
//! in `lab/shaping_classes.rs`.

use goodput_testing::{Sshd, write_script};

use crate::common::{Home, Server, stderr};

/// Runs `goodput shaping` with a router whose `ip` and `tc` are these scripts. The exit code and standard error; `None`
/// if this machine has no SSH server.
fn asked(ip: &str, tc: &str, router: &str) -> Option<(Option<i32>, String)> {
    let programs = tempfile::tempdir().expect("a folder");
    for (name, script) in [("ip", ip), ("tc", tc)] {
        write_script(&programs.path().join(name), &format!("#!/bin/sh\n{script}\n"));
    }
    let forced = format!("PATH={}:$PATH exec /bin/sh", programs.path().display());
    let sshd = Sshd::start(&forced)?;
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let words = ["shaping", &server.address, "--rate", "10mbit", "--no-store", "--router", router];
    let mut command = home.goodput(&words);
    let output = command.env("GOODPUT_SSH_CONFIG", sshd.config()).output().expect("goodput starts");
    assert!(output.stdout.is_empty(), "nothing was measured");
    Some((output.status.code(), stderr(&output)))
}

const ROUTE: &str = "echo '127.0.0.1 dev eth7 src 127.0.0.1'";

#[track_caller]
fn ends(asked: Option<(Option<i32>, String)>, code: i32, words: &[&str]) {
    let Some((ended, said)) = asked else { return };
    assert_eq!(ended, Some(code), "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

#[test]
fn a_router_that_forbids_ends_the_test() {
    let tc = "echo 'RTNETLINK answers: Operation not permitted' >&2; exit 2";
    ends(asked(ROUTE, tc, "ssh://b"), 3, &["tc -s -d qdisc show dev eth7", "not permitted"]);
}

#[test]
fn a_router_without_tc_is_named_with_the_program() {
    ends(asked(ROUTE, "exit 127", "ssh://b"), 2, &["ssh://b", "tc"]);
}

#[test]
fn a_router_that_answers_nonsense_is_quoted() {
    ends(asked(ROUTE, "echo banana", "ssh://b"), 2, &["tc -s -d qdisc show dev eth7", "banana"]);
    let tc = "case \"$*\" in *class*) echo 'class htb 1:1 root rate fast';; \
              *) echo 'qdisc htb 1: root direct_packets_stat 0'; \
              echo ' Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)';; esac";
    ends(asked(ROUTE, tc, "ssh://b"), 2, &["class show dev eth7", "rate fast"]);
    ends(asked("echo unreachable", tc, "ssh://b"), 2, &["ip route get 127.0.0.1", "unreachable"]);
}

#[test]
fn a_router_that_lets_nobody_in_is_named() {
    ends(asked(ROUTE, "", "ssh://locked"), 3, &["can't log in to", "locked"]);
    ends(asked(ROUTE, "", "iperf3://b"), 2, &["ssh://root@router"]);
}
