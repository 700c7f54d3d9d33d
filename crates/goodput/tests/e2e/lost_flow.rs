//! A flow whose connection breaks while the others go on: a firewall forgets one, or its segments are all lost.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::spawn;
use std::time::Duration;

use goodput_model::Record;
use socket2::SockRef;

use crate::common::{Home, Server, stderr};

/// What the broken connection carries before it breaks, bytes.
const CARRIED: u64 = 200_000;

/// A middlebox that passes on all connections to `server`, and resets the one with this number, counted from 0, towards
/// both ends.
fn middlebox(server: &str, broken: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, server) = (listener.local_addr().expect("it is bound"), server.to_owned());
    spawn(move || {
        for (number, client) in listener.incoming().map_while(Result::ok).enumerate() {
            let Ok(server) = TcpStream::connect(&server) else { break };
            let connection = Arc::new(Connection {
                breaks: number == broken,
                is_broken: AtomicBool::new(false),
            });
            let (client, server) = (Arc::new(client), Arc::new(server));
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (connection, from, to) =
                    (Arc::clone(&connection), Arc::clone(from), Arc::clone(to));
                spawn(move || connection.pass_on(&from, &to));
            }
        }
    });
    address.to_string()
}

struct Connection {
    breaks: bool,
    is_broken: AtomicBool,
}

impl Connection {
    fn pass_on(&self, mut from: &TcpStream, mut to: &TcpStream) {
        let (mut buffer, mut carried) = ([0; 16_384], 0);
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            carried += count as u64;
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
            if self.breaks && carried >= CARRIED {
                self.is_broken.store(true, Ordering::Release);
                break;
            }
        }
        if self.is_broken.load(Ordering::Acquire) {
            for end in [from, to] {
                // Closed in this way, a connection is reset. The other direction's thread holds the sockets until it
                // has learned of it.
                let _ = SockRef::from(end).set_linger(Some(Duration::ZERO));
                let _ = end.shutdown(Shutdown::Read);
            }
        } else {
            let _ = to.shutdown(Shutdown::Write);
        }
    }
}

fn measured(direction: &[&str]) -> Record {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    // The first connection is the control connection.
    let target = middlebox(&server.address, 2);
    let plan = ["test", &target, "--no-store", "--json", "-P", "3", "-t", "2", "--rate", "60mbit"];
    let output = home.run(&[&plan[..], direction].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("it is a record")
}

fn holds_without_the_flow(record: &Record) {
    assert_eq!(record.incomplete, None);
    let lost = record.doubts.iter().filter(|doubt| doubt.starts_with("1 of the 3 flows"));
    let lost: Vec<_> = lost.collect();
    assert!(!lost.is_empty(), "{:?}", record.doubts);
    let ends = [&record.ends.near, &record.ends.far].map(|end| end.value().expect("both report"));
    let flows: Vec<u16> =
        ends.iter().flat_map(|end| &end.lost_flows).map(|lost| lost.flow).collect();
    assert_eq!(flows.len(), lost.len(), "{flows:?}");
    assert!(flows.iter().all(|flow| *flow == flows[0]), "{flows:?}");
    let last = ends[0].samples.last().expect("there are samples");
    assert!(last.at_s > 1.5, "the others went on: {}", last.at_s);
}

#[test]
fn a_test_goes_on_without_a_flow_that_the_path_breaks() {
    holds_without_the_flow(&measured(&[]));
}

#[test]
fn a_direction_that_loses_all_its_flows_ends_the_test() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for broken in [1, 2] {
        let target = middlebox(&server.address, broken);
        let plan = ["test", &target, "--no-store", "--both", "-t", "600", "--rate", "60mbit"];
        let output = home.run(&plan);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
}

#[test]
fn a_server_goes_on_without_a_flow_that_the_path_breaks() {
    holds_without_the_flow(&measured(&["--reverse"]));
}
