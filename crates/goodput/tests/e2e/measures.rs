//! Every way to measure, and that both ends' counts agree.

use std::io::{BufRead, BufReader};
use std::process::Command;

use goodput_model::{End, EndName, Known, Record};

use crate::common::{Home, Server, record, stdout};

fn measure(arguments: &[&str]) -> Record {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut all = vec!["test", &server.address, "--json", "--no-store"];
    all.extend(arguments);
    record(&home.run(&all))
}

fn senders(record: &Record) -> Vec<EndName> {
    record.result.directions.iter().map(|d| d.sender).collect()
}

/// TCP delivers every byte, so both ends must have counted the same.
fn counts_agree(record: &Record) {
    for direction in &record.result.directions {
        assert_eq!(direction.sent_bytes, direction.received_bytes, "{:?}", direction.sender);
        // All of it may have come after the time, from a host that was busy until then.
        assert!(direction.received_bytes.value().is_some_and(|bytes| *bytes > 0), "{direction:?}");
    }
}

/// Paced senders make up for little of a stall, so a busy host may send less, and never more. By the
/// sender's own clock: a receiver that was left alone finds more waiting than its time allows.
fn is_sent_no_faster(record: &Record, bits_per_s: f64) {
    for direction in &record.result.directions {
        let ends = [&record.ends.near, &record.ends.far];
        let end = ends[usize::from(direction.sender == EndName::Far)].value();
        let last = end.and_then(|end| end.samples.last()).expect("the sender's end reports");
        let sent = last.sent_bytes as f64 * 8.0;
        assert!(sent > 0.0 && sent < bits_per_s * 1.02 * last.at_s, "{sent} bits, {last:?}");
        assert!(direction.received_bytes.value().is_some_and(|bytes| *bytes > 0), "{direction:?}");
    }
}

#[test]
fn tcp_is_sent_by_default() {
    let record = measure(&["-t", "1"]);
    assert_eq!(senders(&record), [EndName::Near]);
    counts_agree(&record);
    assert!(record.ends.far.value().is_some(), "the far end reports");
    assert!(!record.intervals.is_empty());
}

#[test]
fn tcp_in_reverse() {
    let record = measure(&["-t", "1", "--reverse"]);
    assert_eq!(senders(&record), [EndName::Far]);
    counts_agree(&record);
}

#[test]
fn tcp_both_ways_at_once_with_several_flows() {
    let record = measure(&["-t", "1", "--both", "-P", "3"]);
    assert_eq!(senders(&record), [EndName::Near, EndName::Far]);
    counts_agree(&record);
    assert!(record.verdict_reverse.is_some());
}

#[test]
fn a_number_of_bytes_is_sent_exactly() {
    let record = measure(&["-n", "10000001", "-P", "3"]);
    assert_eq!(record.result.directions[0].received_bytes, Known::Value(10_000_001));
}

#[test]
fn the_default_length_ends_by_itself() {
    let record = measure(&[]);
    let last = record.intervals.last().expect("there is an interval");
    assert!(last.to_s >= 1.9, "{last:?}");
    // Ten, and what came after the end. On a host that is busy they are longer, and no more.
    assert!(record.intervals.len() <= 11, "{:?}", record.intervals);
}

#[test]
fn udp_counts_every_datagram() {
    let record = measure(&["-u", "-t", "1", "--rate", "20mbit"]);
    let direction = &record.result.directions[0];
    is_sent_no_faster(&record, 20e6);
    assert!(matches!(direction.lost_percent, Known::Value(_)), "{:?}", direction.lost_percent);
}

#[test]
fn a_paced_flow_is_judged_by_its_gaps() {
    let paced = ["-u", "-t", "1", "-P", "2", "--rate", "5mbit/flow"];
    let record = measure(&paced);
    assert_eq!(record.plan.rate_bits_per_s.map(|rate| rate.0), Some(1e7));
    let direction = &record.result.directions[0];
    let even = *direction.even_gaps_percent.get().unwrap();
    assert!((0.0..=100.0).contains(&even), "{even}");
    assert_eq!((&direction.reordered, &direction.duplicated), (&Known::Value(0), &Known::Value(0)));
    let in_bursts = measure(&[&paced[..], &["--burst", "10ms"]].concat());
    // 10 ms at 5 Mbit/s are 4 datagrams of 1472 bytes.
    assert_eq!(in_bursts.plan.burst_bytes.map(|burst| burst.0), Some(6250));
    assert!(*in_bursts.result.directions[0].even_gaps_percent.get().unwrap() < 50.0);
}

#[test]
fn times_to_leave_that_no_qdisc_holds_are_doubted() {
    let record = measure(&["-u", "-t", "1", "--rate", "50mbit", "--mover", "txtime"]);
    is_sent_no_faster(&record, 50e6);
    // On loopback.
    assert!(record.doubts.iter().any(|text| text.contains("fq")), "{:?}", record.doubts);
}

