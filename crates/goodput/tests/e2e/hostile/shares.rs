//! What one client gets of what all share, and what is left to others.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use goodput_model::{BitRate, Bytes, Plan};
use serde_json::Value;

use super::doors::log;
use super::stranger::Stranger;
use super::{SOON, eventually, seconds};
use crate::common::{Home, Server, record};

fn from(last: u8, server: &Server) -> Stranger {
    Stranger::greet_from([127, 0, last, 1].into(), &server.address)
}

fn is_taken(answer: &Value) -> bool {
    answer["accept"].is_object()
}

fn refusal(answer: &Value) -> &str {
    answer["refuse"]["why"].as_str().unwrap_or_else(|| panic!("not refused: {answer}"))
}

#[test]
fn one_client_cannot_take_all_measurements() {
    let home = Home::new();
    let server = Server::start(&home, &["--max-clients", "8"]);
    let mut greedy: Vec<_> = (0..3).map(|_| from(2, &server)).collect();
    let answers: Vec<_> = greedy.iter_mut().map(|one| one.propose(1, &seconds(60.0))).collect();
    assert!(is_taken(&answers[0]) && is_taken(&answers[1]), "{answers:?}");
    let why = refusal(&answers[2]);
    assert!(why.starts_with("busy: this takes 1 measurement, and one client may have 2"), "{why}");
    let mut other = from(3, &server);
    assert!(is_taken(&other.propose(1, &seconds(1.0))));
}

#[test]
fn who_proposes_much_memory_and_sends_nothing_locks_nobody_out() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let plan = Plan { flows: 128, chunk_bytes: Bytes(16 << 20), ..seconds(60.0) };
    let mut held = Vec::new();
    let why = loop {
        let mut greedy = from(2, &server);
        let answer = greedy.propose(1, &plan);
        held.push(greedy);
        if !is_taken(&answer) {
            break refusal(&answer).to_string();
        }
        assert!(held.len() < 1000, "there is no end to it");
    };
    assert!(why.contains("one client may have") && why.contains("fewer flows"), "{why}");
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-t", "1", "-P", "8"]));
}

#[test]
fn who_does_not_send_its_flows_waits_the_next_time() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut idle: Vec<_> = (0..3).map(|_| from(2, &server)).collect();
    for one in &mut idle {
        assert!(is_taken(&one.propose(1, &seconds(60.0))));
    }
    for one in &mut idle {
        assert!(!refusal_or_goodbye(&one.hear_of(&["finish"])).is_empty());
    }
    // It may be told before the last one is noted.
    eventually("it is told to wait", || {
        let again = from(2, &server).propose(1, &seconds(1.0));
        again["refuse"]["why"].as_str().is_some_and(|why| why.starts_with("busy: the flows of "))
    });
    assert!(is_taken(&from(3, &server).propose(1, &seconds(1.0))));
}

/// Why a measurement or a conversation was ended.
fn refusal_or_goodbye(said: &Value) -> String {
    let why = &said["refuse"]["why"];
    why.as_str().or(said["goodbye"]["why"].as_str()).unwrap_or_default().into()
}

#[test]
fn rates_are_shared_by_one_client_and_by_all() {
    let home = Home::new();
    let options = ["--max-total-rate", "1gbit", "--max-rate", "600mbit"];
    let server = Server::start(&home, &options);
    let (mut one, mut again) = (from(2, &server), from(2, &server));
    assert!(is_taken(&one.propose(1, &seconds(60.0))));
    let answer = again.propose(1, &seconds(60.0));
    assert!(refusal(&answer).contains("one client may have 600 Mbit/s"), "{answer}");
    let answer = from(3, &server).propose(1, &seconds(60.0));
    assert!(refusal(&answer).contains("all clients together may have 1 Gbit/s"), "{answer}");
    let slow = Plan { rate_bits_per_s: Some(BitRate(3e8)), ..seconds(60.0) };
    assert!(is_taken(&from(3, &server).propose(1, &slow)));
}

/// Sends as fast as it is taken, until `until` or until nobody takes any more.
fn pour(mut flow: TcpStream, until: Instant) {
    flow.set_write_timeout(Some(Duration::from_millis(100))).expect("a time that is not zero");
    while Instant::now() < until {
        match flow.write(&[0; 65_536]) {
            Ok(_) => {}
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

#[test]
fn a_rate_that_is_claimed_holds_for_what_is_received() {
    let home = Home::new();
    let server = Server::start(&home, &["--max-rate", "50gbit"]);
    let plan = Plan { rate_bits_per_s: Some(BitRate(1e6)), ..seconds(1.0) };
    let mut liar = Stranger::greet(&server.address);
    let flows = liar.begin(&plan);
    let until = Instant::now() + Duration::from_secs(2);
    for flow in flows {
        pour(flow, until);
    }
    let received = || {
        let log = log(&home);
        let (_, rest) = log.split_once("measured: ")?.1.split_once("received ")?;
        rest.split_once(' ')?.0.parse::<u64>().ok()
    };
    eventually("it has an end", || received().is_some());
    // 125 kB/s, a quarter more, for as long as it took; without the bound it is gigabytes.
    let received = received().expect("it was there");
    assert!(received < 125_000 * SOON.as_secs(), "{received} bytes");
}

#[test]
fn networks_that_are_denied_are_not_talked_to() {
    let home = Home::new();
    let options = ["--allow", "127.0.0.0/8", "--deny", "127.0.9.0/24,::/0"];
    let server = Server::start(&home, &options);
    let mut denied = Stranger::connect_from([127, 0, 9, 1].into(), &server.address);
    // It may be closed before it has said a word.
    let _ = denied.stream.write_all(b"goodputc");
    assert_eq!(denied.stream.read(&mut [0; 8]).unwrap_or(0), 0, "closed without a word");
    let hello = [&b"goodputh"[..], &[7; 16], &[0; 40]].concat();
    let ask = |from: &str| {
        let socket = UdpSocket::bind((from, 0)).expect("all of 127/8 is this host");
        socket.set_read_timeout(Some(SOON)).expect("a time that is not zero");
        socket.send_to(&hello, &server.address).expect("it is this host");
        socket
    };
    let (silent, answered) = (ask("127.0.9.1"), ask("127.0.8.1"));
    // They are looked at in their order.
    assert!(answered.recv(&mut [0; 2000]).is_ok());
    silent.set_nonblocking(true).expect("a socket can be told so");
    let cause = silent.recv(&mut [0; 2000]).expect_err("no answer came");
    assert_eq!(cause.kind(), ErrorKind::WouldBlock);
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-t", "1"]));
}
