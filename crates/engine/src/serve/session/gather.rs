//! The data connections of one measurement, from the session's wish until all are there.

use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;

use goodput_kernel::Context;
use goodput_model::{EndName, Plan, Transport};
use goodput_mover::EarlyPayload;
use goodput_mover::socket::check_permitted;
use goodput_wire::session::Protocol;
use goodput_wire::ticket::{FlowSetup, FlowTicket};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::client::ClientInfo;
use super::congestion_controls::known_congestion_control;
use super::connect::{self, Connecting};
use super::flow_deadline::until;
use super::ports::{OpenPort, OwnPort};
use super::sign_locks::SignLock;
use super::tickets::{Arrival, Expected, Sign, makes_cookies};
use crate::run::affinity::Affinity;
use crate::run::movers::Movers;
use crate::run::prepared::Prepared;
use crate::run::storage::{FileAccess, OpenFiles};
use crate::run::traffic::Connected;
use crate::serve::Shared;
use crate::serve::admit::admission::{Place, Wants};
use crate::serve::admit::gate::Permit;

/// The flows that a session wishes to expect.
pub struct Wish {
    /// What was agreed.
    pub plan: Plan,
    /// One ticket for each flow.
    pub tickets: Vec<FlowTicket>,
    /// How the flows are set up.
    pub flow_setup: FlowSetup,
    /// Whether this address has proven that it receives what is sent to it.
    pub proven: bool,
}

/// A measurement whose flows are awaited.
pub struct Awaiting {
    /// This end's share of it.
    pub own: Prepared,
    /// Its flows, as they come.
    pub gathering: Gathering,
    /// Where the flows arrive. Kept to the end: while it exists, a lost welcome is repeated.
    pub arrivals: mpsc::UnboundedReceiver<Arrival>,
    /// Its place among the measurements of this server.
    pub place: Place,
    /// The path to the client.
    pub path: Context,
}

/// The flows that have arrived, and the means to get the others.
pub struct Gathering {
    tickets: Vec<FlowTicket>,
    arrived: Vec<Connected>,
    until: Instant,
    /// Whether flows are identified by their address alone.
    reserved: bool,
    /// When the first flow was awaited.
    since: Instant,
    to: mpsc::UnboundedSender<Arrival>,
    connect: Option<Vec<(std::net::SocketAddr, FlowTicket)>>,
    own_port: Option<OwnPort>,
    _connecting: Option<Connecting>,
    _expected: Expected,
    _opened: Vec<OpenPort>,
    _locks: Vec<SignLock>,
}

/// A wish that is being fulfilled.
pub type Preparing = Pin<Box<dyn Future<Output = Result<Box<Awaiting>, String>> + Send>>;

/// Prepares for the flows of a wish, or says why that can't be done. Dropping it forgets the wish.
pub fn prepare(wish: Wish, permit: Permit, client: ClientInfo, shared: Arc<Shared>) -> Preparing {
    Box::pin(async move {
        check(&wish, &client)?;
        // Before anything is created or tried for it.
        let (from, wants) = (client.peer.ip(), Wants::Flows(&wish.plan));
        let place = shared.admission.admit(permit, from, wants, wish.can_wait()).await?;
        check_permitted(wish.plan.transport, &wish.plan.socket, client.local)
            .map_err(|why| why.to_string())?;
        let movers = Movers::of(&wish.plan, EndName::Far)?;
        let path = Context::towards(client.peer);
        let affinity = Affinity::of(&wish.plan, EndName::Far, &path).await?;
        let towards = wish.plan.towards.map(|ip| Context::towards((ip, 0).into()));
        let context = towards.unwrap_or_else(|| path.clone());
        let Wish { plan, tickets, flow_setup, .. } = wish;
        let connect = targets(&tickets, &flow_setup, &client)?;
        not_our_own(connect.as_deref().unwrap_or_default(), &plan, &client, &shared)?;
        let (plan, stores) = open_files(plan, &shared).await?;
        let signs = signs(&plan, &tickets, &flow_setup, &client)?;
        let locks =
            shared.sign_locks.lock(signs.iter().map(|(sign, _)| sign.clone()).collect()).await;
        let opened = open_ports(&signs, &client, &shared).await?;
        let (to, arrivals) = mpsc::unbounded_channel();
        let since = Instant::now();
        let reserved = signs.iter().any(|(sign, _)| sign.is_ambiguous());
        let expected = shared.tickets.expect(signs, &plan.socket, &to);
        let own = flow_setup == FlowSetup::Arrive && makes_cookies(client.protocol);
        let own_port = (own && needs_own_port(&plan))
            .then(|| shared.ports.open_own(client.local, &plan.socket, Arc::clone(&shared)))
            .transpose()?;
        let gathering = Gathering {
            connect,
            tickets,
            arrived: Vec::new(),
            until: until(since, 0, reserved, since),
            reserved,
            since,
            to,
            own_port,
            _connecting: None,
            _expected: expected,
            _opened: opened,
            _locks: locks,
        };
        let (end, observes) = (EndName::Far, plan.observe && may_observe(&shared, client.protocol));
        let own = Prepared { plan, end, stores, affinity, movers, context, observes };
        Ok(Box::new(Awaiting { own, gathering, arrivals, place, path }))
    })
}

