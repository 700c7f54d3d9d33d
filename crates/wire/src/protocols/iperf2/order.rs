//! The plans that a client requests with its header.

use std::collections::VecDeque;
use std::time::Instant;

use goodput_model::traffic_class::dscp;
use goodput_model::{BitRate, Bytes, Direction, EndName, Length, Plan, SocketOptions, Transport};

use super::bounceback::{self, Bounceback};
use super::detect::settings_at;
use super::header::{self, Extent, Header, NO_UDP_FIN, PayloadDirection};
use super::{ack, detect};
use crate::check;
use crate::direct::{ClientRequest, Order};
use crate::error::WireError;
use crate::session::{First, Limits, ServerConfig};
use crate::ticket::{FlowSetup, FlowTicket, Proof};

/// Largest UDP payload over IPv4: 65535 less 20 bytes of IP and 8 of UDP header (RFC 791, 768).
const MAX_DATAGRAM_BYTES: u32 = 65_507;

/// Reads a client's request from the first bytes of its connection, or its first datagram.
pub(super) fn read(
    now: Instant,
    config: &ServerConfig,
    first: &[u8],
) -> Result<ClientRequest, WireError> {
    if config.transport == Transport::Udp {
        return read_datagram(config, first);
    }
    if matches!(bounceback::extent(first), Extent::Whole(_)) {
        return Ok(ClientRequest::Converse(Box::new(Bounceback::new(now, config))));
    }
    match (header::extent(first, 0), detect::recognises(first)) {
        (Extent::Whole(length), _) => {
            let header = header::read(&first[..length]);
            let at_us = config.clock.unix_us(now);
            let mut answer = header.as_ref().map(|h| ack::answer(h, at_us)).unwrap_or_default();
            let timed = header.as_ref().filter(|header| header.wants_times());
            answer.extend(timed.into_iter().flat_map(|h| header::write_timed(h, at_us)));
            wish(config, header, first.len() as u32, answer)
        }
        (_, First::Short { .. }) => Ok(ClientRequest::More),
        (_, First::Foreign) => Err(WireError::Foreign { seems: crate::foreign::client(first) }),
        _ => wish(config, None, first.len() as u32, Vec::new()),
    }
}

fn read_datagram(config: &ServerConfig, first: &[u8]) -> Result<ClientRequest, WireError> {
    let Some(at) = settings_at(first) else {
        return Err(WireError::Protocol("its first datagram is not iperf2's".into()));
    };
    let header = match header::extent(&first[at..], at) {
        Extent::Whole(length) => header::read(&first[at..at + length]),
        _ => None,
    };
    let refused = header.as_ref().is_some_and(|header| is_refused(config, header.direction));
    let answer = if refused { end_of_nothing(first) } else { Vec::new() };
    wish(config, header, first.len() as u32, answer)
}

/// The datagram that ends a flow without any payload: a client that should receive waits for one,
/// 2.2 for ever. It is as long as necessary and no longer than the request, because nothing proves
/// the sender's address.
fn end_of_nothing(first: &[u8]) -> Vec<u8> {
    let time = first.get(4..12).unwrap_or_default();
    [&(-1i32).to_be_bytes(), time, &(-1i32).to_be_bytes()].concat()
}

/// The request in a header; without a header, a client sends until it stops by choice. `taken` are
/// the bytes of payload that have already arrived.
fn wish(
    config: &ServerConfig,
    header: Option<Header>,
    taken: u32,
    answer: Vec<u8>,
) -> Result<ClientRequest, WireError> {
    let program = header.as_ref().and_then(|h| h.version).map_or("iperf2".into(), program);
    let (direction, notes) =
        allowed(config, header.as_ref().map_or(PayloadDirection::Normal, |h| h.direction));
    let made = Maker { config, header: header.as_ref(), taken };
    let here = |back| FlowSetup::ThisConnection { taken_bytes: made.taken_bytes(), back };
    let orders = match direction {
        PayloadDirection::Normal => vec![made.order(Direction::Send, false, here(None))],
        // The client has nothing to send.
        PayloadDirection::Reverse if is_refused(config, direction) => Vec::new(),
        PayloadDirection::Reverse => vec![made.order(Direction::Reverse, false, here(None))],
        PayloadDirection::FullDuplex => vec![made.order(Direction::Both, true, here(None))],
        PayloadDirection::Dual(port) => vec![made.order(Direction::Both, false, here(Some(port)))],
        PayloadDirection::TradeOff(port) => {
            let back = FlowSetup::Connect { port: Some(port), apart: 0 };
            let first = made.order(Direction::Send, false, here(None));
            vec![first, made.order(Direction::Reverse, false, back)]
        }
    };
    for order in &orders {
        check::sense(&order.plan)
            .and_then(|()| check::within(&order.plan, &config.limits))
            .map_err(WireError::NotPermitted)?;
    }
    Ok(ClientRequest::Measure { program, answer, notes, orders: VecDeque::from(orders) })
}

