//! A limit of the server's operator: the log says it, and no count exceeds it. That the verdict names it, the lab judges.

use goodput_model::{EndName, Record};

use crate::common::{Home, Server, found, record};

const RULE: &str = "server-limit";
const LIMIT: &str = "50mbit";
const LIMIT_BITS_PER_S: f64 = 50e6;
/// What may exceed the limit: what a stream makes up for after a stall, 300 ms of it, and the last datagram.
/// Datagrams have less: 50 ms for a late reader, and up to 100 ms in their socket on loopback.
const BURST_BYTES: f64 = LIMIT_BITS_PER_S / 8.0 * 0.3 + 2000.0;

fn measure(server: &[&str], client: &[&str]) -> Record {
    let home = Home::new();
    let server = Server::start(&home, server);
    let test = ["test", &server.address, "--json", "--no-store"];
    record(&home.run(&[&test[..], client].concat()))
}

fn is_undecided(record: &Record) -> bool {
    record.undecided.iter().any(|undecided| undecided.rule == RULE)
}

#[test]
fn the_limit_holds_whoever_sends_and_however() {
    for options in
        [&["-t", "2"][..], &["-t", "2", "-R"], &["-t", "2", "-u"], &["-t", "2", "-u", "-R"]]
    {
        let record = measure(&["--max-rate", LIMIT], options);
        let (rate, seconds) = (record.result.goodput_bits_per_s.0, record.result.duration_s);
        let most = LIMIT_BITS_PER_S * seconds + BURST_BYTES * 8.0;
        assert!(rate * seconds <= most, "{options:?}: {rate} bit/s over {seconds} s");
        let far = record.ends.far.value().expect("the server reports");
        let held = far.held_to.as_deref().expect("it reports its limits");
        assert_eq!(held.len(), 1, "{held:?}");
    }
}

#[test]
fn a_server_without_a_limit_is_none() {
    for options in [&["-t", "1"][..], &["-t", "1", "-u", "--rate", "20mbit"]] {
        let record = measure(&[], options);
        assert!(!found(&record, RULE) && !is_undecided(&record), "{options:?}");
        let far = record.ends.far.value().expect("the server reports");
        assert_eq!(far.held_to.as_deref(), Some(&[][..]), "that is known");
    }
}

#[test]
fn a_limit_that_is_not_reached_is_none() {
    let record = measure(&["--max-rate", "1gbit"], &["-t", "1", "--rate", "20mbit"]);
    assert!(!found(&record, RULE) && !is_undecided(&record), "{:?}", record.findings);
}

/// The line of the server's log that says what was measured.
fn log_line(home: &Home) -> String {
    let log = std::fs::read_to_string(home.path().join("server.log")).expect("there is a log");
    let line = log.lines().find(|line| line.contains(" measured: "));
    line.unwrap_or_else(|| panic!("nothing was measured: {log}")).to_owned()
}

#[test]
fn the_log_says_what_held_the_clients_of_other_protocols() {
    for (protocol, options) in [
        ("iperf3", &["-t", "1"][..]),
        ("iperf3", &["-t", "1", "-R"]),
        ("iperf2", &["-t", "1"]),
        ("iperf2", &["-t", "1", "-u", "--rate", "200mbit"]),
    ] {
        let home = Home::new();
        let server = Server::start(&home, &["--max-rate", LIMIT]);
        let target = format!("{protocol}://{}", server.address);
        let test = ["test", &target, "--json", "--no-store"];
        let record = record(&home.run(&[&test[..], options].concat()));
        assert_eq!(record.result.directions.len(), 1);
        // Its last words may come after the client's.
        goodput_testing::wait_for("it is logged", || {
            let log = std::fs::read_to_string(home.path().join("server.log"));
            log.is_ok_and(|log| log.contains(" measured: "))
        });
        let line = log_line(&home);
        assert!(
            line.contains("; --max-rate 50 Mbit/s held it for "),
            "{target} {options:?}: {line}"
        );
        assert!(line.contains(" % of the time"), "{line}");
    }
}

/// What it reports to its client is all that it counted, over the time between the first datagram and the last.
#[test]
fn a_server_counts_no_more_datagrams_than_its_limit_and_a_burst() {
    let home = Home::new();
    let server = Server::start(&home, &["--max-rate", LIMIT]);
    let target = format!("iperf2://{}", server.address);
    let test = ["test", &target, "--json", "--no-store", "-t", "1", "-u", "--rate", "200mbit"];
    let record = record(&home.run(&test));
    let totals = record.far_totals.as_ref().expect("it reports its count");
    let flow = &totals.flows[0];
    let (bytes, seconds) = (*flow.bytes.get().unwrap(), *flow.duration_s.get().unwrap());
    let most = LIMIT_BITS_PER_S / 8.0 * seconds + BURST_BYTES;
    assert!(bytes as f64 <= most, "{bytes} bytes in {seconds} s, {most} at most");
    assert_eq!(record.result.directions[0].sender, EndName::Near);
}