/// Whether anyone reads this end's observations. Without a control connection nobody does, and payload would already
/// come while this end inspects itself.
fn may_observe(shared: &Shared, protocol: &Protocol) -> bool {
    let config = &shared.config;
    let to_report = protocol.far_end.reports && !config.private;
    // Such a client may send only when this end is ready.
    let to_show = config.watcher.is_some() && protocol.has_control;
    to_report || to_show
}

/// Opens and prepares what the plan reads and writes at this end; both take time.
async fn open_files(plan: Plan, shared: &Shared) -> Result<(Plan, OpenFiles), String> {
    if plan.storage.is_memory() {
        return Ok((plan, OpenFiles::default()));
    }
    let reach = FileAccess::Served(shared.config.files.clone());
    let stores = OpenFiles::prepare(plan.clone(), EndName::Far, reach).await;
    Ok((plan, stores.map_err(|why| why.to_string())?))
}

impl Wish {
    /// Whether the client waits for permission. If the conversation is the flow, payload comes at once.
    pub fn can_wait(&self) -> bool {
        !matches!(self.flow_setup, FlowSetup::ThisConnection { .. })
    }
}

impl Gathering {
    /// Port of the data connections, if the client must learn it.
    pub fn data_port(&self) -> Option<u16> {
        self.own_port.as_ref().map(|port| port.number)
    }

    /// Begins to connect the flows that this end connects, now that the client expects them.
    pub fn connect(&mut self, plan: &Plan, client: &ClientInfo) {
        if let Some(targets) = self.connect.take() {
            self._connecting = Some(connect::start(targets, plan, client.local, self.to.clone()));
        }
    }

    /// Takes the connection of the conversation for the first flow.
    pub fn take_own(&mut self, socket: OwnedFd, early: EarlyPayload) -> Result<(), String> {
        let first = self.tickets.first().ok_or("a measurement without flows")?;
        let (flow, framing) = (first.flow, first.framing.clone());
        self.add(Connected { flow, socket, framing, early, bodies: None, file: None })
    }

    /// Takes a flow, and the flows that share its connection.
    pub fn add(&mut self, arrival: Connected) -> Result<(), String> {
        let id = arrival.flow.id;
        let mut flows = vec![arrival];
        for ticket in self.tickets.iter().filter(|ticket| ticket.shares == Some(id)) {
            let socket = flows[0].socket.try_clone();
            let socket = socket.map_err(|cause| format!("can't share a connection: {cause}"))?;
            let mut early = EarlyPayload::default();
            if ticket.flow.sender == EndName::Near {
                early = std::mem::take(&mut flows[0].early);
            }
            let (flow, framing) = (ticket.flow, ticket.framing.clone());
            flows.push(Connected { flow, socket, framing, early, bodies: None, file: None });
        }
        // On a connection that this end sends on, the early bytes were the request, not payload.
        for connected in flows.iter_mut().filter(|c| c.flow.sender == EndName::Far) {
            connected.early = EarlyPayload::default();
        }
        self.arrived.append(&mut flows);
        self.until = until(self.since, self.arrived.len(), self.reserved, Instant::now());
        Ok(())
    }

    /// All flows in the order of the plan, once they are all there.
    pub fn complete(&mut self) -> Option<Vec<Connected>> {
        if self.arrived.len() < self.tickets.len() {
            return None;
        }
        self.arrived.sort_by_key(|connected| connected.flow.id);
        Some(std::mem::take(&mut self.arrived))
    }

