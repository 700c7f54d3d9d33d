//! Bad clients at the ports of every protocol: silent, slow, lost, forged, or after what is another's.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use socket2::{Domain, Socket, Type};

use goodput_testing::{WAIT_TIMEOUT, wait_for};

use super::held;
use crate::common::{Home, Server, record, unused_ports};

/// A server of every protocol, each on a port of its own.
pub struct Listeners {
    pub server: Server,
    pub iperf3: String,
    /// iperf2's and ttcp's, which take what nobody knows.
    pub rest: String,
    pub nuttcp: String,
}

impl Listeners {
    pub fn open(home: &Home) -> Self {
        Self::open_with(home, &[])
    }

    pub fn open_with(home: &Home, more: &[&str]) -> Self {
        let shared = unused_ports(1);
        let protocols = format!("goodput,iperf3=0,iperf2={shared},ttcp={shared},nuttcp=0");
        let mut server =
            Server::start(home, &[&["--protocols", &protocols, "--strict"], more].concat());
        let [iperf3, rest, nuttcp] = [(); 3].map(|()| server.next_address());
        Self { server, iperf3, rest, nuttcp }
    }

    pub fn all(&self) -> [&str; 4] {
        [&self.server.address, &self.iperf3, &self.rest, &self.nuttcp]
    }
}

fn connect_from(last: u8, address: &str) -> TcpStream {
    let address: SocketAddr = address.parse().expect("a server says where it listens");
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be made");
    socket
        .bind(&SocketAddr::new([127, 0, 0, last].into(), 0).into())
        .expect("all of 127/8 is this host");
    socket.connect(&address.into()).expect("the server listens");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).expect("a time that is not zero");
    stream
}

pub fn connect(address: &str) -> TcpStream {
    connect_from(1, address)
}

/// Everything that comes until the peer closes, or resets because it has not read all.
pub fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return all,
            Ok(length) => all.extend_from_slice(&buffer[..length]),
            Err(cause) if cause.kind() == ErrorKind::ConnectionReset => return all,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => panic!("not closed: {cause}"),
        }
    }
}

pub fn line(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with('\n') {
        stream.read_exact(&mut byte).expect("the server says more");
        text.push(byte[0].into());
    }
    text
}

/// What a nuttcp client of 6.1.2 asks for (`nuttcp -T2 -p PORT`).
pub fn nuttcp_parameters(port: u16) -> String {
    format!(
        "buflen = 65536, nbuf = 2147483647, win = 0, nstream = 1, rate = 4294967295, port = {port}, \
         trans = 1, braindead = 0, timeout = 2.000000, udp = 0, vers = 6.1.2, interval = 0.000000, \
         reverse = 0, format = 2048, traceroute = 0, irate = 0, thirdparty = _NULL_ , multicast = 0 \
         , datamss = 0 , tos = 0 , nbuf_bytes = 0 , rate_pps = 0 , nodelay = 0\n"
    )
}

/// A nuttcp client whose data connection is expected at `port`.
fn nuttcp_client(last: u8, control: &str, port: u16) -> TcpStream {
    let mut stream = connect_from(last, control);
    stream.write_all(b"HELO nuttcp v6.1.2\n").expect("the server listens");
    assert!(line(&mut stream).starts_with("HELO"));
    stream.write_all(nuttcp_parameters(port).as_bytes()).expect("the server listens");
    let answer = line(&mut stream);
    assert!(answer.starts_with("OK"), "{answer}");
    stream
}

/// What an iperf3 client begins with.
pub const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";

pub fn log(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("server.log")).expect("a server has a log")
}

#[test]
fn the_silent_and_the_slow_are_turned_away_and_leave_nothing() {
    let home = Home::new();
    let listeners = Listeners::open(&home);
    let (_, descriptors) = held(&listeners.server);
    let slow = listeners.all().map(|address| (0..10).map(|_| connect(address)).collect::<Vec<_>>());
    // One byte of what could still be something. At the third port any byte is payload.
    for (first, address) in [(b"g", 0), (b"a", 1), (b"H", 3)] {
        slow[address].iter().skip(5).for_each(|mut one| one.write_all(first).unwrap());
    }
    record(&home.run(&["test", &listeners.server.address, "--json", "--no-store", "-n", "1M"]));
    for mut one in slow.into_iter().flatten() {
        assert_eq!(until_closed(&mut one), b"");
    }
    wait_for("all is given back", || held(&listeners.server).1 <= descriptors);
    wait_for("the log reports it", || log(&home).contains("it sent nothing for 8 s"));
}

#[test]
fn what_nobody_speaks_is_closed_without_a_word() {
    let home = Home::new();
    let listeners = Listeners::open(&home);
    for address in listeners.all() {
        for lost in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03"] {
            let mut stream = connect(address);
            stream.write_all(lost).unwrap();
            assert_eq!(until_closed(&mut stream), b"", "{address}");
        }
    }
    wait_for("the log reports it", || log(&home).contains("a web client (HTTP)"));
}

#[test]
fn what_nobody_knows_is_payload_only_where_it_is_usual() {
    let home = Home::new();
    let listeners = Listeners::open(&home);
    for (address, taken) in [(&listeners.rest, true), (&listeners.server.address, false)] {
        let mut stream = connect(address);
        // The pattern of ttcp.
        stream.write_all(&(0x20..0x7f).cycle().take(8192).collect::<Vec<u8>>()).unwrap();
        // It may have been closed already.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        until_closed(&mut stream);
        let counted = || log(&home).contains("ttcp: measured: TCP, 1 flow, to here: received 8192");
        if taken {
            wait_for("ttcp's bytes are counted", counted);
        } else {
            assert_eq!(log(&home).matches("ttcp: measured").count(), 1);
        }
    }
}

