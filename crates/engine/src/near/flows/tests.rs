//! How flows are set up on loopback, in every way that a protocol may use.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::thread;

use goodput_framing::Framing;
use goodput_model::EndName;
use goodput_wire::datagram::iperf3;
use goodput_wire::protocols::goodput;
use goodput_wire::protocols::iperf3::PROTOCOL;
use goodput_wire::ticket::Proof;

use super::*;

fn ticket(id: u16, framing: Framing, proof: &[u8]) -> FlowTicket {
    let flow = FlowPlan { id, sender: EndName::Near };
    FlowTicket { flow, proof: Proof(proof.to_vec()), framing, shares: None }
}

fn to(address: SocketAddr, apart: u16) -> Destination {
    Destination { protocol: &PROTOCOL, addresses: vec![address], apart, ports: None }
}

fn udp() -> Plan {
    Plan { transport: Transport::Udp, ..Plan::standard() }
}

#[test]
fn flows_come_in_order_with_their_proofs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tickets = [
        ticket(0, goodput_framing::ttcp(), b"first"),
        ticket(1, goodput_framing::ttcp(), b"other"),
    ];
    let opened = open_flows(&to(address, 0), &Plan::standard(), &tickets).unwrap();
    assert_eq!(opened.peer, Some(address));
    for proof in [b"first", b"other"] {
        let (mut stream, _) = listener.accept().unwrap();
        let mut shown = [0; 5];
        stream.read_exact(&mut shown).unwrap();
        assert_eq!(&shown, proof);
    }
}

#[test]
fn flows_that_are_opened_side_by_side_keep_their_proofs_and_their_order() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let proof = |id: u16| [b'a', id as u8];
    let tickets: Vec<_> =
        (0..100).map(|id| ticket(id, goodput_framing::goodput(), &proof(id))).collect();
    let to = Destination { protocol: &goodput::PROTOCOL, ..to(address, 0) };
    assert!(to.takes_side_by_side(&Plan::standard()));
    let opened = open_flows(&to, &Plan::standard(), &tickets).unwrap();
    let mut ports: Vec<_> = (0..100)
        .map(|_| {
            let (mut stream, from) = listener.accept().unwrap();
            let mut shown = [0; 2];
            stream.read_exact(&mut shown).unwrap();
            (shown, from)
        })
        .collect();
    ports.sort_unstable();
    let local = |flow: &Connected| {
        let socket = socket2::SockRef::from(&flow.socket).local_addr().unwrap();
        (proof(flow.flow.id), socket.as_socket().unwrap())
    };
    assert_eq!(opened.flows.iter().map(local).collect::<Vec<_>>(), ports);
}

#[test]
fn flows_that_are_numbered_as_they_come_are_opened_one_after_the_other() {
    let somewhere = "127.0.0.1:9".parse().unwrap();
    let goodput = Destination { protocol: &goodput::PROTOCOL, ..to(somewhere, 0) };
    assert!(!to(somewhere, 0).takes_side_by_side(&Plan::standard()), "iperf3");
    let mut with_ports = Plan::standard();
    with_ports.socket.source_port = Some(7000);
    assert!(!goodput.takes_side_by_side(&with_ports), "each port follows the one before");
}

#[test]
fn a_flow_that_shares_a_connection_needs_none_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let back = FlowTicket { shares: Some(0), ..ticket(1, goodput_framing::ttcp(), b"") };
    let tickets = [ticket(0, goodput_framing::ttcp(), b""), back];
    let opened = open_flows(&to(address, 7), &Plan::standard(), &tickets).unwrap();
    let port = |place: usize| {
        let socket = opened.flows[place].socket.try_clone().unwrap();
        std::net::TcpStream::from(socket).local_addr().unwrap()
    };
    assert_eq!(port(0), port(1));
}

#[test]
fn the_first_address_that_takes_the_flow_is_the_peer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = listener.local_addr().unwrap();
    let mut nobody = there;
    nobody.set_ip("127.0.0.2".parse().unwrap());
    let to = Destination { addresses: vec![nobody, there], ..to(there, 0) };
    let opened =
        open_flows(&to, &Plan::standard(), &[ticket(0, goodput_framing::ttcp(), b"")]).unwrap();
    assert_eq!(opened.peer, Some(there));
}