    /// Ends when the flows have taken too long.
    pub async fn overdue(&self) -> String {
        tokio::time::sleep_until(self.until).await;
        let (came, all) = (self.arrived.len(), self.tickets.len());
        let s = self.since.elapsed().as_secs();
        format!("{came} of {all} data connections came within {s} s")
    }
}

/// Whether a plan has options that must be set on the listener.
fn needs_own_port(plan: &Plan) -> bool {
    let socket = &plan.socket;
    plan.transport == Transport::Tcp
        && (socket.congestion.is_some() || socket.rcvbuf_bytes.is_some() || socket.mptcp)
}

fn check(wish: &Wish, client: &ClientInfo) -> Result<(), String> {
    let Wish { plan, tickets, .. } = wish;
    known_congestion_control(plan.socket.congestion.as_deref())?;
    let sends = tickets.iter().any(|ticket| ticket.is_sender(EndName::Far));
    if plan.transport == Transport::Udp && sends && !wish.proven {
        return Err(format!(
            "{} does not prove the client's address, so {} could be sent unwanted datagrams; let the client send, use \
             TCP, or serve with --allow-unproven-udp",
            client.protocol.id,
            client.peer.ip()
        ));
    }
    Ok(())
}

/// How the flows that come to a port of this server are identified.
fn signs<'a>(
    plan: &Plan,
    tickets: &'a [FlowTicket],
    flow_setup: &FlowSetup,
    client: &ClientInfo,
) -> Result<Vec<(Sign, &'a FlowTicket)>, String> {
    let from = client.peer.ip();
    let own = usize::from(matches!(flow_setup, FlowSetup::ThisConnection { .. }));
    let coming = tickets.iter().skip(own).filter(|ticket| ticket.shares.is_none());
    let udp = plan.transport == Transport::Udp;
    Ok(match *flow_setup {
        FlowSetup::Connect { .. } | FlowSetup::ThisConnection { back: Some(_), .. } => Vec::new(),
        FlowSetup::Listen { first_port } => coming
            .enumerate()
            .map(|(number, ticket)| {
                let port = port_of(first_port, number, 1)?;
                Ok((Sign::Reserved(port, plan.transport, from), ticket))
            })
            .collect::<Result<_, String>>()?,
        FlowSetup::Arrive | FlowSetup::ThisConnection { .. }
            if udp && !makes_cookies(client.protocol) =>
        {
            coming.map(|ticket| (Sign::Opens(client.protocol.id, from), ticket)).collect()
        }
        FlowSetup::Arrive | FlowSetup::ThisConnection { .. } => coming
            .map(|ticket| (Sign::of_proof(client.protocol, &ticket.proof, from), ticket))
            .collect(),
    })
}

/// The port of a flow, if each port is this far from the one before.
fn port_of(first: u16, number: usize, apart: u16) -> Result<u16, String> {
    let port = usize::from(first) + number * usize::from(apart);
    u16::try_from(port).map_err(|_| format!("there is no port {port}"))
}

/// Opens the ports at which flows are awaited, unless they are open already.
async fn open_ports(
    signs: &[(Sign, &FlowTicket)],
    client: &ClientInfo,
    shared: &Arc<Shared>,
) -> Result<Vec<OpenPort>, String> {
    let mut opened = Vec::new();
    for (sign, _) in signs {
        let Sign::Reserved(port, transport, _) = *sign else { continue };
        match shared.endpoints.iter().find(|endpoint| endpoint.port() == port) {
            None => {
                let mut local = client.local;
                local.set_port(port);
                opened.push(shared.ports.open(local, transport, shared).await?);
            }
            // Elsewhere the flow could be another client's, behind the same address.
            Some(endpoint) if endpoint.rest().is_none() => {
                return Err(format!("port {port} is this server's own; choose another"));
            }
            Some(_) => {}
        }
    }
    Ok(opened)
}

/// Where each flow that this end connects goes: to the client's own address and nowhere else.
fn targets(
    tickets: &[FlowTicket],
    flow_setup: &FlowSetup,
    client: &ClientInfo,
) -> Result<Option<Vec<(std::net::SocketAddr, FlowTicket)>>, String> {
    let (own, first, apart) = match *flow_setup {
        FlowSetup::Connect { port, apart } => (0, port.unwrap_or(client.peer.port()), apart),
        FlowSetup::ThisConnection { back: Some(port), .. } => (1, port, 0),
        FlowSetup::Arrive | FlowSetup::Listen { .. } | FlowSetup::ThisConnection { .. } => {
            return Ok(None);
        }
    };
    let coming = tickets.iter().skip(own).filter(|ticket| ticket.shares.is_none());
    let target = |(number, ticket): (usize, &FlowTicket)| {
        let port = port_of(first, number, apart)?;
        Ok((connect::target(client.peer, port)?, ticket.clone()))
    };
    coming.enumerate().map(target).collect::<Result<_, String>>().map(Some)
}