#[test]
fn datagrams_that_nobody_awaits_get_nothing_back() {
    let home = Home::new();
    let listeners = Listeners::open(&home);
    let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let hello = [&b"goodputh"[..], &[7; 16], &[0; 40]].concat();
    for address in listeners.all() {
        // Requests of iperf3 in both byte orders, markers of nuttcp and ttcp, garbage.
        let forged = [&b"9876"[..], b"6789", b"BOD0", b"EOD1", b" !\"#", &[0xee; 1400]];
        let clients = forged.map(|datagram| {
            let client = socket();
            client.send_to(datagram, address).unwrap();
            client
        });
        let honest = socket();
        honest.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        honest.send_to(&hello, address).unwrap();
        let mut reply = [0; 2000];
        let (length, _) = honest.recv_from(&mut reply).unwrap();
        assert!(reply[..length].starts_with(b"goodputq"), "{:?}", &reply[..length]);
        // They were looked at before.
        for client in clients {
            client.set_nonblocking(true).unwrap();
            let got = client.recv_from(&mut reply).map_err(|cause| cause.kind());
            assert_eq!(got, Err(ErrorKind::WouldBlock), "{address}");
        }
    }
}

#[test]
fn a_reserved_connection_is_given_to_no_other_address() {
    let home = Home::new();
    let listeners = Listeners::open(&home);
    let free = unused_ports(1);
    let shared = listeners.rest.rsplit(':').next().unwrap().parse().unwrap();
    // A port that is opened for it, and one that others come to as well.
    for port in [free, shared] {
        let _control = nuttcp_client(2, &listeners.nuttcp, port);
        let address = format!("127.0.0.1:{port}");
        let mut thief = connect_from(3, &address);
        thief.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(until_closed(&mut thief), b"");
        let mut flow = connect_from(2, &address);
        flow.write_all(&[0; 65_536]).unwrap();
        drop(flow);
        let measured = || log(&home).matches("received 65536 bytes").count();
        let expected = if port == free { 1 } else { 2 };
        wait_for("its own connection is counted", || measured() == expected);
    }
}

#[test]
fn a_reservation_ends_and_is_only_for_ports_without_signs() {
    let home = Home::new();
    let listeners = Listeners::open(&home);
    let port = |address: &str| address.rsplit(':').next().unwrap().parse::<u16>().unwrap();
    for own in [&listeners.server.address, &listeners.iperf3] {
        let mut stream = connect(&listeners.nuttcp);
        stream.write_all(b"HELO nuttcp v6.1.2\n").unwrap();
        line(&mut stream);
        stream.write_all(nuttcp_parameters(port(own)).as_bytes()).unwrap();
        let answer = String::from_utf8_lossy(&until_closed(&mut stream)).into_owned();
        assert!(answer.contains("this server's own"), "{answer}");
    }
    let mut never_comes = nuttcp_client(2, &listeners.nuttcp, port(&listeners.rest));
    // Another one of the same address waits for its turn meanwhile, and gets it.
    let _second = nuttcp_client(2, &listeners.nuttcp, port(&listeners.rest));
    until_closed(&mut never_comes);
    wait_for("the log reports it", || log(&home).contains("0 of 1 data connections came"));
}

#[test]
fn clients_that_vanish_between_states_leave_nothing() {
    let home = Home::new();
    let listeners = Listeners::open(&home);
    let held_before = held(&listeners.server);
    let free = unused_ports(1);
    for round in b'a'..=b'e' {
        // Of its own: the server may not have noticed yet that the last one's session is gone.
        let cookie = [&[round], &COOKIE[1..]].concat();
        let mut states: Vec<TcpStream> = Vec::new();
        for bytes in 0..cookie.len() {
            let mut stream = connect(&listeners.iperf3);
            stream.write_all(&cookie[..=bytes]).unwrap();
            states.push(stream);
        }
        // Parameters half said; then a measurement whose flows do not come.
        let mut half = connect(&listeners.iperf3);
        half.write_all(&[&cookie[..], &[0, 0, 1, 0], b"{\"tcp\":true"].concat()).unwrap();
        let mut awaited = connect(&listeners.iperf3);
        let asks = b"{\"tcp\":true,\"time\":1,\"parallel\":4,\"len\":131072}";
        let length = (asks.len() as u32).to_be_bytes();
        awaited.write_all(&[&cookie[..], &length, asks].concat()).unwrap();
        let mut said = [0; 2];
        awaited.read_exact(&mut said).unwrap();
        assert_eq!(said, [9, 10], "parameters, then streams");
        let mut one = connect(&listeners.iperf3);
        one.write_all(&cookie).unwrap();
        states.extend([half, awaited, one, nuttcp_client(1, &listeners.nuttcp, free)]);
        for stream in states {
            socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
        }
        // The port that was opened for a session is closed with it.
        wait_for("the port is free", || {
            TcpListener::bind(SocketAddr::new(IpAddr::from([127, 0, 0, 1]), free)).is_ok()
        });
    }
    wait_for("descriptors are closed", || held(&listeners.server).1 <= held_before.1);
    wait_for("no thread is left but the runtime's", || held(&listeners.server).0 <= 8);
    record(&home.run(&["test", &listeners.server.address, "--json", "--no-store", "-n", "1M"]));
}
