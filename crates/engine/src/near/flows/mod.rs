//! The client's data connections: each flow is opened as its protocol requires, and proves that it belongs to the
//! measurement.

mod listen;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use goodput_model::{EndName, FlowPlan, Plan, Transport};
use goodput_mover::EarlyPayload;
use goodput_wire::session::Protocol;
use goodput_wire::ticket::FlowTicket;

use crate::error::EngineError;
use crate::run::source_ports::Chosen;
use crate::run::traffic::Connected;
use crate::threads::side_by_side;

pub use listen::FlowListeners;

/// How long one data connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long all connections may take together: as long as a far end of goodput waits for them.
const CONNECT_ALL_TIMEOUT: Duration = goodput_wire::protocols::goodput::times::FLOWS_TIMEOUT;

/// Connected and proven flows.
pub struct Opened {
    /// Each flow with its socket.
    pub flows: Vec<Connected>,
    /// The peer's address, if there is one.
    pub peer: Option<SocketAddr>,
    /// Socket options that the kernel changed from what was asked.
    pub doubts: Vec<String>,
}

/// Where flows are connected to.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The protocol spoken there.
    pub protocol: &'static Protocol,
    /// Addresses of the peer, tried in turn for the first flow; all others follow it.
    pub addresses: Vec<SocketAddr>,
    /// How much higher the port of each further flow is.
    pub apart: u16,
    /// Local ports, if they were chosen; otherwise the plan's ports are used.
    pub ports: Option<Chosen>,
}

/// Opens every flow of a plan, those after the first side by side if the far end can tell them apart. Blocks.
pub fn open_flows(
    destination: &Destination,
    plan: &Plan,
    tickets: &[FlowTicket],
) -> Result<Opened, EngineError> {
    let deadline = Deadline { at: Instant::now() + CONNECT_ALL_TIMEOUT, all: tickets.len() };
    let mut opening = Opening::new(plan, tickets.len());
    opening.doubt(destination.ports.iter().filter_map(|chosen| chosen.doubt.clone()).collect());
    let mut others = VecDeque::new();
    let mut connections = 0;
    for (number, ticket) in tickets.iter().enumerate() {
        if opening.share(ticket)? {
            continue;
        }
        let (socket, early) = match others.pop_front() {
            Some(opened) => opened,
            None => destination.open_next(&mut opening, connections, ticket, &deadline)?,
        };
        opening.add(ticket, socket, early);
        connections += 1;
        if let Some(peer) = opening.peer.filter(|_| destination.takes_side_by_side(plan))
            && connections == 1
        {
            others = destination.open_others(peer, plan, &tickets[number + 1..], &deadline)?;
        }
    }
    opening.done()
}

/// A flow's socket, and what came on it meanwhile.
type Socket = (OwnedFd, EarlyPayload);

impl Destination {
    /// Opens the flow that comes `connections` after the first one.
    fn open_next(
        &self,
        opening: &mut Opening,
        connections: u16,
        ticket: &FlowTicket,
        deadline: &Deadline,
    ) -> Result<Socket, EngineError> {
        if let Some(chosen) = &self.ports {
            opening.plan.socket.source_port = chosen.ports.get(usize::from(connections)).copied();
        }
        let time = deadline.time_left(opening.flows.len())?;
        let Some(peer) = opening.peer else {
            let (opened, peer) = self.open_first(&opening.plan, ticket, time)?;
            opening.peer = Some(peer);
            return Ok(opened);
        };
        self.open(higher(peer, connections, self.apart)?, &opening.plan, ticket, time)
    }

