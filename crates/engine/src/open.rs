//! The connecting side's data connections: connect each flow and prove that it belongs here.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use goodput_model::{Plan, Transport};
use goodput_mover::Early;
use goodput_wire::datagram::{self, FromServer};
use goodput_wire::protocols::goodput::preamble::cookie_of;
use goodput_wire::session::Cookie;
use goodput_wire::ticket::FlowTicket;

use crate::error::EngineError;
use crate::traffic::Connected;

/// How long one data connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long all of them may take together, which is as long as the far end waits for them.
const CONNECT_ALL: Duration = goodput_wire::protocols::goodput::times::FLOWS;
/// After which a datagram of the proof is sent again.
const REPEAT: Duration = Duration::from_millis(200);

/// Connected and proven flows.
pub struct Opened {
    /// Each flow with its socket.
    pub flows: Vec<Connected>,
    /// What the kernel made of the socket options, where it differs from what was asked.
    pub doubts: Vec<String>,
}

/// Opens every flow of a plan towards `address`. Blocks.
pub fn open_flows(
    address: SocketAddr,
    plan: &Plan,
    tickets: &[FlowTicket],
) -> Result<Opened, EngineError> {
    let mut opened = Opened { flows: Vec::new(), doubts: Vec::new() };
    let deadline = Instant::now() + CONNECT_ALL;
    for ticket in tickets {
        let time = time_left(deadline, opened.flows.len(), tickets.len())?;
        let socket = match plan.transport {
            Transport::Tcp => open_tcp(address, plan, ticket, time)?,
            Transport::Udp => open_udp(address, plan, ticket, time)?,
        };
        for doubt in goodput_mover::socket::check_effective(&socket, &plan.socket) {
            if !opened.doubts.contains(&doubt) {
                opened.doubts.push(doubt);
            }
        }
        let (framing, early) = (ticket.framing.clone(), Early::default());
        opened.flows.push(Connected { flow: ticket.flow, socket, framing, early });
    }
    Ok(opened)
}

/// How long the next connection may take. `done` of `all` are there.
fn time_left(deadline: Instant, done: usize, all: usize) -> Result<Duration, EngineError> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(EngineError::Flow(format!(
            "only {done} of {all} data connections could be made in {} s; the path may be too long \
             for so many, use fewer flows",
            CONNECT_ALL.as_secs()
        ))),
        left => Ok(left.min(CONNECT)),
    }
}

fn open_tcp(
    address: SocketAddr,
    plan: &Plan,
    ticket: &FlowTicket,
    time: Duration,
) -> Result<OwnedFd, EngineError> {
    let fd = goodput_mover::socket::tcp_connect(address, &plan.socket, time)
        .map_err(|error| EngineError::Flow(format!("flow {}: {error}", ticket.flow.id)))?;
    let mut stream = TcpStream::from(fd);
    let named = || format!("prove flow {} to {address}", ticket.flow.id);
    stream.write_all(&ticket.proof.0).map_err(EngineError::io(named()))?;
    Ok(stream.into())
}

fn open_udp(
    address: SocketAddr,
    plan: &Plan,
    ticket: &FlowTicket,
    time: Duration,
) -> Result<OwnedFd, EngineError> {
    let local = plan.socket.bind.unwrap_or(match address {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    });
    let local = SocketAddr::new(local, 0);
    let fd = goodput_mover::socket::udp_socket(Some(local), address, &plan.socket, false)
        .map_err(|error| EngineError::Flow(format!("flow {}: {error}", ticket.flow.id)))?;
    let socket = UdpSocket::from(fd);
    let named = || format!("prove flow {} to {address} over UDP", ticket.flow.id);
    let cookie = cookie_of(&ticket.proof)
        .ok_or_else(|| EngineError::Flow(format!("flow {} has no cookie", ticket.flow.id)))?;
    prove_address(&socket, &cookie, time).map_err(EngineError::io(named()))?;
    Ok(socket.into())
}

/// Answers the server's challenge; every datagram of it may be lost.
fn prove_address(socket: &UdpSocket, cookie: &Cookie, time: Duration) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(REPEAT))?;
    let deadline = Instant::now() + time;
    let mut say = datagram::hello(cookie);
    let mut reply = [0; 128];
    while Instant::now() < deadline {
        socket.send(&say)?;
        let Some(length) = receive(socket, &mut reply)? else { continue };
        match datagram::from_server(&reply[..length]) {
            Some(FromServer::Challenge(nonce)) => say = datagram::answer(cookie, &nonce),
            Some(FromServer::Welcome(welcomed)) if welcomed == *cookie => {
                return socket.set_read_timeout(None);
            }
            _ => {}
        }
    }
    Err(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        "no answer; a firewall may let TCP through and drop UDP on this port",
    ))
}

/// One datagram, or `None` where none came in time.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> std::io::Result<Option<usize>> {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    match socket.recv(buffer) {
        Ok(length) => Ok(Some(length)),
        Err(cause) if matches!(cause.kind(), TimedOut | WouldBlock) => Ok(None),
        Err(cause) => Err(cause),
    }
}
