//! goodput's own protocol, version 1: one control connection, and data connections that prove
//! themselves with cookies. Specified in `docs/protocol.md`.
//!
//! ```text
//! preamble  the role of a connection            channel   messages and keep-alives over bytes
//! messages  the messages, as JSON               secure    the Noise handshake and encryption
//! measurements  the current one, and running  from its first payload: the same at both ends
//! client    the connecting side's states        server    the answering side's states
//! allowance how much a peer may send            times     the deadlines
//! deflate   long messages made shorter          end       bytes to messages, the same at both ends
//! later     options that a far end may not know
//! ```

mod allowance;
mod channel;
mod client;
mod deflate;
mod end;
mod later;
mod measurements;
pub mod messages;
pub mod preamble;
mod running;
mod secure;
mod server;
pub mod times;

use crate::datagram::AddressProof;
use crate::far_end::FarEnd;
use crate::session::{FirstDatagram, Protocol};

/// Version of the protocol. It increases when an older peer would misunderstand a newer one; new
/// optional fields do not increase it.
pub const PROTOCOL_VERSION: u32 = 1;

/// The port of the control connection, of TCP data connections and of UDP flows.
///
/// IANA has not assigned the range 7479 to 7490. 7474, which would be easier to remember, is
/// Neo4j's, and Ceph's object gateway listens on 7480.
pub const PORT: u16 = 7487;

/// The registry's entry.
pub const PROTOCOL: Protocol = Protocol {
    id: "goodput",
    summary: "goodput's own: both ends observed; settings of the far end with a key or token",
    port: PORT,
    has_control: true,
    far_end: FarEnd {
        reports: true,
        counts: true,
        measures_again: true,
        captures: true,
        changes_settings: true,
        has_files: true,
        chooses_movers: true,
        knows_keys: true,
        makes_cookies: true,
        takes_flows_in_any_order: true,
        answers_probes: true,
        compares_clocks: true,
        takes_any_plan: true,
        awaits_begin: true,
        ends_as_planned: true,
        finishes_soon: true,
        announces_its_stop: false,
        needs_life_signs: true,
        gets_counts_without_warm_up: false,
    },
    takes_the_rest: false,
    recognises: preamble::recognises,
    // A `Challenger`, which knows a secret, answers it.
    recognises_datagram: |_| FirstDatagram::Foreign,
    greet: |ticket| {
        let cookie = preamble::cookie_of(&ticket.proof).ok_or("the far end gave it no cookie")?;
        Ok(Some(Box::new(AddressProof::of(cookie))))
    },
    client: |now, config| Box::new(client::ClientSession::new(now, config)),
    server: |now, config| Box::new(server::ServerSession::new(now, config)),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_has_the_numbers_of_the_code() {
        let page = include_str!("../../../../../docs/protocol.md");
        let seconds = |time: std::time::Duration| format!("{} s", time.as_secs());
        for number in [
            format!("# The goodput protocol, version {PROTOCOL_VERSION}"),
            format!("**{PORT}**"),
            format!("| {} after connecting |", seconds(times::GREETING_TIMEOUT)),
            format!("| preparing | | `accept` | expecting | {} |", seconds(times::ACCEPT_TIMEOUT)),
            format!("`flows-ready` | ready | {} |", seconds(times::FLOWS_TIMEOUT)),
            format!("| ready | `begin` | | running | {} |", seconds(times::BEGIN_TIMEOUT)),
            format!("longest + {} min without its own report", times::FLUSH_TIMEOUT.as_secs() / 60),
            format!("; {} min after it |", times::REPORTS_TIMEOUT.as_secs() / 60),
            format!(
                "longest + {} min {} |",
                (times::FLUSH_TIMEOUT + times::REPORTS_TIMEOUT).as_secs() / 60,
                seconds(times::GRACE_TIME)
            ),
            format!("| {} min without", times::IDLE_TIMEOUT.as_secs() / 60),
            format!("nothing for {} MUST send a `ping`", seconds(times::PING_INTERVAL)),
            format!("nothing came for {} is", seconds(times::SILENCE_TIMEOUT)),
            format!("on a `setting` after {}", seconds(times::SETTING_TIMEOUT)),
            format!("more than {} MiB a second", allowance::BYTES_PER_S >> 20),
            format!("or {} KiB a second otherwise", allowance::QUIET_BYTES_PER_S >> 10),
        ] {
            assert!(page.contains(&number), "{number:?} is not in docs/protocol.md");
        }
    }
}
