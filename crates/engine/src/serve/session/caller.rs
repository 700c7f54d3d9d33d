//! Who came, and what the log says of its flows.

use std::net::SocketAddr;

use goodput_wire::session::Protocol;

/// Who came, where to, and what it speaks.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// What it speaks.
    pub protocol: &'static Protocol,
    /// Where it came from.
    pub peer: SocketAddr,
    /// Where it came to.
    pub local: SocketAddr,
}

/// Logs the options of a flow that came too late for the handshake. goodput's own plans have a listener for them; no
/// other protocol can report them to its client.
pub fn log_doubts(peer: SocketAddr, flow: u16, doubts: &[String]) {
    for doubt in doubts {
        tracing::info!(%peer, "flow {flow}: {doubt}");
    }
}
