//! A TCP flow that this end connects.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use goodput_model::Plan;
use goodput_mover::socket::{SocketError, tcp_connect};
use goodput_wire::ticket::FlowTicket;

use crate::error::EngineError;

/// A far end may announce that it is ready before it listens: how long it may take to listen, and how often to try to
/// connect. nuttcp's own client waits only 10 ms, and 20 ms more for each further stream (nuttcp-8.2.2.c, lines 5466
/// and 5509).
const MAX_LISTEN_DELAY: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Connects a flow and sends its proof. Blocks.
pub fn open(
    address: SocketAddr,
    plan: &Plan,
    ticket: &FlowTicket,
    time: Duration,
) -> Result<OwnedFd, EngineError> {
    let connected = if ticket.framing.listens_late() {
        insist(address, plan, time)
    } else {
        connect(address, plan, time)
    };
    let mut stream = TcpStream::from(connected.map_err(EngineError::of_flow(ticket.flow.id))?);
    let named = || format!("prove flow {} to {address}", ticket.flow.id);
    stream.write_all(&ticket.proof.0).map_err(EngineError::io(named()))?;
    Ok(stream.into())
}

fn connect(address: SocketAddr, plan: &Plan, time: Duration) -> Result<OwnedFd, SocketError> {
    tcp_connect(address, &plan.socket, time)
}

/// Connects to a far end that may not listen yet.
fn insist(address: SocketAddr, plan: &Plan, time: Duration) -> Result<OwnedFd, SocketError> {
    let give_up = Instant::now() + MAX_LISTEN_DELAY.min(time);
    loop {
        match connect(address, plan, time) {
            Err(error)
                if error.cause.kind() == ErrorKind::ConnectionRefused
                    && Instant::now() < give_up =>
            {
                std::thread::sleep(RETRY_INTERVAL);
            }
            outcome => return outcome,
        }
    }
}
