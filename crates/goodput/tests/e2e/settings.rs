//! Settings of the measurement, compared on loopback; settings of the machine are compared in the
//! lab (tests/lab.rs).

use goodput_model::Kind;

use crate::common::{Home, Server, stderr, stdout};

#[test]
fn two_movers_are_compared() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let output = home.run(&[
        "compare",
        &server.address,
        "mover=copy,sendfile",
        "--json",
        "--no-store",
        "-t",
        "0.3",
        "--max-time",
        "20",
    ]);
    // Whether it comes to a conclusion is the machine's business: 0 or 4.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", stderr(&output));
    let record: goodput_model::Record = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record.kind, Kind::Compare);
    let comparison = record.comparison.expect("a comparison");
    assert_eq!(comparison.arms.len(), 2);
    assert!(comparison.trials.len() >= 4, "{}", comparison.stopped);
}

#[test]
fn an_interrupted_run_of_nothing_leaves_nothing_to_undo() {
    let home = Home::new();
    let text = stdout(&home.run(&["settings", "undo"]));
    assert!(text.contains("nothing to undo"), "{text}");
}

#[test]
fn an_effective_value_can_be_read() {
    let home = Home::new();
    let text = stdout(&home.run(&["settings", "get", "sysctl.net.ipv4.tcp_rmem"]));
    assert_eq!(text.split_whitespace().count(), 3, "{text}");
    let unknown = home.run(&["settings", "get", "sysctl.net.ipv4.tcp_rmen"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("tcp_rmem"), "{}", stderr(&unknown));
}
