//! goodput's own protocol, version 1: one control connection, and data connections that prove
//! themselves with cookies. Specified in `docs/protocol.md`.
//!
//! ```text
//! preamble  which role a connection has         channel   messages and keep-alives over bytes
//! messages  what is said, as JSON               secure    the Noise handshake and encryption
//! check     whether a plan may be measured      running   a measurement, the same at both ends
//! client    the connecting side's states        server    the answering side's states
//! ```

mod channel;
mod check;
mod client;
pub mod messages;
pub mod preamble;
mod running;
mod secure;
mod server;
pub mod times;

use crate::session::Protocol;

/// Version of the protocol. Grows when an older peer would misunderstand what this one says; new
/// optional fields do not make it grow.
pub const PROTOCOL_VERSION: u32 = 1;

/// The port of the control connection, of TCP data connections and of UDP flows.
///
/// It lies in the range 7479 to 7490, which IANA has not assigned; 7474, which would be easier to
/// remember, is Neo4j's, and 7480 is where Ceph's object gateway listens.
pub const PORT: u16 = 7487;

/// The registry's entry.
pub const PROTOCOL: Protocol = Protocol {
    id: "goodput",
    summary: "goodput's own: both ends observed, settings of the far end with a token",
    port: PORT,
    recognises: preamble::recognises,
    client: |now, config| Box::new(client::ClientSession::new(now, config)),
    server: |now, config| Box::new(server::ServerSession::new(now, config)),
};