/// The part of the request that is allowed. Over UDP nothing is sent to an address that may be
/// forged, unless the operator permits this; payload from this address still counts.
fn allowed(config: &ServerConfig, direction: PayloadDirection) -> (PayloadDirection, Vec<String>) {
    if !is_refused(config, direction) {
        return (direction, Vec::new());
    }
    let why = "it requests UDP payload, but nothing proves its address, so only what it sends is measured; serve with --allow-unproven-udp to send to it";
    (
        if direction == PayloadDirection::Reverse { direction } else { PayloadDirection::Normal },
        vec![why.into()],
    )
}

fn is_refused(config: &ServerConfig, direction: PayloadDirection) -> bool {
    config.transport == Transport::Udp
        && !config.limits.unproven_udp
        && direction != PayloadDirection::Normal
}

/// "iperf 2.1.8" (include/version.h: the release is in the upper half of its word).
fn program((version, release): (u32, u32)) -> String {
    let (major, minor) = (version >> 16, version & 0xffff);
    format!("iperf {major}.{minor}.{}", release >> 16)
}

struct Maker<'a> {
    config: &'a ServerConfig,
    header: Option<&'a Header>,
    taken: u32,
}

impl Maker<'_> {
    /// Over UDP the flow receives the whole first datagram.
    fn taken_bytes(&self) -> u64 {
        if self.config.transport == Transport::Tcp { self.taken.into() } else { 0 }
    }

    fn order(&self, direction: Direction, shared: bool, flow_setup: FlowSetup) -> Order {
        let plan = self.plan(direction);
        let tickets = plan.flow_plans().into_iter().map(|flow| FlowTicket {
            flow,
            proof: Proof::default(),
            framing: goodput_framing::iperf2(
                Vec::new(),
                self.reports(shared),
                self.times(flow.sender),
            ),
            shares: (shared && flow.id > 0).then_some(0),
        });
        Order { tickets: tickets.collect(), plan, flow_setup }
    }

    /// Whether the end of datagrams is answered. A flow that shares its socket gets no answer,
    /// because nobody would read it.
    fn reports(&self, shared: bool) -> bool {
        let spared = self.header.is_some_and(|h| h.upper & NO_UDP_FIN != 0);
        self.config.transport == Transport::Udp && !shared && !spared
    }

    /// Whether the payload of `sender` carries its time.
    fn times(&self, sender: EndName) -> bool {
        let asked = self.header.is_some_and(Header::wants_times);
        asked && sender == EndName::Far && self.config.transport == Transport::Tcp
    }

    fn plan(&self, direction: Direction) -> Plan {
        let limits = &self.config.limits;
        let sends = direction != Direction::Send;
        let rate = self.header.map(|h| h.rate).filter(|rate| sends && *rate > 0);
        Plan {
            transport: self.config.transport,
            direction,
            flows: 1,
            length: self
                .header
                .and_then(|h| h.length)
                .unwrap_or(Length::Seconds(limits.duration_s)),
            chunk_bytes: self.chunk(sends, limits),
            rate_bits_per_s: rate.map(|rate| BitRate(rate as f64)),
            socket: self.socket(sends),
            ..Plan::standard()
        }
    }

    /// The client's own size, if this end sends. If it only receives: over UDP the longest datagram
    /// that it must expect; from a stream it reads any size.
    fn chunk(&self, sends: bool, limits: &Limits) -> Bytes {
        let standard = self.config.transport.standard_chunk();
        let asked = self.header.map_or(0, |h| h.buffer);
        match (self.config.transport, asked) {
            (Transport::Udp, _) => Bytes(asked.max(self.taken).min(MAX_DATAGRAM_BYTES).into()),
            (Transport::Tcp, 0) => standard,
            (Transport::Tcp, asked) if sends => Bytes(asked.into()),
            (Transport::Tcp, asked) => Bytes(u64::from(asked).min(limits.chunk_bytes)),
        }
    }

    /// The options for this end's payload: the type of service, and the window, which clients
    /// before 2.1 report.
    fn socket(&self, sends: bool) -> SocketOptions {
        let Some(header) = self.header.filter(|_| sends) else { return SocketOptions::default() };
        let window = u64::from(header.window);
        let reported = window > 0 && self.config.transport == Transport::Tcp;
        SocketOptions {
            sndbuf_bytes: reported.then_some(Bytes(window)),
            dscp: (header.tos > 0).then_some(dscp(header.tos)),
            ..SocketOptions::default()
        }
    }
}
