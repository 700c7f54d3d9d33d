//! ttcp: no handshake and no header, every byte is payload. A TCP stream ends by being closed; over UDP, datagrams of
//! four bytes mark the beginning and the end (ttcp.c of the US Army's Ballistic Research Laboratory, 1985, and all its
//! descendants).
//!
//! A receiver listens and never answers, so goodput can only send to it.

use std::collections::VecDeque;
use std::time::Instant;

use goodput_model::{Bytes, Direction, Length, Plan, Transport};

use crate::direct::{
    Answering, ClientRequest, Connecting, Dialect, FLOWS_TIMEOUT, Order, out_of_reach,
};
use crate::error::WireError;
use crate::far_end::FarEnd;
use crate::foreign;
use crate::greeting;
use crate::session::{First, FirstDatagram, Protocol, ServerConfig};
use crate::ticket::{FlowSetup, FlowTicket, Proof};

/// The port of everything after the very first release, which had 2000.
pub const PORT: u16 = 5001;

/// Length of the datagrams that mark the beginning and the end, bytes.
const MARKER_BYTES: usize = 4;

/// Longest datagram, bytes: the sender's choice is unknown before the first datagram.
const MAX_DATAGRAM_BYTES: u64 = 65_507;

/// The registry's entry.
pub const PROTOCOL: Protocol = Protocol {
    id: "ttcp",
    summary: "classic ttcp: bytes and nothing else; send to it or receive from it",
    port: PORT,
    has_control: false,
    far_end: FarEnd { counts: false, ..FarEnd::PLAIN },
    takes_the_rest: true,
    // Nothing identifies a stream of ttcp, so other protocols recognise theirs first.
    recognises: |_| First::Foreign,
    recognises_datagram,
    greet: greeting::none,
    client: |now, _| Box::new(Connecting::new(now, &DIALECT)),
    server: |now, config| Box::new(Answering::new(now, config, read)),
};

const DIALECT: Dialect = Dialect {
    program: "ttcp",
    opening: FLOWS_TIMEOUT,
    tickets,
    doubt: |_, _| None,
    unreported: "a ttcp receiver reports nothing to its sender",
};

/// The marker of the beginning is the first four bytes of a buffer, so only its length is certain. A datagram by which
/// another protocol opens a flow is not a marker.
fn recognises_datagram(datagram: &[u8]) -> FirstDatagram {
    let is_others = foreign::opens_a_flow(datagram);
    match datagram.len() == MARKER_BYTES && !is_others {
        true => FirstDatagram::Begins,
        false => FirstDatagram::Foreign,
    }
}

/// Treats all input as payload, except the openings of clients that expect another protocol.
fn read(_: Instant, config: &ServerConfig, first: &[u8]) -> Result<ClientRequest, WireError> {
    if config.transport == Transport::Tcp
        && let Some(seems) = foreign::known_client(first)
    {
        return Err(WireError::Foreign { seems });
    }
    let plan = Plan {
        transport: config.transport,
        length: Length::Seconds(config.limits.duration_s),
        chunk_bytes: match config.transport {
            Transport::Tcp => Transport::Tcp.standard_chunk(),
            Transport::Udp => Bytes(MAX_DATAGRAM_BYTES),
        },
        ..Plan::standard()
    };
    // Over UDP the flow receives the whole first datagram.
    let taken_bytes = if config.transport == Transport::Tcp { first.len() as u64 } else { 0 };
    let flow_setup = FlowSetup::ThisConnection { taken_bytes, back: None };
    let order = Order { tickets: flows(&plan), plan, flow_setup };
    Ok(ClientRequest::Measure {
        program: "ttcp".into(),
        answer: Vec::new(),
        notes: Vec::new(),
        orders: VecDeque::from([order]),
    })
}

