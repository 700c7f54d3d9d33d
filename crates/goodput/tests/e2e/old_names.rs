//! Called by another program's name: its options, its output, its exit codes.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::{Home, Server, refusing, stderr, stdout};

/// Runs goodput under `name`, through a link as `goodput as --install` makes it.
fn called_as(home: &Home, name: &str, arguments: &[&str]) -> Output {
    let names = home.path().join("names");
    let path = names.to_str().expect("a temporary directory has a plain name");
    let installed = home.run(&["as", "--install", path]);
    assert!(installed.status.success(), "{}", stderr(&installed));
    let mut command = Command::new(names.join(name));
    command.args(arguments).env("XDG_DATA_HOME", home.path());
    command.env("GOODPUT_STATE_DIR", home.path().join("state")).stdin(Stdio::null());
    command.output().expect("the link can be run")
}

fn fine(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, stderr(output));
    stdout(output)
}

#[test]
fn iperf3_measures_and_prints_its_tables_or_its_json() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let host = format!("goodput://{}", server.address);
    let text = fine(&called_as(&home, "iperf3", &["-c", &host, "-t", "1", "-P", "2", "-i", "0.5"]));
    assert!(text.starts_with("Connecting to host 127.0.0.1, port "), "{text}");
    assert!(text.lines().any(|line| line.starts_with("[SUM]") && line.ends_with("receiver")));
    assert!(text.ends_with("\niperf Done.\n"), "{text}");
    let json = fine(&called_as(&home, "iperf3", &["-c", &host, "-t", "1", "-R", "-J"]));
    let tree: Value = serde_json::from_str(&json).expect("stdout is one JSON object");
    assert_eq!(tree["start"]["test_start"]["reverse"], 1);
    assert!(tree["end"]["sum_received"]["bits_per_second"].as_f64().is_some_and(|rate| rate > 0.0));
    assert!(tree["intervals"].as_array().is_some_and(|intervals| !intervals.is_empty()));
}

#[test]
fn the_others_print_their_lines_while_it_runs_and_at_the_end() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let host = format!("goodput://{}", server.address);
    let text = fine(&called_as(&home, "nuttcp", &["-T1", "-i0.5", "-fparse", &host]));
    assert!(text.contains(" real_sec=") || text.contains("\n\nmegabytes="), "{text}");
    let seconds = text.lines().last().and_then(|line| line.split_once(" real_seconds="));
    let seconds = seconds.and_then(|(_, rest)| rest.split(' ').next()?.parse::<f64>().ok());
    // The receiver's time, which begins later on a host that is busy.
    assert!(seconds.is_some_and(|seconds| seconds > 0.0), "{text}");
    let text = fine(&called_as(&home, "iperf", &["-c", &host, "-t", "1", "-u", "-y", "C"]));
    let rows: Vec<_> = text.lines().map(|row| row.split(',').count()).collect();
    assert_eq!(rows, [14, 14], "{text}");
    let text = fine(&called_as(&home, "ttcp", &["-t", "-s", "-n", "100", &host]));
    assert!(text.contains("ttcp-t: 819200 bytes in "), "{text}");
}

#[test]
fn a_buffer_that_the_kernel_cuts_is_warned_of_as_the_programs_do() {
    let limit = std::fs::read_to_string("/proc/sys/net/core/wmem_max").expect("proc is there");
    if limit.trim().parse::<u64>().expect("a number") >= 200 << 20 {
        return goodput_testing::skip("a net.core.wmem_max below 200M");
    }
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let host = format!("goodput://{}", server.address);
    for (name, arguments) in [
        ("iperf", &["-n", "1M", "-w", "200M", "-c", &host][..]),
        ("nuttcp", &["-T1", "-w200m", &host]),
    ] {
        let cut = called_as(&home, name, arguments);
        let said = stderr(&cut);
        assert!(said.contains("warning: a send buffer of 209715200 bytes was requested"), "{said}");
    }
}

#[test]
fn failures_end_with_one_and_are_said_as_the_program_says_them() {
    let home = Home::new();
    let unknown = called_as(&home, "iperf3", &["-c", "127.0.0.1", "--nosuch"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).starts_with("iperf3: error - unrecognized option '--nosuch'"));
    let refused = called_as(&home, "iperf", &["-c", "127.0.0.1", "--trip-times"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("option --trip-times is refused: "), "{}", stderr(&refused));
    // A port that is taken and that nobody answers goodput on.
    let silent = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = silent.local_addr().expect("a listener has an address").port().to_string();
    let taken = called_as(&home, "iperf3", &["-s", "-D", "-B", "127.0.0.1", "-p", &port]);
    assert_eq!(taken.status.code(), Some(1), "{}", stderr(&taken));
    let (_bound, nobody) = refusing();
    let port = nobody.port().to_string();
    let gone = called_as(&home, "iperf3", &["-c", "127.0.0.1", "-p", &port, "-J"]);
    assert_eq!(gone.status.code(), Some(1));
    let tree: Value = serde_json::from_slice(&gone.stdout).expect("the error is JSON as well");
    assert!(tree["error"].as_str().is_some_and(|why| why.contains("refused")), "{tree}");
    assert_eq!(stderr(&gone), "");
}

#[test]
fn as_and_show_do_it_without_a_link() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let host = format!("goodput://{}", server.address);
    let text = fine(&home.run(&["as", "iperf3", "-c", &host, "-n", "1M", "-V"]));
    assert!(text.ends_with("\niperf Done.\n"), "{text}");
    let shown = home.run(&["as", "--show", "nuttcp", "-r", "-v0", "h"]);
    assert_eq!(shown.status.code(), Some(1), "{}", stdout(&shown));
    let shown = home.run(&["as", "--show", "nuttcp", "-r", "h"]);
    let expected =
        "goodput test nuttcp://h --reverse --chunk=65536 --time=10 --format=nuttcp --no-store\n";
    assert_eq!(stdout(&shown), expected);
}

#[test]
fn a_kept_result_is_printed_in_any_format() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let output = home.run(&["test", &server.address, "-n", "1M", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json = stdout(&home.run(&["history", "1", "--format", "iperf3"]));
    let tree: Value = serde_json::from_str(&json).expect("stdout is one JSON object");
    let record: Value = serde_json::from_slice(&output.stdout).expect("stdout is one record");
    let received = &record["result"]["directions"][0]["received_bytes"];
    assert_eq!(&tree["end"]["sum_received"]["bytes"], received);
}