/// Refuses ports at which a client on this very host can't listen, because this server does: it would connect to
/// itself. Datagrams go to the socket that was bound last.
fn not_our_own(
    targets: &[(std::net::SocketAddr, FlowTicket)],
    plan: &Plan,
    client: &ClientInfo,
    shared: &Shared,
) -> Result<(), String> {
    let here = plan.transport == Transport::Tcp && client.peer.ip() == client.local.ip();
    let is_own = |port: u16| shared.endpoints.iter().any(|endpoint| endpoint.port() == port);
    match targets.iter().find(|(target, _)| here && is_own(target.port())) {
        None => Ok(()),
        Some((target, _)) => Err(format!(
            "port {} of this host is this server's own, so no client here can listen on it; choose another (nuttcp -p 5201)",
            target.port()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Direction;
    use goodput_wire::protocols::{iperf2, nuttcp};
    use goodput_wire::ticket::Proof;

    fn client(protocol: &'static Protocol) -> ClientInfo {
        let address = |text: &str| text.parse().unwrap();
        ClientInfo { protocol, peer: address("192.0.2.1:999"), local: address("192.0.2.9:5000") }
    }

    fn plan(direction: Direction, flows: u16) -> Plan {
        Plan { transport: Transport::Udp, direction, flows, ..Plan::standard() }
    }

    fn tickets(plan: &Plan, shares: Option<u16>) -> Vec<FlowTicket> {
        let ticket = |flow: goodput_model::FlowPlan| {
            let shares = shares.filter(|of| *of != flow.id);
            FlowTicket { flow, proof: Proof::default(), framing: goodput_framing::ttcp(), shares }
        };
        plan.flow_plans().into_iter().map(ticket).collect()
    }

    #[test]
    fn nothing_is_sent_to_an_address_that_may_be_forged() {
        let here = FlowSetup::ThisConnection { taken_bytes: 0, back: None };
        let outcome = |direction, proven| {
            let plan = Plan { chunk_bytes: Transport::Udp.standard_chunk(), ..plan(direction, 1) };
            let tickets = tickets(&plan, None);
            let wish = Wish { plan, tickets, flow_setup: here.clone(), proven };
            check(&wish, &client(&iperf2::PROTOCOL))
        };
        assert_eq!(outcome(Direction::Send, false), Ok(()));
        assert!(outcome(Direction::Reverse, false).unwrap_err().contains("--allow-unproven-udp"));
        assert!(outcome(Direction::Both, false).is_err());
        assert_eq!(outcome(Direction::Reverse, true), Ok(()));
    }

    #[test]
    fn flows_are_awaited_at_a_port_each_unless_they_share_one() {
        let (plan, flow_setup) =
            (plan(Direction::Send, 2), FlowSetup::Listen { first_port: 65_535 });
        let (alone, shared) = (tickets(&plan, None), tickets(&plan, Some(0)));
        let client = client(&nuttcp::PROTOCOL);
        let one = signs(&plan, &shared, &flow_setup, &client).unwrap();
        let sign = Sign::Reserved(65_535, Transport::Udp, [192, 0, 2, 1].into());
        assert_eq!(one.into_iter().map(|(sign, _)| sign).collect::<Vec<_>>(), [sign]);
        assert!(signs(&plan, &alone, &flow_setup, &client).is_err(), "there is no port 65536");
    }

    #[test]
    fn only_user_ports_of_the_client_itself_are_connected_to() {
        let plan = plan(Direction::Reverse, 2);
        let tickets = tickets(&plan, None);
        let client = client(&nuttcp::PROTOCOL);
        let to = |port, apart| {
            let flow_setup = FlowSetup::Connect { port: Some(port), apart };
            let found = targets(&tickets, &flow_setup, &client).ok()??;
            Some(found.iter().map(|(target, _)| target.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(to(5001, 1).unwrap(), ["192.0.2.1:5001", "192.0.2.1:5002"]);
        assert_eq!(to(1023, 1), None);
        assert_eq!(to(65_535, 1), None);
    }
}
