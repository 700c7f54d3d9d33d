//! How the data connections of a measurement are made, and how they prove that they belong to it.

use goodput_framing::Framing;
use goodput_model::{EndName, FlowPlan, Plan};

/// What the connecting side shows first on a TCP data connection: what comes after it is payload.
/// Empty if a protocol has none, and flows are known by their address and port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Proof(pub Vec<u8>);

/// A flow, what proves it, and how its payload looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowTicket {
    /// The flow.
    pub flow: FlowPlan,
    /// What the connecting side shows. Over UDP the framing says how.
    pub proof: Proof,
    /// How the payload looks on the wire.
    pub framing: Framing,
    /// The other flow of the measurement whose connection this one shares, each sending its own way.
    pub shares: Option<u16>,
}

/// Which end connects the data connections of a measurement, seen from the end that gets the ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowSetup {
    /// They come to a port that this server listens on anyway, and show their proofs. Several flows
    /// with the same proof are taken in the order of the tickets.
    Arrive,
    /// This end listens: flow number i of the tickets comes to port `first_port` + i, from the
    /// peer's address. [`crate::session::Input::Expecting`] says when it does. Over UDP a flow is
    /// there with its first datagram, which is payload.
    Listen {
        /// Port of the first flow.
        first_port: u16,
    },
    /// This end connects to the peer's address, and shows the proofs, one after the other. A flow
    /// that shares another one's connection is not counted for the port.
    Connect {
        /// Port of the first flow; that of the control connection if there is none.
        port: Option<u16>,
        /// How much higher the port of each further flow is.
        apart: u16,
    },
    /// Server: the connection of the conversation is the data connection, of the first flow and of
    /// those that share it. The session has said on it what it had to say, and everything that comes
    /// now is payload. Over UDP it is the address that began the conversation.
    ThisConnection {
        /// Payload bytes of a stream that the session has taken already.
        taken_bytes: u64,
        /// The peer's port to which this end connects for each of the other flows.
        back: Option<u16>,
    },
}

impl FlowTicket {
    /// A ticket for each flow of a plan, all framed alike. Nothing proves a flow but its address and port.
    pub fn without_proofs(plan: &Plan, framing: &Framing) -> Vec<Self> {
        let ticket =
            |flow| Self { flow, proof: Proof::default(), framing: framing.clone(), shares: None };
        plan.flow_plans().into_iter().map(ticket).collect()
    }

    /// Who sends on it, seen from `end`: does this end send?
    pub fn is_sender(&self, end: EndName) -> bool {
        self.flow.sender == end
    }
}
