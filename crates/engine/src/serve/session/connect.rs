//! Flows that the server connects, always to the address of the client that asked.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use goodput_model::{Plan, SocketOptions, Transport};
use goodput_mover::EarlyPayload;
use goodput_mover::socket::{tcp_connect, udp_socket};
use goodput_wire::ticket::FlowTicket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::tickets::Arrival;
use crate::run::traffic::Connected;
use crate::threads::blocking;

/// How long one attempt may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to retry if a client refuses the connection: it may start to listen a little later than it announces.
const RETRY_TIME: Duration = Duration::from_secs(1);

/// Time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Lowest port to connect to: a client must not make this host connect to the services of the machine that
/// translates its address (RFC 6335 section 6).
const FIRST_USER_PORT: u16 = 1024;

/// Flows being connected; dropping it stops after the current attempt.
pub struct Connecting(AbortHandle);

impl Drop for Connecting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The port of a client's address, if it may be connected to.
pub fn target(mut peer: SocketAddr, port: u16) -> Result<SocketAddr, String> {
    if port < FIRST_USER_PORT {
        return Err(format!("port {port} is reserved for the system; use a higher one"));
    }
    peer.set_port(port);
    Ok(peer)
}

/// Connects flows one after the other, each from `local`'s address, and sends their proofs.
pub fn start(
    targets: Vec<(SocketAddr, FlowTicket)>,
    plan: &Plan,
    local: SocketAddr,
    to: mpsc::UnboundedSender<Arrival>,
) -> Connecting {
    let transport = plan.transport;
    // The client's bind address means nothing here.
    let options = SocketOptions {
        bind: None,
        device: None,
        family: None,
        source_port: None,
        ..plan.socket.clone()
    };
    let connecting = tokio::spawn(async move {
        for (target, ticket) in targets {
            let options = options.clone();
            let connecting = blocking(move || connect(target, &ticket, transport, &options, local));
            let arrival = connecting.await.unwrap_or_else(|why| Err(why.to_string()));
            let failed = arrival.is_err();
            if to.send(arrival).is_err() || failed {
                return;
            }
        }
    });
    Connecting(connecting.abort_handle())
}

fn connect(
    target: SocketAddr,
    ticket: &FlowTicket,
    transport: Transport,
    options: &SocketOptions,
    local: SocketAddr,
) -> Arrival {
    let named = |why: String| format!("flow {}: {why}", ticket.flow.id);
    let socket = match transport {
        Transport::Tcp => connect_tcp(target, ticket, options).map_err(named)?,
        Transport::Udp => {
            let mut local = local;
            local.set_port(0);
            udp_socket(Some(local), target, options, false).map_err(|e| named(e.to_string()))?
        }
    };
    let (flow, framing) = (ticket.flow, ticket.framing.clone());
    Ok(Connected {
        flow,
        socket,
        framing,
        early: EarlyPayload::default(),
        bodies: None,
        file: None,
    })
}

fn connect_tcp(
    target: SocketAddr,
    ticket: &FlowTicket,
    options: &SocketOptions,
) -> Result<OwnedFd, String> {
    let until = Instant::now() + RETRY_TIME;
    let socket = loop {
        match tcp_connect(target, options, CONNECT_TIMEOUT) {
            Ok(socket) => break socket,
            Err(why)
                if why.cause.kind() == ErrorKind::ConnectionRefused && Instant::now() < until =>
            {
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(why) => return Err(why.to_string()),
        }
    };
    let mut stream = TcpStream::from(socket);
    stream.write_all(&ticket.proof.0).map_err(|e| format!("can't send its proof: {e}"))?;
    Ok(stream.into())
}