    /// Opens the first flow to the first address that accepts it. Reports the first address's error, because the others
    /// are mostly the same.
    fn open_first(
        &self,
        plan: &Plan,
        ticket: &FlowTicket,
        time: Duration,
    ) -> Result<(Socket, SocketAddr), EngineError> {
        let mut first_error = None;
        for address in &self.addresses {
            match self.open(*address, plan, ticket, time) {
                Ok(opened) => return Ok((opened, *address)),
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        let none = || EngineError::Flow("no address to open a flow to".into());
        Err(first_error.unwrap_or_else(none))
    }

    /// Whether flows may be opened at the same time. The port of a flow that has one follows that of the flow before.
    fn takes_side_by_side(&self, plan: &Plan) -> bool {
        let has_ports = self.ports.is_some() || plan.socket.source_port.is_some();
        self.protocol.far_end.takes_flows_in_any_order && !has_ports
    }

    /// Opens the flows after the first, side by side, to ports above that of `first`. Returns them in the order of their
    /// tickets, without those that share a connection.
    fn open_others(
        &self,
        first: SocketAddr,
        plan: &Plan,
        tickets: &[FlowTicket],
        deadline: &Deadline,
    ) -> Result<VecDeque<Socket>, EngineError> {
        let own = tickets.iter().filter(|ticket| ticket.shares.is_none());
        let opened = AtomicUsize::new(1);
        let open = |(place, ticket): (u16, &FlowTicket)| {
            let address = higher(first, place, self.apart)?;
            let time = deadline.time_left(opened.load(Ordering::Relaxed))?;
            let socket = self.open(address, plan, ticket, time)?;
            opened.fetch_add(1, Ordering::Relaxed);
            Ok(socket)
        };
        side_by_side((1..).zip(own).collect(), open).map(VecDeque::from)
    }

    fn open(
        &self,
        address: SocketAddr,
        plan: &Plan,
        ticket: &FlowTicket,
        time: Duration,
    ) -> Result<Socket, EngineError> {
        match plan.transport {
            Transport::Tcp => Ok((tcp::open(address, plan, ticket, time)?, shown(ticket))),
            Transport::Udp => udp::open(self.protocol, address, plan, ticket, time),
        }
    }
}

/// The part of a flow's payload that its proof is.
fn shown(ticket: &FlowTicket) -> EarlyPayload {
    let is_payload = ticket.framing.counts_proof() && ticket.is_sender(EndName::Near);
    let bytes = if is_payload { ticket.proof.0.len() as u64 } else { 0 };
    EarlyPayload { bytes, datagrams: Vec::new() }
}

/// The address of the flow that comes `connections` after the first one.
fn higher(first: SocketAddr, connections: u16, apart: u16) -> Result<SocketAddr, EngineError> {
    let port = connections.checked_mul(apart).and_then(|more| first.port().checked_add(more));
    let port = port.ok_or_else(|| {
        let first = first.port();
        EngineError::Flow(format!("port {first} is too high: each flow needs a port of its own"))
    })?;
    let mut address = first;
    address.set_port(port);
    Ok(address)
}

/// By when all connections must exist.
struct Deadline {
    at: Instant,
    all: usize,
}

impl Deadline {
    /// How long the next connection may take, when `done` exist.
    fn time_left(&self, done: usize) -> Result<Duration, EngineError> {
        match self.at.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(EngineError::Flow(format!(
                "only {done} of {} data connections were made in {} s; the path may be too long for this many: use fewer flows",
                self.all,
                CONNECT_ALL_TIMEOUT.as_secs()
            ))),
            left => Ok(left.min(CONNECT_TIMEOUT)),
        }
    }
}

/// The flows of a measurement, as they are set up.
struct Opening {
    /// Has the local port for the next flow.
    plan: Plan,
    peer: Option<SocketAddr>,
    flows: Vec<Connected>,
    doubts: Vec<String>,
}

impl Opening {
    fn new(plan: &Plan, flows: usize) -> Self {
        let plan = plan.clone();
        Self { plan, peer: None, flows: Vec::with_capacity(flows), doubts: Vec::new() }
    }

    fn add(&mut self, ticket: &FlowTicket, socket: OwnedFd, early: EarlyPayload) {
        let found = goodput_mover::socket::check_effective(&socket, &self.plan.socket);
        self.doubt(found);
        self.note_port(ticket.flow.id, &socket);
        let framing = ticket.framing.clone();
        let flow = ticket.flow;
        self.flows.push(Connected { flow, socket, framing, early, bodies: None, file: None });
    }

    /// The next flow's port follows this one's, which is not what was asked for if that port was taken.
    fn note_port(&mut self, flow: u16, socket: &OwnedFd) {
        let Some(asked) = self.plan.socket.source_port else { return };
        let local = socket2::SockRef::from(socket).local_addr().ok();
        let Some(port) = local.and_then(|local| local.as_socket()).map(|local| local.port()) else {
            return;
        };
        if port != asked {
            self.doubt(vec![format!(
                "source port {asked} is in use, so flow {flow} has {port} (ss -an sport = :{asked} shows who uses it)"
            )]);
        }
        self.plan.socket.source_port = port.checked_add(1);
    }

    /// Most flows say the same.
    fn doubt(&mut self, found: Vec<String>) {
        for doubt in found {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
    }

    /// Gives a flow that rides on another flow's connection its own handle to that connection. Returns whether the flow
    /// is one of these.
    fn share(&mut self, ticket: &FlowTicket) -> Result<bool, EngineError> {
        let Some(other) = ticket.shares else { return Ok(false) };
        let FlowPlan { id, .. } = ticket.flow;
        let named = || format!("share the connection of flow {other} with flow {id}");
        let carrier = self.flows.iter().find(|carrier| carrier.flow.id == other);
        let carrier = carrier.ok_or_else(|| {
            EngineError::Flow(format!(
                "flow {id} shares the connection of flow {other}, but there is no flow {other}"
            ))
        })?;
        let socket = carrier.socket.try_clone().map_err(EngineError::io(named()))?;
        let framing = ticket.framing.clone();
        let (flow, early) = (ticket.flow, EarlyPayload::default());
        self.flows.push(Connected { flow, socket, framing, early, bodies: None, file: None });
        Ok(true)
    }

    fn done(self) -> Result<Opened, EngineError> {
        let peer = self.peer.ok_or_else(|| EngineError::Flow("there is no flow to open".into()))?;
        Ok(Opened { flows: self.flows, peer: Some(peer), doubts: self.doubts })
    }
}
