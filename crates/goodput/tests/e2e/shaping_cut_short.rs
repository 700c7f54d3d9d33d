//! `goodput shaping` that ends early, or loses its router, once the datagrams of its train came: what they show is not lost.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use goodput_model::{Known, Record};
use goodput_testing::{Sshd, write_script};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Home, Server};

/// Runs a test that prints a line of JSON for each event. At the first line with `words` it does something. Returns the exit
/// code and the record.
fn shaping(command: &mut Command, words: &str, then: impl FnOnce(Pid)) -> (Option<i32>, Record) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let stdout = child.stdout.take().expect("stdout is piped");
    let (mut then, mut last) = (Some(then), String::new());
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        if line.contains(words)
            && let Some(then) = then.take()
        {
            then(Pid::from_child(&child));
        }
        last = line;
    }
    let status = child.wait().expect("it was a child");
    assert!(then.is_none(), "no {words:?} before {last}");
    let line: serde_json::Value = serde_json::from_str(&last).expect("a line is JSON");
    let record = serde_json::from_value(line["record"].clone()).expect("the last has the record");
    (status.code(), record)
}

/// So slow that no socket's buffer overflows while this machine is busy.
fn words(server: &Server) -> [&str; 6] {
    ["shaping", &server.address, "--rate", "200kbit", "--no-store", "--json-stream"]
}

#[test]
fn what_datagrams_showed_is_kept_after_an_interrupt() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut command = home.goodput(&words(&server));
    let interrupt = |pid| kill_process(pid, Signal::INT).expect("it runs");
    let (code, record) = shaping(&mut command, "measures TCP", interrupt);
    let test = record.shaping.expect("it is a test of a shaper");
    assert_eq!(code, Some(2));
    assert!(test.train.value().is_some(), "{:?}", test.train);
}

/// The router answers until the train begins.
#[test]
fn what_datagrams_showed_is_kept_without_the_router() {
    let programs = tempfile::tempdir().expect("a folder");
    let lost = programs.path().join("lost");
    let tc = format!(
        r#"if [ -e {} ]; then echo 'no route to host' >&2; exit 2; fi
        case "$*" in
            *class*) ;;
            *-j*) echo '[{{"kind":"tbf","handle":"1:","root":true,"options":{{"rate":25000,"limit":90000}}}}]';;
            *) echo 'qdisc tbf 1: root refcnt 2 rate 200Kbit burst 70000b/1 mpu 0b lat 800ms linklayer ethernet '
               echo ' Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) ';;
        esac"#,
        lost.display()
    );
    for (name, script) in [("ip", "echo '127.0.0.1 dev eth7 src 127.0.0.1'"), ("tc", &tc)] {
        write_script(&programs.path().join(name), &format!("#!/bin/sh\n{script}\n"));
    }
    let forced = format!("PATH={}:$PATH exec /bin/sh", programs.path().display());
    let Some(sshd) = Sshd::start(&forced) else { return };
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut command = home.goodput(&words(&server));
    command.args(["--router", "ssh://b"]).env("GOODPUT_SSH_CONFIG", sshd.config());
    let lose = |_| std::fs::write(&lost, "").expect("the folder is there");
    let (_, record) = shaping(&mut command, "waits 1 s for the bucket", lose);
    let test = record.shaping.expect("it is a test of a shaper");
    let Known::Value(train) = &test.train else { panic!("{:?}", test.train) };
    assert!(train.rate_waits_per_call.value().is_none(), "{:?}", train.rate_waits_per_call);
    let why = test.shaper.get().expect_err("the router is lost").to_string();
    assert!(why.contains("no route to host"), "{why}");
}