#[test]
fn offloads_of_udp_are_switched_at_each_end() {
    let joined = |movers: &[&str]| {
        let record =
            measure(&[&["-u", "-t", "1", "--rate", "200mbit", "--burst", "64K"], movers].concat());
        *record.result.directions[0].joined_percent.get().unwrap()
    };
    assert_eq!(joined(&["--mover", "gso"]), 0.0);
    assert_eq!(joined(&["--mover", "plain", "--receive-mover", "gro"]), 0.0);
    assert!(joined(&["--mover", "gso", "--receive-mover", "gro"]) > 50.0);
}

#[test]
fn udp_in_reverse() {
    let record = measure(&["-u", "-R", "-t", "1", "--rate", "20mbit"]);
    assert_eq!(senders(&record), [EndName::Far]);
    is_sent_no_faster(&record, 20e6);
}

#[test]
fn a_rate_is_held() {
    let record = measure(&["-t", "2", "--rate", "100mbit"]);
    // That the verdict is the pacing, the lab's scenarios judge: it takes CPUs that nobody else uses.
    is_sent_no_faster(&record, 100e6);
}

#[test]
fn sendfile_moves_the_same_bytes() {
    let record = measure(&["-n", "1M", "--mover", "sendfile"]);
    counts_agree(&record);
}

#[test]
fn socket_options_reach_both_ends() {
    let record = measure(&["-t", "1", "--rcvbuf", "64K", "--congestion", "reno", "--nodelay"]);
    let far = record.ends.far.value().expect("the far end reports");
    let memory = far.samples.iter().flat_map(|s| &s.flows).find_map(|f| f.memory.value().copied());
    assert_eq!(memory.map(|m| m.rcvbuf_bytes), Some(2 * 65536), "doubled by the kernel");
}

#[test]
fn waiting_and_polling_options_are_agreed_with_the_far_end() {
    let options = ["-n", "1M", "--quickack", "--notsent-lowat", "64K", "--busy-poll", "0"];
    let record = measure(&[&options[..], &["--priority", "6", "--reverse"]].concat());
    counts_agree(&record);
    assert_eq!(record.plan.socket.quickack, Some(true));
    assert_eq!(record.plan.socket.priority, Some(6));
    let other = |doubt: &&String| doubt.contains("was requested");
    assert_eq!(record.doubts.iter().find(other), None);
}

#[test]
fn ipv6_works_like_ipv4() {
    let home = Home::new();
    let server = Server::start(&home, &["--bind", "::1"]);
    let record = record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M"]));
    counts_agree(&record);
}

/// By default a datagram fits into 1500 bytes with the headers of the IP version in use.
#[test]
fn datagrams_leave_in_one_piece_over_both_ip_versions() {
    let home = Home::new();
    for (bind, bytes) in [("127.0.0.1", 1472), ("::1", 1452)] {
        let server = Server::start(&home, &["--bind", bind]);
        let options = ["--json", "--no-store", "-n", "50K", "-u", "--rate", "10mbit"];
        let record = record(&home.run(&[&["test", &server.address][..], &options].concat()));
        assert_eq!(record.plan.chunk_bytes.0, bytes, "{bind}");
    }
}

#[test]
fn text_shows_number_verdict_and_intervals() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let output = home.run(&["test", &server.address, "--no-store", "-t", "1", "-i", "0.5"]);
    let text = stdout(&output);
    let place = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} in {text}"));
    // The first interval is longer if a host was busy.
    assert!(place("0.0–") < place("received,"), "{text}");
    assert!(place("received,") < place("cpu   "), "{text}");
    assert!(place("cpu   ") < place("limit"), "{text}");
}

#[test]
fn observing_can_be_switched_off() {
    let record = measure(&["-t", "1", "--no-observe"]);
    let last = |end: &Known<End>| end.value().and_then(|end| end.samples.last()).cloned();
    let [near, far] = [&record.ends.near, &record.ends.far].map(|end| last(end).expect("a sample"));
    assert!(near.sent_bytes > 0 && near.sent_bytes == far.received_bytes, "{near:?} {far:?}");
    assert!(matches!(record.result.near.cpu_percent, Known::Missing(_)));
}

#[test]
fn an_interrupted_test_shows_what_it_has() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut child = home
        .goodput(&["test", &server.address, "--no-store", "-t", "60", "-i", "0.2"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // An interval means that payload moves.
    assert!(lines.any(|line| line.unwrap().contains("bit/s")));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let rest: String = lines.map(Result::unwrap).collect();
    assert!(rest.contains("received") && rest.contains("interrupted after"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

/// The server stands still, so the first interrupt waits for its report in vain.
#[test]
fn a_second_interrupt_ends_at_once() {
    let home = Home::new();
    let mut server = Server::start(&home, &[]);
    let mut child = home
        .goodput(&["test", &server.address, "--no-store", "-t", "60", "--json-stream"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |event: &str| assert!(lines.any(|line| line.unwrap().contains(event)));
    let kill = |signal: &str, pid: u32| {
        let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
        assert!(sent.unwrap().success());
    };
    until(r#""event":"interval""#);
    kill("-STOP", server.pid());
    kill("-INT", child.id());
    until(r#""event":"ended""#);
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    // Without the second it would be given up after 15 s, with a record and other words.
    assert_eq!(String::from_utf8_lossy(&output.stderr).trim(), "goodput: interrupted");
    kill("-CONT", server.pid());
    assert!(server.stop("-TERM").success());
}
