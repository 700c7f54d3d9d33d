//! The caller, and what the log says about its flows.

use std::net::SocketAddr;

use goodput_wire::session::Protocol;

/// The caller: its address, the address that it called, and its protocol.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The caller's protocol.
    pub protocol: &'static Protocol,
    /// The caller's address.
    pub peer: SocketAddr,
    /// The address that it called.
    pub local: SocketAddr,
}

/// Logs the options of a flow that came too late for the handshake. goodput's own plans have a listener for them; other
/// protocols can't report them to the client.
pub fn log_doubts(peer: SocketAddr, flow: u16, doubts: &[String]) {
    for doubt in doubts {
        tracing::info!(%peer, "flow {flow}: {doubt}");
    }
}
