//! Metrics of a watch and of a server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::{SMALL, Watch};
use crate::common::{Home, Server};

const REQUEST: &[u8] =
    b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\
                         Connection: close\r\n\r\n";

/// Where metrics are, according to the line that says it.
fn metrics_address(said: &str) -> &str {
    let line = said.lines().find_map(|line| line.strip_prefix("metrics on http://"));
    line.and_then(|line| line.strip_suffix("/metrics")).expect("it says where")
}

/// What is at /metrics there, according to the line that says where.
fn scrape(said: &str) -> String {
    let address = metrics_address(said);
    let mut stream = TcpStream::connect(address).expect("the server of metrics answers");
    stream.write_all(REQUEST).expect("the server of metrics answers");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server of metrics answers");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("# EOF\n"), "{answer}");
    answer
}

#[test]
fn a_server_and_a_watch_have_metrics() {
    let (far, home) = (Home::new(), Home::new());
    let server = Server::start(&far, &["--metrics", "127.0.0.1:0"]);
    let said = home.path().join("said.log");
    let log = std::fs::File::create(&said).unwrap();
    let metrics = ["--every", "1s", "--metrics", "127.0.0.1:0"];
    let mut watch = Watch::start_with(
        &home,
        &[&[&server.address[..]], &SMALL[..], &metrics].concat(),
        log.into(),
    );
    while watch.event()["event"] != "tested" {}
    let text = scrape(&std::fs::read_to_string(&said).unwrap());
    let label = format!("{{target=\"{}\"}}", server.address);
    assert!(text.contains(&format!("goodput_watch_up{label} 1.0")), "{text}");
    assert!(text.contains(&format!("goodput_watch_goodput_bytes_per_second{label}")), "{text}");
    let text = scrape(&std::fs::read_to_string(far.path().join("server.log")).unwrap());
    assert!(!text.contains("goodput_serve_measurements_total 0"), "{text}");
    assert!(!text.contains("goodput_serve_received_bytes_total 0"), "{text}");
    assert_eq!(watch.end(), Some(0));
}

/// A connection from another address of this host that sends half a request and waits.
fn half_a_request(address: &str) -> TcpStream {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be made");
    let other: SocketAddr = ([127, 0, 0, 2], 0).into();
    socket.bind(&other.into()).expect("all of 127.0.0.0/8 is this host");
    let address: SocketAddr = address.parse().expect("an address");
    socket.connect(&address.into()).expect("the server of metrics listens");
    let mut stream = TcpStream::from(socket);
    // One that has too many already is closed at once.
    let _ = stream.write_all(&REQUEST[..REQUEST.len() / 2]);
    stream
}

#[test]
fn metrics_are_read_beside_a_crowd_of_another_client() {
    let far = Home::new();
    let _server = Server::start(&far, &["--metrics", "127.0.0.1:0"]);
    let said = std::fs::read_to_string(far.path().join("server.log")).unwrap();
    // More than all clients together may have.
    let crowd: Vec<_> = (0..100).map(|_| half_a_request(metrics_address(&said))).collect();
    for _ in 0..3 {
        assert!(scrape(&said).contains("goodput_serve_clients"));
    }
    drop(crowd);
}
