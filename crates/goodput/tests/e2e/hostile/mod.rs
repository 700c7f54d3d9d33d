//! Neither a client of `goodput serve` nor a server that answers `goodput test` is trusted:
//! bounded in time, memory and number, and unable to disturb others or to forge what is shown.

mod absurd;
mod far;
mod listeners;
mod raw_peer;
mod shares;

use std::io::Read;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use goodput_model::{Bytes, Direction, Length, Plan};
use goodput_testing::{WAIT_TIMEOUT, wait_for};
use serde_json::json;

use self::raw_peer::RawPeer;
use crate::common::{Home, Server, record};

/// Threads and descriptors of a process.
fn held(server: &Server) -> (usize, usize) {
    wait_for("it serves", || thread(server, "datagrams").is_some());
    let count = |what: &str| {
        let folder = format!("/proc/{}/{what}", server.pid());
        std::fs::read_dir(folder).expect("a live process has it").count()
    };
    (count("task"), count("fd"))
}

/// What /proc has of a server's thread of this name.
pub fn thread(server: &Server, name: &str) -> Option<PathBuf> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it is alive");
    // A thread may end meanwhile.
    let mut paths = tasks.filter_map(|task| Some(task.ok()?.path()));
    paths.find(|path| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    })
}

/// Nanoseconds of CPU time that it has used (`Documentation/scheduler/sched-stats.rst`).
fn cpu_ns(server: &Server, name: &str) -> u64 {
    let path = thread(server, name).unwrap_or_else(|| panic!("there is no thread {name}"));
    let spent = std::fs::read_to_string(path.join("schedstat")).expect("this kernel counts it");
    spent.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number of nanoseconds")
}

/// Resident memory of a process, MiB.
fn resident_mib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()));
    let status = status.expect("a live process has one");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("it has memory");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("in KiB") / 1024
}

fn seconds(seconds: f64) -> Plan {
    Plan { length: Length::Seconds(seconds), ..Plan::standard() }
}

#[test]
fn one_that_never_listens_is_hung_up_on() {
    let (home, limit) = (Home::new(), 64 << 20);
    let server = Server::start(&home, &[]);
    let before = resident_mib(&server);
    let question = json!({ "setting": { "id": 1, "request": "restore" } });
    let ended = RawPeer::greet(&server.address).flood(&question, limit);
    assert!(ended.is_some(), "the server answers on and on");
    assert!(resident_mib(&server) < before + 24, "{before} MiB before");
}

#[test]
fn a_flood_ends_the_connection_and_disturbs_nobody() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let address = server.address.clone();
    let flood =
        std::thread::spawn(move || RawPeer::greet(&address).flood(&json!({ "ping": {} }), 1 << 30));
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M"]));
    assert!(flood.join().unwrap().is_some(), "a gigabyte of pings was taken");
}

#[test]
fn long_messages_are_taken_only_during_a_measurement() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut peer = RawPeer::greet(&server.address);
    assert!(peer.propose(1, &seconds(1.0))["accept"].is_object());
    peer.say(&json!({ "refuse": { "measurement": 1, "why": "changed my mind" } }));
    peer.send(&(1u32 << 20).to_be_bytes());
    let goodbye = peer.hear_of(&["goodbye"]);
    assert!(goodbye["goodbye"]["why"].as_str().unwrap().contains("65536"), "{goodbye}");
}

#[test]
fn frames_that_are_none_end_with_a_reason() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let deep = [&b"{\"propose\":"[..], &b"[".repeat(60_000)].concat();
    let frames: [&[u8]; 6] =
        [b"", b"null", b"{\"d\\nance\":{}}", b"\xff\xfe", b"{\"ping\":{},\"ping\":{}}", &deep];
    for body in frames {
        let mut peer = RawPeer::greet(&server.address);
        peer.send(&raw_peer::frame(body));
        let said = peer.hear_of(&["goodbye"]);
        assert_eq!(said["goodbye"]["code"], "protocol", "{said}");
    }
    let mut peer = RawPeer::greet(&server.address);
    peer.send(&[0xff; 4]);
    assert!(peer.hear_of(&["goodbye"])["goodbye"]["why"].is_string());
}

#[test]
fn absurd_plans_are_refused_in_words() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut peer = RawPeer::greet(&server.address);
    let standard = Plan::standard();
    let plans = [
        Plan { flows: 65_535, ..standard.clone() },
        Plan { flows: 0, ..standard.clone() },
        Plan { chunk_bytes: Bytes(1 << 63), ..standard.clone() },
        Plan { chunk_bytes: Bytes(0), ..standard.clone() },
        Plan { interval_s: 0.0, ..standard.clone() },
        Plan { mover: "x".repeat(60_000), ..standard.clone() },
        seconds(1e300),
        seconds(-1.0),
    ];
    for (number, plan) in (1..).zip(&plans) {
        let said = peer.propose(number, plan);
        let why = said["refuse"]["why"].as_str().unwrap_or_else(|| panic!("{plan:?}: {said}"));
        assert!(why.len() < 2000, "{why}");
    }
}

#[test]
fn a_cookie_is_good_once() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut peer = RawPeer::greet(&server.address);
    let accepted = peer.propose(1, &Plan { flows: 2, ..seconds(1.0) });
    let cookies = &accepted["accept"]["cookies"];
    let _first = peer.flow(&cookies[0]);
    let mut again = peer.flow(&cookies[0]);
    assert_eq!(again.read(&mut [0; 8]).unwrap_or(0), 0, "the server hangs up");
    let _second = peer.flow(&cookies[1]);
    assert!(peer.hear_of(&["flows-ready"])["flows-ready"].is_object());
}

