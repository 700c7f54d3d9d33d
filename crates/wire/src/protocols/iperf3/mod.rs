//! iperf3's protocol, versions 3.1 to 3.21: a control connection and data connections that all begin
//! with one cookie, states of one byte, parameters and results as JSON.
//!
//! Its only specification is the program (github.com/esnet/iperf, `src/`); this module follows the source and captures
//! of 3.12. `tests/peers` compares it with the real program.
//!
//! ```text
//! cookie   how connections begin              states   the states of one byte
//! control  states and JSON over bytes         errors   iperf3's numbers, in words
//! params   what a client asks for             number   numbers as JSON has them
//! agree    parameters to a plan (server)      express  a plan to parameters (client)
//! counts   our counts for the peer            results  the same on the wire, and the peer's
//! output   the output of an iperf3 server
//! client   the connecting side                server   the answering side
//! ```

mod agree;
mod client;
mod control;
mod cookie;
mod counts;
mod errors;
mod express;
mod number;
mod output;
mod params;
mod results;
#[cfg(test)]
mod samples;
mod server;
mod states;
mod times;

use goodput_model::Plan;

use crate::datagram::iperf3::{Request, reply_to};
use crate::far_end::FarEnd;
use crate::session::{FirstDatagram, Protocol};
use crate::ticket::{FlowTicket, Proof};

/// The port of the control connection, of TCP data connections and of UDP flows (`PORT` in `iperf.h`).
pub const PORT: u16 = 5201;

/// The name of a peer.
const PROGRAM: &str = "iperf3";

/// The registry's entry.
pub const PROTOCOL: Protocol = Protocol {
    id: "iperf3",
    summary: "iperf3 3.1 and later, both ends: TCP, UDP, reverse, both directions, users",
    port: PORT,
    has_control: true,
    far_end: FarEnd { announces_its_stop: true, ..FarEnd::PLAIN },
    takes_the_rest: false,
    recognises: cookie::recognises,
    recognises_datagram: |datagram| match reply_to(datagram) {
        Some(reply) => FirstDatagram::Opens { reply: reply.to_vec() },
        None => FirstDatagram::Foreign,
    },
    greet: |ticket| Ok(Some(Box::new(Request::of(ticket)))),
    client: |now, config| Box::new(client::ClientSession::new(now, config)),
    server: |now, config| Box::new(server::ServerSession::new(now, config)),
};

/// The flows of a plan in the order in which iperf3 connects them: flows on which the client sends come first. All
/// present the same cookie.
fn tickets(plan: &Plan, cookie: &Proof, wide: bool) -> Vec<FlowTicket> {
    let ticket = |flow| FlowTicket {
        flow,
        proof: cookie.clone(),
        framing: goodput_framing::iperf3(wide),
        shares: None,
    };
    plan.flow_plans().into_iter().map(ticket).collect()
}

#[cfg(test)]
mod tests;
