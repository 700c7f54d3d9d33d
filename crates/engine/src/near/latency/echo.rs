//! How long a datagram takes to the server and back.

use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use goodput_model::{Missing, SocketOptions};
use goodput_wire::datagram::echo::{echo, echoed};
use goodput_wire::datagram::{Nonce, ServerReply, from_server, hello};
use goodput_wire::session::Cookie;

use super::schedule::{ANSWER_TIMEOUT, Halt, PhaseProbes, Waiting};

/// Time after which a hello is repeated.
const REPEAT_INTERVAL: Duration = Duration::from_millis(200);

/// Probes until the halt.
pub fn probe(
    to: SocketAddr,
    cookie: Cookie,
    options: &SocketOptions,
    halt: &Halt,
) -> Result<PhaseProbes, Missing> {
    let failed = |cause: std::io::Error| Missing::because(format!("echo at {to}: {cause}"));
    let socket = goodput_mover::socket::udp_socket(None, to, options, false);
    let socket: UdpSocket = socket.map_err(|why| Missing::because(why.to_string()))?.into();
    socket.set_nonblocking(false).map_err(failed)?;
    let nonce = challenged(&socket, &cookie).map_err(failed)?.ok_or_else(|| {
        Missing::because(format!(
            "no echo within {} s; a firewall may drop UDP to port {}",
            ANSWER_TIMEOUT.as_secs(),
            to.port()
        ))
    })?;
    exchange(&socket, &cookie, &nonce, halt).map_err(failed)
}

fn exchange(
    socket: &UdpSocket,
    cookie: &Cookie,
    nonce: &Nonce,
    halt: &Halt,
) -> std::io::Result<PhaseProbes> {
    let mut waiting = Waiting::new(halt);
    let mut number = 0;
    while waiting.goes_on() {
        if waiting.is_due() {
            number += 1;
            let at = Instant::now();
            match socket.send(&echo(cookie, nonce, number)) {
                Ok(_) => waiting.sent(number, at),
                // The device's queue is full, or an earlier probe came back as an ICMP error.
                Err(_) => waiting.not_sent(),
            }
        }
        let answer = hear(socket, waiting.pause(), |datagram| {
            echoed(cookie, datagram).map(|answer| answer.number)
        })?;
        let at = Instant::now();
        waiting.settle(at, |probe| Some(*probe) == answer, |_| true);
    }
    Ok(waiting.into_probes())
}

/// Proves this address; `None` if the server does not answer.
fn challenged(socket: &UdpSocket, cookie: &Cookie) -> std::io::Result<Option<Nonce>> {
    let until = Instant::now() + ANSWER_TIMEOUT;
    while Instant::now() < until {
        // A lost hello is repeated.
        let _ = socket.send(&hello(cookie));
        let nonce = hear(socket, REPEAT_INTERVAL, |datagram| match from_server(datagram) {
            Some(ServerReply::Challenge(nonce)) => Some(nonce),
            _ => None,
        })?;
        if nonce.is_some() {
            return Ok(nonce);
        }
    }
    Ok(None)
}

/// What the next datagram says, if a valid one comes in time.
fn hear<T>(
    socket: &UdpSocket,
    time: Duration,
    read: impl Fn(&[u8]) -> Option<T>,
) -> std::io::Result<Option<T>> {
    socket.set_read_timeout(Some(time))?;
    let mut datagram = [0; 128];
    match socket.recv(&mut datagram) {
        Ok(length) => Ok(read(&datagram[..length])),
        Err(cause) if matches!(cause.kind(), TimedOut | WouldBlock | Interrupted) => Ok(None),
        // An ICMP error for an earlier probe, which counts as lost.
        Err(cause) if cause.kind() == std::io::ErrorKind::ConnectionRefused => Ok(None),
        Err(cause) => Err(cause),
    }
}
