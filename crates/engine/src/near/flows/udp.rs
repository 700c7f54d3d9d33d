//! A UDP flow that this end opens: a socket, and its protocol's greeting.

use std::io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use goodput_model::Plan;
use goodput_mover::EarlyPayload;
use goodput_wire::greeting::{Greeting, GreetingStep};
use goodput_wire::session::Protocol;
use goodput_wire::ticket::FlowTicket;

use crate::error::EngineError;

/// Longest datagram (RFC 768 and RFC 791): an early one must not be cut off.
const MAX_DATAGRAM_BYTES: usize = 65_535;

/// Opens a flow and greets the far end as `protocol` demands. Blocks.
pub fn open(
    protocol: &Protocol,
    address: SocketAddr,
    plan: &Plan,
    ticket: &FlowTicket,
    time: Duration,
) -> Result<(OwnedFd, EarlyPayload), EngineError> {
    let fd = goodput_mover::socket::udp_socket(None, address, &plan.socket, false)
        .map_err(EngineError::of_flow(ticket.flow.id))?;
    let socket = UdpSocket::from(fd);
    let early = greet(protocol, &socket, ticket, time)
        .map_err(EngineError::io(format!("open flow {} to {address} over UDP", ticket.flow.id)))?;
    Ok((socket.into(), early))
}

fn greet(
    protocol: &Protocol,
    socket: &UdpSocket,
    ticket: &FlowTicket,
    time: Duration,
) -> std::io::Result<EarlyPayload> {
    match (protocol.greet)(ticket).map_err(std::io::Error::other)? {
        Some(mut greeting) => ask(socket, greeting.as_mut(), time),
        None => Ok(EarlyPayload::default()),
    }
}

/// Sends and listens until the answer comes.
fn ask(
    socket: &UdpSocket,
    greeting: &mut dyn Greeting,
    time: Duration,
) -> std::io::Result<EarlyPayload> {
    socket.set_nonblocking(false)?;
    let deadline = Instant::now() + time;
    let mut room = vec![0; MAX_DATAGRAM_BYTES];
    let (mut heard, mut early) = (None, EarlyPayload::default());
    loop {
        let datagram = heard.map(|length: usize| &room[..length]);
        match greeting.hear(datagram) {
            GreetingStep::Say(bytes) => drop(socket.send(&bytes)?),
            GreetingStep::Nothing => {}
            said @ (GreetingStep::Done | GreetingStep::Payload) => {
                let payload = datagram.filter(|_| said == GreetingStep::Payload);
                early.datagrams.extend(payload.map(<[u8]>::to_vec));
                socket.set_read_timeout(None)?;
                return Ok(early);
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::Error::new(
                TimedOut,
                "no answer; a firewall may allow TCP and drop UDP on this port",
            ));
        }
        socket.set_read_timeout(Some(left.min(greeting.repeat())))?;
        heard = receive(socket, &mut room)?;
    }
}

/// Returns the length of one datagram, or `None` if none came in time. The kernel does not restart a
/// wait with a timeout after a process was stopped and continued (signal(7), `EINTR`).
fn receive(socket: &UdpSocket, room: &mut [u8]) -> std::io::Result<Option<usize>> {
    match socket.recv(room) {
        Ok(length) => Ok(Some(length)),
        Err(cause) if matches!(cause.kind(), TimedOut | WouldBlock | Interrupted) => Ok(None),
        Err(cause) if cause.kind() == ConnectionRefused => Err(std::io::Error::new(
            ConnectionRefused,
            "nothing receives UDP on this port; check that it is the server's port and that the server speaks this protocol",
        )),
        Err(cause) => Err(cause),
    }
}