/// The flows of a plan, or the parts of the plan that ttcp can't do.
fn tickets(plan: &Plan) -> Result<Vec<FlowTicket>, String> {
    let lost = out_of_reach(plan);
    match plan.direction {
        Direction::Send if lost.is_empty() => {}
        Direction::Send => {
            return Err(format!("ttcp's protocol can't express {}", lost.join(", ")));
        }
        Direction::Reverse => return Err(only_receives("--reverse")),
        Direction::Both => return Err(only_receives("--both")),
    }
    if plan.transport == Transport::Udp && plan.chunk_bytes.0 <= MARKER_BYTES as u64 {
        return Err(format!("a datagram of {MARKER_BYTES} bytes or less is a marker to ttcp"));
    }
    let mut tickets = flows(plan);
    if plan.transport == Transport::Tcp {
        tickets.iter_mut().for_each(|ticket| ticket.proof = beginning(plan));
    }
    Ok(tickets)
}

/// The beginning of the payload as in ttcp (`pattern()`: printable ASCII beginning with the space), so that a receiver
/// with more features than ttcp doesn't mistake random bytes for a request.
fn beginning(plan: &Plan) -> Proof {
    let most = match plan.length {
        Length::Bytes(bytes) => bytes.0 / u64::from(plan.flows),
        // A source's data is payload from its first byte.
        Length::Source => 0,
        Length::Seconds(_) | Length::Auto { .. } => u64::MAX,
    };
    let length = most.min(u64::from(b'~' - b' ')) as usize;
    Proof((b' '..=b'~').take(length).collect())
}

fn only_receives(option: &str) -> String {
    format!(
        "{option}: a ttcp receiver can't be asked to send; run `goodput serve` here and `ttcp -t` there"
    )
}

fn flows(plan: &Plan) -> Vec<FlowTicket> {
    FlowTicket::without_proofs(plan, &goodput_framing::ttcp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::{origin, server_config};

    #[test]
    fn only_a_datagram_of_four_bytes_begins_a_flow() {
        assert_eq!(recognises_datagram(b" !\"#"), FirstDatagram::Begins);
        for other in [&b""[..], b" !\"", b" !\"#$", b"BOD0", b"EOD1", b"9876", b"\x15\xcd\x5b\x07"]
        {
            assert_eq!(recognises_datagram(other), FirstDatagram::Foreign, "{other:?}");
        }
    }

    #[test]
    fn whatever_comes_is_payload_but_the_words_of_lost_clients() {
        let config = server_config(None);
        let read = |first: &[u8]| read(origin(), &config, first);
        assert!(matches!(read(b"x"), Ok(ClientRequest::Measure { .. })));
        assert!(matches!(read(b"GET / HTTP/1.1\r\n"), Err(WireError::Foreign { .. })));
        let Ok(ClientRequest::Measure { orders, answer, .. }) = read(b" !\"#$%") else { panic!() };
        assert!(answer.is_empty());
        assert_eq!(orders[0].flow_setup, FlowSetup::ThisConnection { taken_bytes: 6, back: None });
    }

    #[test]
    fn a_receiver_is_not_asked_to_send() {
        let reverse = Plan { direction: Direction::Reverse, ..Plan::standard() };
        assert!(tickets(&reverse).unwrap_err().contains("--reverse"));
        let both = Plan { direction: Direction::Both, ..Plan::standard() };
        assert!(tickets(&both).unwrap_err().contains("--both"));
        let mut plan = Plan::standard();
        plan.socket.rcvbuf_bytes = Some(Bytes(1 << 20));
        assert!(tickets(&plan).unwrap_err().contains("--rcvbuf"));
        let four = tickets(&Plan { flows: 4, ..Plan::standard() }).unwrap();
        assert!(four.iter().all(|t| t.proof.0.starts_with(b" !\"#$%&'")) && four.len() == 4);
        let few = Plan { flows: 2, length: Length::Bytes(Bytes(7)), ..Plan::standard() };
        assert_eq!(tickets(&few).unwrap()[0].proof.0, b" !\"");
    }
}
