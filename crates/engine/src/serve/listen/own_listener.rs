//! A listener for one measurement, for socket options that must be set on the listener.
//!
//! An accepted socket inherits from its listener what the handshake fixes: the window scale, which
//! follows from the receive buffer, and the congestion control. If they are changed later, BBR leaves
//! its pacing behind and the scale stays the same. The listener also decides about MPTCP.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use goodput_model::SocketOptions;
use goodput_wire::protocols::goodput::PROTOCOL;
use tokio::task::AbortHandle;

use super::accept::{Listening, accept};
use crate::serve::Shared;
use crate::serve::listen::endpoint::Endpoint;
use crate::serve::session::ports::OwnPort;

/// Closes the listener when it is dropped.
struct OwnListener(AbortHandle);

impl Drop for OwnListener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Listens on a free port at the address of `local`, with the options of the measurement.
pub fn open(
    mut local: SocketAddr,
    options: &SocketOptions,
    shared: Arc<Shared>,
) -> Result<OwnPort, String> {
    local.set_port(0);
    let listener = goodput_mover::socket::tcp_listen(local, options).map_err(|e| e.to_string())?;
    let listener = TcpListener::from(listener);
    let local = listener.local_addr().map_err(|e| e.to_string())?;
    let endpoint = Arc::new(Endpoint { local, spoken: vec![&PROTOCOL] });
    let alive = shared.alive.token().ok_or("the server is stopping")?;
    let listening = Listening::new(listener).map_err(|e| e.to_string())?;
    let accepting = tokio::spawn(accept(listening, endpoint, shared, alive));
    Ok(OwnPort::new(local.port(), OwnListener(accepting.abort_handle())))
}