#[test]
fn a_server_that_listens_late_is_waited_for_and_no_other() {
    // An address that no other test uses: no one else takes the port meanwhile.
    let reserved = TcpListener::bind("127.0.0.3:0").unwrap();
    let address = reserved.local_addr().unwrap();
    drop(reserved);
    let tickets = [ticket(0, goodput_framing::ttcp(), b"")];
    assert!(open_flows(&to(address, 0), &Plan::standard(), &tickets).is_err());
    let opening = thread::spawn(move || {
        let tickets = [ticket(0, goodput_framing::nuttcp(false), b"")];
        open_flows(&to(address, 0), &Plan::standard(), &tickets).map(drop)
    });
    let late = TcpListener::bind(address).unwrap();
    late.accept().unwrap();
    opening.join().unwrap().unwrap();
}

#[test]
fn ports_end_at_the_last_one() {
    let first: SocketAddr = "[fe80::1%3]:65534".parse().unwrap();
    assert_eq!(higher(first, 1, 1).unwrap().to_string(), "[fe80::1%3]:65535");
    assert!(higher(first, 2, 1).is_err());
    assert!(higher(first, 300, 300).is_err());
    assert_eq!(higher(first, 300, 0).unwrap(), first);
}

#[test]
fn an_iperf3_stream_is_asked_for_once_and_payload_before_the_answer_is_kept() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let open = move |sender| {
        thread::spawn(move || {
            let mut ticket = ticket(0, goodput_framing::iperf3(false), b"");
            ticket.flow.sender = sender;
            open_flows(&to(address, 0), &udp(), &[ticket])
        })
    };
    let mut asked = [0; 16];

    let sending = open(EndName::Near);
    let (length, client) = server.recv_from(&mut asked).unwrap();
    assert_eq!(asked[..length], iperf3::REQUEST);
    server.send_to(b"something else", client).unwrap();
    server.send_to(&iperf3::LEGACY_REPLY, client).unwrap();
    let opened = sending.join().unwrap().unwrap();
    assert!(opened.flows[0].early.datagrams.is_empty());

    let receiving = open(EndName::Far);
    let (_, client) = server.recv_from(&mut asked).unwrap();
    server.send_to(b"payload", client).unwrap();
    let opened = receiving.join().unwrap().unwrap();
    assert_eq!(opened.flows[0].early.datagrams, [b"payload".to_vec()]);
}

/// The plan's flows as they come to ports of this end.
fn taken(at: &str, plan: &Plan, tickets: &[FlowTicket], knock: impl FnOnce(SocketAddr)) -> Opened {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let peer = "127.0.0.1:9".parse().unwrap();
        // An address that no other test uses: no one else takes the port meanwhile.
        let local = UdpSocket::bind((at, 0)).unwrap().local_addr().unwrap();
        let listeners =
            FlowListeners::open(plan, tickets, Some(local), peer, local.port()).unwrap();
        knock(local);
        listeners.take().await.unwrap()
    })
}

#[test]
fn only_the_peers_address_opens_a_flow_here() {
    let mut streams = Vec::new();
    let tickets = [ticket(0, goodput_framing::nuttcp(false), b"")];
    let opened = taken("127.0.0.4", &Plan::standard(), &tickets, |at| {
        for from in ["127.0.0.2:0", "127.0.0.1:0"] {
            let socket =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.bind(&from.parse::<SocketAddr>().unwrap().into()).unwrap();
            socket.connect(&at.into()).unwrap();
            streams.push(socket);
        }
    });
    let stream = std::net::TcpStream::from(opened.flows[0].socket.try_clone().unwrap());
    assert_eq!(stream.peer_addr().unwrap(), streams[1].local_addr().unwrap().as_socket().unwrap());
}

#[test]
fn the_first_datagram_opens_a_flow_and_stays_for_its_mover() {
    let mut from = None;
    let tickets = [ticket(0, goodput_framing::nuttcp(false), b"")];
    let opened = taken("127.0.0.5", &udp(), &tickets, |at| {
        let other = UdpSocket::bind("127.0.0.2:0").unwrap();
        other.send_to(b"me", at).unwrap();
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.send_to(b"BOD0", at).unwrap();
        from = Some(peer.local_addr().unwrap());
    });
    let socket = UdpSocket::from(opened.flows[0].socket.try_clone().unwrap());
    assert_eq!(socket.peer_addr().ok(), from);
    let mut first = [0; 16];
    let length = socket.recv(&mut first).unwrap();
    assert_eq!(&first[..length], b"BOD0");
}
