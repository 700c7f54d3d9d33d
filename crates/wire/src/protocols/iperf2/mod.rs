//! iperf2, 2.0.4 to 2.2: no control connection. A TCP client writes a header in front of its payload, or none in older
//! versions; over UDP the header is in every datagram, and the server's report answers the last one. There are no
//! other messages.
//!
//! Layouts and names are those of `include/payloads.h` of iperf 2.1.8, unless a comment names
//! another version.
//!
//! ```text
//! header  the settings of a test      detect      recognises iperf2's first bytes
//! order   a header as plans           bounceback  messages that are echoed
//! ticket  a plan as headers           ack         answers to a header
//! ```

mod ack;
mod bounceback;
mod detect;
mod header;
mod order;
mod ticket;

#[cfg(test)]
mod tests;

use crate::direct::{Answering, Connecting, Dialect, FLOWS_TIMEOUT};
use crate::far_end::FarEnd;
use crate::greeting;
use crate::session::Protocol;
use goodput_model::{Direction, Plan, Role, Sample, Transport};

/// The port of TCP and UDP (`DEFAULT_PORT`, include/Settings.hpp).
pub const PORT: u16 = 5001;

/// The registry's entry.
pub const PROTOCOL: Protocol = Protocol {
    id: "iperf2",
    summary: "iperf 2.0 to 2.2: no control connection; over UDP the server reports",
    port: PORT,
    has_control: false,
    far_end: FarEnd { takes_flows_in_any_order: true, ..FarEnd::PLAIN },
    takes_the_rest: false,
    recognises: detect::recognises,
    recognises_datagram: detect::recognises_datagram,
    greet: greeting::none,
    client: |now, _| Box::new(Connecting::new(now, &DIALECT)),
    server: |now, config| Box::new(Answering::new(now, config, order::read)),
};

const DIALECT: Dialect = Dialect {
    program: "iperf2",
    opening: FLOWS_TIMEOUT,
    tickets: ticket::tickets,
    doubt,
    unreported: "iperf2 reports only its count of datagrams, over UDP",
};

/// Warns of two limits that iperf2's server does not report. A server without reverse tests reads the request as
/// payload and sends nothing. While a server accepts a UDP flow, it has no socket for the next flow
/// (`Listener::udp_accept`), for a second in 2.2.1 if the server sends.
fn doubt(plan: &Plan, last: &Sample) -> Option<String> {
    let words = match (plan.direction, plan.transport) {
        (Direction::Send, Transport::Udp) if plan.flows > 1 => {
            "an iperf2 server rejects datagrams of one flow while it sets up another, so loss at the beginning may be the server's"
        }
        (Direction::Reverse | Direction::Both, _) if last.received_bytes == 0 => {
            "nothing came from the iperf2 server: versions before 2.1 can't send on request"
        }
        (Direction::Reverse | Direction::Both, Transport::Udp) => return silent(last),
        _ => return None,
    };
    Some(words.into())
}

/// The message if nothing arrived on some of the flows.
fn silent(last: &Sample) -> Option<String> {
    let received = || last.flows.iter().filter(|flow| flow.role == Role::Receiver);
    let silent = received().filter(|flow| flow.bytes == 0).count();
    (silent > 0).then(|| {
        format!(
            "nothing came on {silent} of {} flows: an iperf 2.2 server starts one flow a second when it sends over UDP; run a longer test or use fewer flows",
            received().count()
        )
    })
}
