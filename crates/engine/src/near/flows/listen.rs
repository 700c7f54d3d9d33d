//! Flows that the far end opens, to ports of this end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use goodput_model::{Plan, Transport};
use goodput_mover::EarlyPayload;
use goodput_mover::socket::{apply_accepted, tcp_listen, udp_listen};
use goodput_wire::ticket::FlowTicket;
use tokio::net::{TcpListener, UdpSocket};

use super::{CONNECT_TIMEOUT, Opened, Opening, higher};
use crate::error::EngineError;

/// Listeners for the flows of one measurement, one port each; closed when dropped.
pub struct FlowListeners<'a> {
    plan: &'a Plan,
    tickets: &'a [FlowTicket],
    peer: SocketAddr,
    listeners: Vec<FlowListener>,
}

enum FlowListener {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

impl<'a> FlowListeners<'a> {
    /// Listens at `local`, if the peer knows an address, for each flow that has its own connection.
    /// Accepts flows from the address of `peer` only.
    pub fn open(
        plan: &'a Plan,
        tickets: &'a [FlowTicket],
        local: Option<SocketAddr>,
        peer: SocketAddr,
        first_port: u16,
    ) -> Result<Self, EngineError> {
        if plan.socket.source_port.is_some() {
            let why = "the far end opens the flows, so --source-port can't be used here";
            return Err(EngineError::Flow(why.into()));
        }
        let mut first = local.unwrap_or_else(|| any(peer));
        first.set_port(first_port);
        let own = tickets.iter().filter(|ticket| ticket.shares.is_none());
        let listeners: Result<_, _> = own
            .zip(0..)
            .map(|(ticket, place)| {
                FlowListener::open(plan, ticket.flow.id, higher(first, place, 1)?)
            })
            .collect();
        Ok(Self { plan, tickets, peer, listeners: listeners? })
    }

    /// Takes the flows, in the order of their tickets.
    pub async fn take(self) -> Result<Opened, EngineError> {
        let mut opening = Opening::new(self.plan, self.tickets.len());
        opening.peer = Some(self.peer);
        let mut listeners = self.listeners.into_iter();
        for ticket in self.tickets {
            if opening.share(ticket)? {
                continue;
            }
            let id = ticket.flow.id;
            let listener = listeners
                .next()
                .ok_or_else(|| EngineError::Flow(format!("no port for flow {id}")))?;
            let came =
                tokio::time::timeout(CONNECT_TIMEOUT, listener.take(self.peer.ip(), self.plan))
                    .await;
            let (socket, doubts) = came
                .unwrap_or_else(|_| Err(did_not_come(self.peer)))
                .map_err(|cause| EngineError::Flow(format!("flow {id}: {cause}")))?;
            opening.doubt(doubts);
            opening.add(ticket, socket, EarlyPayload::default());
        }
        opening.done()
    }
}

impl FlowListener {
    fn open(plan: &Plan, flow: u16, address: SocketAddr) -> Result<Self, EngineError> {
        let named = || format!("await flow {flow} at {address}");
        let listening = EngineError::of_flow(flow);
        match plan.transport {
            Transport::Tcp => {
                let fd = tcp_listen(address, &plan.socket).map_err(listening)?;
                let listener = std::net::TcpListener::from(fd);
                listener.set_nonblocking(true).map_err(EngineError::io(named()))?;
                TcpListener::from_std(listener).map(Self::Tcp).map_err(EngineError::io(named()))
            }
            Transport::Udp => {
                let fd = udp_listen(address, &plan.socket).map_err(listening)?;
                let socket = std::net::UdpSocket::from(fd);
                socket.set_nonblocking(true).map_err(EngineError::io(named()))?;
                UdpSocket::from_std(socket).map(Self::Udp).map_err(EngineError::io(named()))
            }
        }
    }

    /// The flow that `from` opens; connections from other addresses are dropped.
    async fn take(self, from: IpAddr, plan: &Plan) -> std::io::Result<(OwnedFd, Vec<String>)> {
        match self {
            Self::Tcp(listener) => loop {
                let (stream, peer) = listener.accept().await?;
                if is_same(peer.ip(), from) {
                    let doubts = apply_accepted(&stream, &plan.socket)?;
                    return Ok((stream.into_std()?.into(), doubts));
                }
            },
            Self::Udp(socket) => loop {
                // Left in the socket for the mover.
                let (_, peer) = socket.peek_from(&mut [0]).await?;
                if is_same(peer.ip(), from) {
                    socket.connect(peer).await?;
                    return Ok((socket.into_std()?.into(), Vec::new()));
                }
                socket.recv_from(&mut [0]).await?;
            },
        }
    }
}

fn is_same(one: IpAddr, other: IpAddr) -> bool {
    one.to_canonical() == other.to_canonical()
}

/// The wildcard address of this host in the IP version of `peer`.
fn any(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

fn did_not_come(peer: SocketAddr) -> std::io::Error {
    std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        format!(
            "{} did not open the connection within {} s; a firewall or NAT may block connections to this host",
            peer.ip(),
            CONNECT_TIMEOUT.as_secs()
        ),
    )
}
