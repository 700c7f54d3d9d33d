//! A port that clients come to.

use std::net::SocketAddr;

use goodput_wire::session::Protocol;

/// What is known about a port that clients come to.
#[derive(Debug)]
pub struct Endpoint {
    /// Its address.
    pub local: SocketAddr,
    /// The protocols whose first bytes are recognised here; empty if only awaited flows come.
    pub spoken: Vec<&'static Protocol>,
}

impl Endpoint {
    /// Its port.
    pub fn port(&self) -> u16 {
        self.local.port()
    }

    /// The protocol that accepts what no other protocol recognises, if there is one.
    pub fn rest(&self) -> Option<&'static Protocol> {
        self.spoken.iter().copied().find(|protocol| protocol.takes_the_rest)
    }
}
