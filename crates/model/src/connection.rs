//! The addresses between which a flow's payload moves.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The addresses of one flow's socket at the near end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connection {
    /// Number of the flow in the plan.
    pub flow: u16,
    /// This end's address and port.
    #[schemars(with = "String")]
    pub local: SocketAddr,
    /// The far end's address and port.
    #[schemars(with = "String")]
    pub remote: SocketAddr,
    /// Receive queue of the receiver's card that should get this flow, according to the card's hash. Only if
    /// the ports were chosen by the hash (`spread_ports`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_queue: Option<u16>,
}
