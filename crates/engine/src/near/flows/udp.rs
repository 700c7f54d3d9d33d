//! A UDP flow that this end opens: a socket, and the greeting that its protocol has for it.

use std::io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use goodput_model::{EndName, Framing, Plan};
use goodput_mover::Early;
use goodput_wire::datagram::{self, FromServer, iperf3};
use goodput_wire::protocols::goodput::preamble::cookie_of;
use goodput_wire::session::Cookie;
use goodput_wire::ticket::FlowTicket;

use crate::error::EngineError;

/// After which a datagram of the proof is sent again.
const REPEAT: Duration = Duration::from_millis(200);

/// Longest datagram (RFC 768 and RFC 791): nothing of an early one may be cut off.
const LONGEST: usize = 65_535;

/// Opens a flow and greets the far end as its framing has it. Blocks.
pub fn open(
    address: SocketAddr,
    plan: &Plan,
    ticket: &FlowTicket,
    time: Duration,
) -> Result<(OwnedFd, Early), EngineError> {
    let fd = goodput_mover::socket::udp_socket(None, address, &plan.socket, false)
        .map_err(EngineError::of_flow(ticket.flow.id))?;
    let socket = UdpSocket::from(fd);
    let early = greet(&socket, ticket, time)
        .map_err(EngineError::io(format!("open flow {} to {address} over UDP", ticket.flow.id)))?;
    Ok((socket.into(), early))
}

fn greet(socket: &UdpSocket, ticket: &FlowTicket, time: Duration) -> std::io::Result<Early> {
    match &ticket.framing {
        Framing::Goodput => {
            let cookie = cookie_of(&ticket.proof)
                .ok_or_else(|| std::io::Error::other("the far end gave it no cookie"))?;
            prove_address(socket, &cookie, time)?;
            Ok(Early::default())
        }
        Framing::Iperf3 { .. } => greet_iperf3(socket, ticket.is_sender(EndName::Near), time),
        // These begin with payload, or with a marker that belongs to it.
        Framing::Iperf2 { .. } | Framing::Nuttcp { .. } | Framing::Ttcp => Ok(Early::default()),
    }
}

/// Answers the server's challenge; every datagram of it may be lost.
fn prove_address(socket: &UdpSocket, cookie: &Cookie, time: Duration) -> std::io::Result<()> {
    let mut say = datagram::hello(cookie);
    let mut reply = [0; 128];
    ask(socket, REPEAT, time, &mut reply, |heard| match heard {
        None => Heard::Say(say.clone()),
        Some(heard) => match datagram::from_server(heard) {
            Some(FromServer::Challenge(nonce)) => {
                say = datagram::answer(cookie, &nonce);
                Heard::Say(say.clone())
            }
            Some(FromServer::Welcome(welcomed)) if welcomed == *cookie => Heard::Done,
            _ => Heard::Nothing,
        },
    })
}

/// Asks for a stream and waits for the answer. A receiver may get payload first, where the answer was
/// lost or overtaken; that says as much.
fn greet_iperf3(socket: &UdpSocket, sends: bool, time: Duration) -> std::io::Result<Early> {
    let mut early = Early::default();
    let mut room = vec![0; LONGEST];
    ask(socket, iperf3::REPEAT, time, &mut room, |heard| match heard {
        None => Heard::Say(iperf3::REQUEST.to_vec()),
        Some(heard) if iperf3::is_reply(heard) => Heard::Done,
        Some(heard) if !sends => {
            early.datagrams.push(heard.to_vec());
            Heard::Done
        }
        Some(_) => Heard::Nothing,
    })?;
    Ok(early)
}

/// What follows from a datagram, or from none.
enum Heard {
    /// Send this, now and whenever nothing is heard.
    Say(Vec<u8>),
    /// Listen on.
    Nothing,
    /// That was the answer.
    Done,
}

/// Sends and listens until the answer is there. `hear` is given each datagram, and `None` in the
/// beginning and whenever nothing came for `repeat`.
fn ask(
    socket: &UdpSocket,
    repeat: Duration,
    time: Duration,
    room: &mut [u8],
    mut hear: impl FnMut(Option<&[u8]>) -> Heard,
) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    let deadline = Instant::now() + time;
    let mut heard = None;
    loop {
        match hear(heard.map(|length| &room[..length])) {
            Heard::Say(bytes) => drop(socket.send(&bytes)?),
            Heard::Nothing => {}
            Heard::Done => return socket.set_read_timeout(None),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::Error::new(
                TimedOut,
                "no answer; a firewall may let TCP through and drop UDP on this port",
            ));
        }
        socket.set_read_timeout(Some(left.min(repeat)))?;
        heard = receive(socket, room)?;
    }
}

/// One datagram's length, or `None` where none came in time. A wait that has a time is not begun again
/// by the kernel after a process was stopped and continued (signal(7), `EINTR`).
fn receive(socket: &UdpSocket, room: &mut [u8]) -> std::io::Result<Option<usize>> {
    match socket.recv(room) {
        Ok(length) => Ok(Some(length)),
        Err(cause) if matches!(cause.kind(), TimedOut | WouldBlock | Interrupted) => Ok(None),
        Err(cause) if cause.kind() == ConnectionRefused => Err(std::io::Error::new(
            ConnectionRefused,
            "no one takes UDP on this port; is it the server's, and does it speak this protocol?",
        )),
        Err(cause) => Err(cause),
    }
}
