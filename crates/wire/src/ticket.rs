//! How the data connections of a measurement are made, and how they prove that they belong to it.

use goodput_framing::Framing;
use goodput_model::{EndName, FlowPlan, Plan};

/// What the connecting side sends first on a TCP data connection, before payload. Empty if a protocol has none, and
/// flows are identified by address and port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Proof(pub Vec<u8>);

/// A flow, its proof, and the framing of its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowTicket {
    /// The flow.
    pub flow: FlowPlan,
    /// What the connecting side sends. Over UDP it depends on the framing.
    pub proof: Proof,
    /// How the payload looks on the wire.
    pub framing: Framing,
    /// The other flow of the measurement that shares this flow's connection. Each sends in its own direction.
    pub shares: Option<u16>,
}

/// Which end connects the data connections of a measurement, seen from the end that gets the ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowSetup {
    /// They come to a port on which this server already listens, and present their proofs. Flows with the same proof
    /// are assigned in the order of the tickets.
    Arrive,
    /// This end listens: flow number i of the tickets comes to port `first_port` + i, from the peer's address.
    /// [`crate::session::Input::Expecting`] reports when it listens. Over UDP the first datagram opens a flow, and is
    /// payload.
    Listen {
        /// Port of the first flow.
        first_port: u16,
    },
    /// This end connects to the peer's address, and presents the proofs, one after the other. A flow that shares
    /// another flow's connection doesn't advance the port.
    Connect {
        /// Port of the first flow; `None`: the control connection's.
        port: Option<u16>,
        /// How much higher the port of each further flow is.
        apart: u16,
    },
    /// Server: the connection of the conversation is the data connection of the first flow and of the flows that share
    /// it. The session has sent all its messages, and everything that arrives now is payload. Over UDP this means the
    /// address that began the conversation.
    ThisConnection {
        /// Payload bytes of a stream that the session has already taken.
        taken_bytes: u64,
        /// The peer's port to which this end connects for each other flow.
        back: Option<u16>,
    },
}

impl FlowTicket {
    /// A ticket for each flow of a plan, all framed alike. Only address and port identify a flow.
    pub fn without_proofs(plan: &Plan, framing: &Framing) -> Vec<Self> {
        let ticket =
            |flow| Self { flow, proof: Proof::default(), framing: framing.clone(), shares: None };
        plan.flow_plans().into_iter().map(ticket).collect()
    }

    /// Whether `end` sends on this flow.
    pub fn is_sender(&self, end: EndName) -> bool {
        self.flow.sender == end
    }
}