#[test]
fn flows_that_neither_read_nor_write_end_at_the_servers_deadline() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let before = held(&server);
    let plan = Plan { direction: Direction::Both, flows: 2, ..seconds(0.1) };
    let mut peer = RawPeer::greet(&server.address);
    let flows = peer.begin(&plan);
    assert!(peer.hear_of(&["finish"])["finish"]["why"].is_string());
    assert!(peer.hear_of(&["report"])["report"].is_object());
    drop((peer, flows));
    wait_for("all is given back", || held(&server).1 <= before.1);
}

#[test]
fn clients_that_die_in_the_middle_leave_nothing_behind() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (_, descriptors) = held(&server);
    let kinds: [&[&str]; 4] =
        [&[], &["--reverse"], &["--both", "-P", "4"], &["--udp", "--reverse", "--rate", "10M"]];
    for round in 0..3 {
        let clients = kinds.map(|kind| {
            let mut all = vec!["test", &server.address, "--no-store", "-t", "60"];
            all.extend(kind);
            home.goodput(&all).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        });
        // The first round is killed as early as it gets, the others while flows are there.
        if round > 0 {
            wait_for("flows", || held(&server).0 > 8);
        }
        for mut client in clients {
            client.kill().unwrap();
            client.wait().unwrap();
        }
    }
    wait_for("descriptors are closed", || held(&server).1 <= descriptors);
    wait_for("threads of flows end", || held(&server).0 <= 8);
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M"]));
}

#[test]
fn a_name_cannot_forge_a_line_of_the_log() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut peer = RawPeer::connect_from([127, 0, 0, 1].into(), &server.address);
    let name = "evil\nERROR forged \u{1b}[2J";
    peer.send(b"goodputc");
    peer.say(&json!({ "hello": { "version": 1, "host": raw_peer::host(name) } }));
    peer.preamble();
    peer.hear();
    let log = || std::fs::read_to_string(home.path().join("server.log")).unwrap();
    wait_for("the log names it", || log().contains("evil"));
    assert!(!log().lines().any(|line| line.starts_with("ERROR")), "{}", log());
    assert!(!log().contains('\u{1b}'), "{}", log());
}

#[test]
fn datagrams_that_prove_nothing_get_no_more_than_they_bring() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(&server.address).unwrap();
    socket.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    let hello = [&b"goodputh"[..], &[7; 16], &[0; 40]].concat();
    for silent in [&b""[..], b"goodputh", &hello[..63], b"goodputa", &[9; 1400]] {
        socket.send(silent).unwrap();
    }
    let wrong = [&b"goodputa"[..], &[7; 32], &[0; 24]].concat();
    socket.send(&wrong).unwrap();
    socket.send(&hello).unwrap();
    // Datagrams keep their order on loopback: the one reply is the answer to the last.
    let mut reply = [0; 2000];
    let length = socket.recv(&mut reply).unwrap();
    assert!(length < hello.len() && reply.starts_with(b"goodputq"), "{:?}", &reply[..length]);
}

#[test]
fn one_off_serves_the_first_real_client_after_others() {
    let home = Home::new();
    let mut server = Server::start(&home, &["--one-off"]);
    let silent = RawPeer::connect_from([127, 0, 0, 1].into(), &server.address);
    let greeted = RawPeer::greet(&server.address);
    let mut begins = RawPeer::greet(&server.address);
    drop(begins.begin(&seconds(60.0)));
    begins.vanish();
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M"]));
    assert!(server.stop("-0").success());
    drop((silent, greeted));
}

#[test]
fn a_signal_ends_measurements_and_the_server() {
    let home = Home::new();
    // Without the signal they would last for longer than anybody waits.
    let mut server = Server::start(&home, &["--max-duration", "3600"]);
    let mut silent = RawPeer::greet(&server.address);
    let flows = silent.begin(&Plan { direction: Direction::Both, flows: 4, ..seconds(3600.0) });
    let asked = Instant::now();
    assert!(server.stop("-TERM").success());
    assert!(asked.elapsed() < WAIT_TIMEOUT, "{:?}", asked.elapsed());
    drop((silent, flows));
}

#[test]
fn ten_thousand_idle_connections_leave_room_for_a_test() {
    let files = goodput_mover::raise_open_files().expect("a soft limit may be raised");
    let count = files.map_or(10_000, |files| (files as usize / 2).min(10_000));
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let before = resident_mib(&server);
    let from = |n: usize| [127, 0, 1, (n / 1000) as u8].into();
    let idle: Vec<_> =
        (0..count).map(|n| RawPeer::connect_from(from(n), &server.address)).collect();
    // It answers once it has taken all of them; how long that takes is not what is asked here.
    drop(RawPeer::greet(&server.address));
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M"]));
    assert!(resident_mib(&server) < before + 120, "{before} MiB before {count} connections");
    drop(idle);
}

#[test]
fn datagrams_of_others_take_no_time_of_the_control_connections() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let hello = [&b"goodputh"[..], &[7; 16], &[0; 40]].concat();
    wait_for("it serves", || thread(&server, "datagrams").is_some());
    let spent = || (cpu_ns(&server, "datagrams"), cpu_ns(&server, "goodput"));
    let before = spent();
    let flooded = Instant::now();
    while spent().0 - before.0 < 100_000_000 {
        assert!(flooded.elapsed() < WAIT_TIMEOUT, "nobody reads the datagrams");
        for _ in 0..1000 {
            // An answer that nobody reads may be reported here.
            let _ = socket.send_to(&hello, &server.address);
        }
    }
    let control = spent().1 - before.1;
    assert!(control < 50_000_000, "{control} ns");
}
