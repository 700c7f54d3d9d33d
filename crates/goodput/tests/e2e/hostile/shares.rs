//! What one client gets of what all share, and what is left to others.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use goodput_model::{BitRate, Bytes, Plan};
use goodput_testing::{WAIT_TIMEOUT, wait_for};
use serde_json::Value;

use super::listeners::log;
use super::raw_peer::RawPeer;
use super::seconds;
use crate::common::{Home, Server, record};

fn from(last: u8, server: &Server) -> RawPeer {
    RawPeer::greet_from([127, 0, last, 1].into(), &server.address)
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
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M", "-P", "8"]));
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
    // The refusal may come before the last measurement is noted.
    wait_for("the client has to wait", || {
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

/// Bytes that a server has received in each of the measurements that have ended.
fn received(home: &Home) -> Vec<u64> {
    let log = log(home);
    let ended = log.lines().filter_map(|line| line.split_once("measured: "));
    let bytes = ended.filter_map(|(_, rest)| rest.split_once("received ")?.1.split(' ').next());
    bytes.map(|bytes| bytes.parse().expect("a number of bytes")).collect()
}

#[test]
fn measurements_of_one_client_share_its_rate_whatever_they_claim() {
    let home = Home::new();
    let server = Server::start(&home, &["--max-rate", "80mbit"]);
    let claimed = Plan { rate_bits_per_s: Some(BitRate(1e6)), ..seconds(1.0) };
    let since = Instant::now();
    let mut liars = [from(2, &server), from(2, &server)];
    let flows: Vec<_> = liars.iter_mut().flat_map(|liar| liar.begin(&claimed)).collect();
    let until = Instant::now() + Duration::from_secs(2);
    let pouring = flows.into_iter().map(|flow| std::thread::spawn(move || pour(flow, until)));
    pouring.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().expect("it ends"));
    wait_for("both have an end", || received(&home).len() == 2);
    let received = received(&home);
    // What was saved while nothing moved, and a piece of each.
    let most = 1e7 * (since.elapsed().as_secs_f64() + 0.05) + 2.0 * 65_536.0;
    assert!(received.iter().all(|bytes| *bytes > 0), "one took all: {received:?}");
    assert!((received.iter().sum::<u64>() as f64) < most, "{received:?} of {most}");
}

/// One bounceback message of iperf 2 from `127.0.last.1`; what came back of it.
fn bounced(last: u8, server: &Server) -> std::io::Result<usize> {
    let mut message = [0; 48];
    message[..4].copy_from_slice(&0x0080_0000_u32.to_be_bytes());
    message[4..8].copy_from_slice(&48_u32.to_be_bytes());
    let mut peer = RawPeer::connect_from([127, 0, last, 1].into(), &server.address);
    peer.send(&message);
    peer.stream.read(&mut message)
}

#[test]
fn a_conversation_that_measures_takes_a_place_as_flows_do() {
    let home = Home::new();
    let server = Server::start(&home, &["--max-clients", "2"]);
    let mut measuring = from(2, &server);
    measuring.begin(&seconds(60.0));
    assert!(bounced(2, &server).map_or(true, |bytes| bytes == 0), "its client has its share");
    assert_eq!(bounced(3, &server).expect("there is a place for another"), 48);
    drop(measuring);
    wait_for("its place is free again", || bounced(2, &server).is_ok_and(|bytes| bytes == 48));
}

#[test]
fn networks_that_are_denied_are_not_talked_to() {
    let home = Home::new();
    let options = ["--allow", "127.0.0.0/8", "--deny", "127.0.9.0/24,::/0"];
    let mut server = Server::start(&home, &options);
    let mut denied = RawPeer::connect_from([127, 0, 9, 1].into(), &server.address);
    // It may be closed before it has said a word.
    let _ = denied.stream.write_all(b"goodputc");
    assert_eq!(denied.stream.read(&mut [0; 8]).unwrap_or(0), 0, "closed without a word");
    let hello = [&b"goodputh"[..], &[7; 16], &[0; 40]].concat();
    let ask = |from: &str| {
        let socket = UdpSocket::bind((from, 0)).expect("all of 127/8 is this host");
        socket.set_read_timeout(Some(WAIT_TIMEOUT)).expect("a time that is not zero");
        socket.send_to(&hello, &server.address).expect("it is this host");
        socket
    };
    let (silent, answered) = (ask("127.0.9.1"), ask("127.0.8.1"));
    // They are looked at in their order.
    assert!(answered.recv(&mut [0; 2000]).is_ok());
    silent.set_nonblocking(true).expect("a socket can be set nonblocking");
    let cause = silent.recv(&mut [0; 2000]).expect_err("no answer came");
    assert_eq!(cause.kind(), ErrorKind::WouldBlock);
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M"]));
    (0..5).for_each(|_| drop(silent.send_to(&hello, &server.address)));
    assert!(ask("127.0.8.2").recv(&mut [0; 2000]).is_ok(), "those before it were looked at");
    server.stop("-TERM");
    let log = std::fs::read_to_string(home.path().join("server.log")).expect("it writes one");
    // Two lines, however many come: the first at once, and what was counted since.
    let lines: Vec<_> = log.lines().filter(|line| line.contains("dropped ")).collect();
    let [first, rest] = lines[..] else { panic!("{lines:?}") };
    assert!(first.contains("dropped 1 datagram from senders in 127.0.9.0/24"), "{first}");
    assert!(rest.contains("dropped 5 more datagrams from senders in 127.0.9.0/24"), "{rest}");
}
