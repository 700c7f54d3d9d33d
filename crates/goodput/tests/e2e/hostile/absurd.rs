//! Requests of other programs' protocols that ask for too much, mean nothing, or carry more than words.

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};

use goodput_testing::wait_for;

use super::listeners::{COOKIE, Listeners, connect, line, log, nuttcp_parameters, until_closed};
use super::{held, resident_mib};
use crate::common::{Home, record};

/// `SERVER_ERROR` of iperf3 (iperf_api.h), which two numbers of 32 bits follow.
const SERVER_ERROR: u8 = 0xfe;

/// Asks an iperf3 server for this, announced as this many bytes. What it says, until it hangs up.
fn ask_iperf3(address: &str, announced: usize, asks: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    let announced = u32::try_from(announced).expect("as long as the protocol allows").to_be_bytes();
    stream.write_all(&[COOKIE, &announced[..]].concat()).expect("the server listens");
    // It may be turned away before all is said.
    let _ = stream.write_all(asks);
    until_closed(&mut stream)
}

fn is_refusal(said: &[u8]) -> bool {
    matches!(said, [9, SERVER_ERROR, numbers @ ..] if numbers.len() == 8)
}

#[test]
fn absurd_parameters_of_iperf3_are_refused_with_its_own_errors() {
    let home = Home::new();
    let listeners = Listeners::open(&home);
    let (before, held_before) = (resident_mib(&listeners.server), held(&listeners.server));
    let nested = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    let digits = format!("{{\"tcp\":true,\"time\":{}}}", "9".repeat(60_000));
    let absurd = [
        r#"{"tcp":true,"parallel":1000000000}"#,
        r#"{"tcp":true,"parallel":0}"#,
        r#"{"tcp":true,"len":2147483648}"#,
        r#"{"tcp":true,"len":0}"#,
        r#"{"tcp":true,"time":1000000000000000000}"#,
        r#"{"tcp":true,"time":NaN}"#,
        r#"{"tcp":true,"time":1e999}"#,
        r#"{"tcp":true,"omit":1000000000}"#,
        r#"{"tcp":true,"window":1099511627776}"#,
        r#"{"tcp":true,"MSS":1000000000}"#,
        r#"{"tcp":true,"TOS":1000000}"#,
        r#"{"tcp":true,"congestion":"../../tmp/x"}"#,
        r#"{"udp":true,"len":65508}"#,
        &nested,
        &digits,
        "",
        "\u{fffd}",
    ];
    for asks in absurd {
        let said = ask_iperf3(&listeners.iperf3, asks.len(), asks.as_bytes());
        assert!(is_refusal(&said), "{said:?} to {}", &asks[..asks.len().min(80)]);
    }
    for announced in [100 << 20, 0x7fff_ffff, 0xffff_ffff] {
        let said = ask_iperf3(&listeners.iperf3, announced, &[b' '; 1 << 20]);
        // What was not read is reset, and may take the answer with it.
        assert!(is_refusal(&said) || said.len() < 10, "{said:?} to {announced} bytes");
    }
    wait_for("all is given back", || held(&listeners.server).1 <= held_before.1);
    assert!(resident_mib(&listeners.server) < before + 24, "{before} MiB before");
    record(&home.run(&["test", &listeners.server.address, "--json", "--no-store", "-n", "1M"]));
}

#[test]
fn absurd_lines_of_nuttcp_are_refused_with_its_own_word() {
    let home = Home::new();
    let listeners = Listeners::open(&home);
    let held_before = held(&listeners.server);
    let good = nuttcp_parameters(6001);
    for (key, value) in [
        ("nstream", "1000000000"),
        ("buflen", "9223372036854775807"),
        ("nbuf", "99999999999999999999999"),
        ("win", "-1"),
        ("port", "22"),
        ("port", "65536"),
        ("timeout", "nan"),
        ("interval", "1e308"),
        ("rate", "%s%n"),
        ("buflen", "\x1b[31m"),
        ("thirdparty", "192.0.2.1"),
    ] {
        let at = good.find(&format!("{key} = ")).expect("the line has it") + key.len() + 3;
        let end = at + good[at..].find(',').expect("another follows");
        let mut stream = connect(&listeners.nuttcp);
        stream.write_all(b"HELO nuttcp v6.1.2\n").expect("the server listens");
        line(&mut stream);
        stream
            .write_all(format!("{}{value}{}", &good[..at], &good[end..]).as_bytes())
            .expect("the server listens");
        let said = String::from_utf8_lossy(&until_closed(&mut stream)).into_owned();
        assert!(said.starts_with("KO\n"), "{key} = {value}: {said}");
        assert!(!said.contains('\x1b'), "{said:?}");
    }
    wait_for("all is given back", || held(&listeners.server).1 <= held_before.1);
}

#[test]
fn no_escape_sequence_reaches_the_log() {
    let home = Home::new();
    let listeners = Listeners::open(&home);
    let title =
        r#"{"tcp":true,"title":"\u001b[2J\nINFO forged","client_version":"\u001b]0;x\u0007"}"#;
    let mut awaited = connect(&listeners.iperf3);
    let length = (title.len() as u32).to_be_bytes();
    awaited.write_all(&[COOKIE, &length[..], title.as_bytes()].concat()).expect("it listens");
    let mut said = [0; 2];
    awaited.read_exact(&mut said).expect("it answers");
    drop(awaited);
    for address in listeners.all() {
        let mut stream = connect(address);
        stream.write_all(b"HELO nuttcp v6.1.2\x1b]0;forged\x07\n").expect("it listens");
        // It may wait for more, or have hung up.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        until_closed(&mut stream);
    }
    wait_for("iperf3's end is logged", || log(&home).contains("iperf3: "));
    let log = log(&home);
    assert!(!log.contains('\x1b') && !log.contains('\x07'), "{log:?}");
    assert!(!log.lines().any(|line| line.starts_with("INFO forged")), "{log}");
}

/// The first datagram of `iperf -u` (2.1.8).
fn first_datagram() -> Vec<u8> {
    let words = [1, 0x6b02_73f5, 0x0001_3560, 0, 0x4801_0098, 1, 0xe135, 0, 0, 0xffff_ff9c_u32];
    let mut datagram: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
    datagram.resize(1470, 0);
    datagram
}

#[test]
fn one_address_does_not_take_every_conversation_over_udp() {
    let home = Home::new();
    // Half of them over UDP, and half of these for one address.
    let listeners = Listeners::open_with(&home, &["--max-clients", "8"]);
    let rest: SocketAddr = listeners.rest.parse().expect("a server says where it listens");
    let begin = |last: u8| {
        let socket = UdpSocket::bind((format!("127.0.0.{last}"), 0)).expect("127/8 is this host");
        socket.send_to(&first_datagram(), rest).expect("it is this host");
        socket
    };
    let measured = |last: u8| {
        let from = format!("to here peer=127.0.0.{last}:");
        log(&home).lines().filter(|l| l.contains("measures") && l.contains(&from)).count()
    };
    let _greedy: Vec<_> = (0..6).map(|_| begin(2)).collect();
    wait_for("its share", || measured(2) == 2);
    let _other = begin(3);
    wait_for("another one's", || measured(3) == 1);
    assert_eq!(measured(2), 2);
}
