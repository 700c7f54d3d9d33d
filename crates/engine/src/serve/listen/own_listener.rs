//! A listener for one measurement, for socket options that must be set on the listener.
//!
//! An accepted socket inherits from its listener what the handshake fixes: the window scale, which
//! follows from the receive buffer, and the congestion control. Changed afterwards, BBR leaves its
//! pacing behind and a scale stays what it was. Whether it is MPTCP is the listener's as well.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use goodput_model::{Plan, SocketOptions, Transport};
use goodput_wire::protocols::goodput::PROTOCOL;
use tokio::task::AbortHandle;

use super::accept::{Listening, accept};
use crate::serve::Shared;
use crate::serve::listen::listeners::Endpoint;

/// Whether a plan needs one.
pub fn is_needed(plan: &Plan) -> bool {
    let socket = &plan.socket;
    plan.transport == Transport::Tcp
        && (socket.congestion.is_some() || socket.rcvbuf_bytes.is_some() || socket.mptcp)
}

/// The listener; closed when it is dropped.
pub struct OwnListener {
    port: u16,
    accepting: AbortHandle,
}

impl OwnListener {
    /// Listens on a free port of the address of `local`, with the options of the measurement.
    pub fn open(
        mut local: SocketAddr,
        options: &SocketOptions,
        shared: Arc<Shared>,
    ) -> Result<Self, String> {
        local.set_port(0);
        let listener =
            goodput_mover::socket::tcp_listen(local, options).map_err(|e| e.to_string())?;
        let listener = TcpListener::from(listener);
        let local = listener.local_addr().map_err(|e| e.to_string())?;
        let (endpoint, port) =
            (Arc::new(Endpoint { local, spoken: vec![&PROTOCOL] }), local.port());
        let alive = shared.alive.token().ok_or("the server is stopping")?;
        let listening = Listening::new(listener).map_err(|e| e.to_string())?;
        let accepting = tokio::spawn(accept(listening, endpoint, shared, alive));
        Ok(Self { port, accepting: accepting.abort_handle() })
    }

    /// Where the flows shall connect to.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for OwnListener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
