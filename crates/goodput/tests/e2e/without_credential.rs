//! What clients that have proven nothing can do at a server that asks for a credential: nothing, by
//! any protocol.

use std::io::{Read, Write};
use std::net::TcpStream;

use goodput_model::Record;
use goodput_wire::protocols;

use crate::common::{Home, Server, record, set_mode, stderr};

const TOKEN: &str = "4cf1d5a6e0b27c9388ab41f02d6e759c";
const RSA_KEY: &str = include_str!("../peers/iperf3/private.pem");
const USERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/iperf3/users.csv");

/// A server that speaks every protocol, each on a port of its own; the ports, by protocol.
fn strict(home: &Home, options: &[&str]) -> (Server, Vec<(&'static str, String)>) {
    let named = |protocol: &&'static goodput_wire::session::Protocol| match protocol.id {
        "goodput" => protocol.id.to_string(),
        other => format!("{other}=0"),
    };
    let spoken: Vec<_> = protocols::ALL.iter().map(named).collect();
    let mut arguments = vec!["--protocols".to_string(), spoken.join(",")];
    arguments.extend(options.iter().map(|option| (*option).to_string()));
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut server = Server::start(home, &arguments);
    let mut listeners = Vec::new();
    for protocol in protocols::ALL {
        let address = match protocol.id {
            "goodput" => server.address.clone(),
            _ => server.next_address(),
        };
        listeners.push((protocol.id, address));
    }
    (server, listeners)
}

/// What the server's log says of measurements that it made.
fn measured(home: &Home) -> Vec<String> {
    let log =
        std::fs::read_to_string(home.path().join("server.log")).expect("the server writes a log");
    log.lines().filter(|line| line.contains("measures")).map(Into::into).collect()
}

#[test]
fn no_protocol_lets_a_client_measure_without_a_credential() {
    let home = Home::new();
    let token = home.secret("token", TOKEN);
    let token = ["--token-file", token.to_str().unwrap(), "--require-token"];
    let key = home.secret("private.pem", RSA_KEY);
    let users = ["--users-file", USERS, "--rsa-private-key", key.to_str().unwrap()];
    let list = home.file("authorized", "# nobody so far\n");
    set_mode(&list, 0o644);
    let keys = ["--authorized-keys", list.to_str().unwrap(), "--require-credential"];
    for options in [&token[..], &users, &keys] {
        let (_server, listeners) = strict(&home, options);
        // All at the same time, because some of them wait in vain for as long as the plan says.
        std::thread::scope(|scope| {
            for (id, address) in &listeners {
                let (home, target) = (&home, format!("{id}://{address}"));
                scope.spawn(move || nobody_measures(home, &target, options));
            }
        });
        let (_, iperf2) = listeners.iter().find(|(id, _)| *id == "iperf2").unwrap();
        assert_eq!(bounced(iperf2), 0, "{options:?}");
        assert_eq!(measured(&home), Vec::<String>::new(), "{options:?}");
    }
}

/// Tries every way to measure. For long enough that a server which lets the client in has moved something.
fn nobody_measures(home: &Home, target: &str, options: &[&str]) {
    for way in [&[][..], &["--reverse"], &["--udp", "--rate", "1mbit"]] {
        let plan = ["test", target, "--json", "--no-store", "-t", "5"];
        let output = home.run(&[&plan[..], way].concat());
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
        if way.contains(&"--udp") && output.status.success() {
            assert_eq!(received(&record(&output)), 0, "{target} {options:?}: let in");
        } else {
            let (code, said) = (output.status.code(), stderr(&output));
            assert!(matches!(code, Some(2 | 3)), "{target} {way:?} {options:?}: {code:?}");
            assert!(said.contains("goodput: "), "{target} {way:?} {options:?}: {said}");
        }
    }
}

/// Bytes of payload that arrived, as far as anyone knows: a sender of datagrams may never hear that nobody
/// takes them.
fn received(record: &Record) -> u64 {
    let directions = record.result.directions.iter();
    directions.filter_map(|direction| direction.received_bytes.value()).sum()
}

/// Bytes that come back of a bounceback message, the one measurement without flows.
fn bounced(address: &str) -> usize {
    let mut message = [0; 48];
    message[..4].copy_from_slice(&0x0080_0000_u32.to_be_bytes());
    message[4..8].copy_from_slice(&48_u32.to_be_bytes());
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.write_all(&message).expect("a message fits into the socket");
    let mut answer = Vec::new();
    // A reset is a refusal too.
    stream.read_to_end(&mut answer).unwrap_or(answer.len())
}
