//! nuttcp: lines of text on a control connection, payload on ports of its own. Versions 6.1.2 to
//! 8.2.2; line numbers in comments are those of nuttcp-8.2.2.c.
//!
//! ```text
//! C→S  HELO nuttcp v8.2.2
//! S→C  HELO nuttcp v6.1.2
//! C→S  buflen = 65536, nbuf = …, port = 5101, trans = 1, …        one line of parameters
//! S→C  OK v6.1.2                                                  or KO, the reason, KO
//!        … payload …
//! S→C  interval lines, DONE                                       if requested
//! S→C  nuttcp-r: …                                                the server's counts
//! S    closes
//! ```
//!
//! ```text
//! version     features of versions          lines          bounded lines of text
//! parameters  reads and writes the line     plan           the line and a plan
//! client      the connecting side           report         our server's report
//! server      the answering side            server_report  a server's report about itself
//! intervals   its lines while it runs       third_party    a measurement with another server
//! ```

mod client;
mod intervals;
mod lines;
mod parameters;
mod plan;
mod report;
mod server;
mod server_report;
mod third_party;
mod version;

use std::time::Duration;

use goodput_model::{Plan, Transport};

use crate::far_end::FarEnd;
use crate::greeting;
use crate::session::{First, FirstDatagram, Protocol};
use crate::ticket::FlowTicket;

/// The registry's entry.
pub const PROTOCOL: Protocol = Protocol {
    id: "nuttcp",
    summary: "nuttcp 6.1.2 to 8.2.2: one direction, TCP or UDP, totals of the far end",
    port: 5000,
    has_control: true,
    far_end: FarEnd::PLAIN,
    takes_the_rest: false,
    recognises,
    recognises_datagram,
    greet: greeting::none,
    client: |now, config| Box::new(client::ClientSession::new(now, config)),
    server: |now, config| Box::new(server::ServerSession::new(now, config)),
};

/// The version that this end announces.
const OURS: version::Version = version::Version::new(8, 2, 2);

/// First data port of goodput's clients: the default since 6.2.8 (line 1052).
const DATA_PORT: u16 = 5101;

/// Most streams of one measurement (`MAXSTREAM`, line 864).
const MAX_STREAMS: u16 = 128;

/// From the connection to the parameters, at each end.
const GREETING_TIMEOUT: Duration = crate::patience::GREETING_TIMEOUT;

/// From the parameters to their acceptance or refusal.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);

/// From the parameters to a server that is ready for its data connections. It may have to wait for
/// its turn, because only the order distinguishes the data connections of one address.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(60);

/// From the acceptance to all data connections. nuttcp gives each 5 s (`ACCEPT_TIMEOUT`, line 852).
const FLOWS_TIMEOUT: Duration = Duration::from_secs(10);

/// From all data connections to the first payload.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(15);

/// From the latest end of the payload to the server's last line.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);

/// Pause between the two begin markers of our UDP sender, before its payload.
const BEGIN_PAUSE: Duration = Duration::from_millis(100);

/// How much longer than announced a server lets a client send.
const GRACE_TIME: Duration = Duration::from_secs(3);

/// Shortest datagram that can hold the count, bytes (line 4736).
const MIN_COUNTED_BYTES: u64 = 32;

/// The beginning of a client's first line: since 3.1.1, and before.
const OPENINGS: [&[u8]; 2] = [version::HELO, parameters::BEGINS];

fn recognises(first: &[u8]) -> First {
    for opening in OPENINGS {
        if first.starts_with(opening) {
            return First::Control;
        }
    }
    let begun = OPENINGS.iter().filter(|opening| opening.starts_with(first));
    match begun.map(|opening| opening.len()).min() {
        Some(needs) => First::Short { needs },
        None => First::Foreign,
    }
}

/// A sender's begin markers; they get no answer (lines 7273 to 7285).
fn recognises_datagram(datagram: &[u8]) -> FirstDatagram {
    match datagram {
        b"BOD0" | b"BOD1" => FirstDatagram::Opens { reply: Vec::new() },
        _ => FirstDatagram::Foreign,
    }
}

/// A ticket for each flow of a plan; only address and port identify a flow.
fn tickets(plan: &Plan, interval_s: f64) -> Vec<FlowTicket> {
    FlowTicket::without_proofs(plan, &goodput_framing::nuttcp(is_counted(plan, interval_s)))
}

/// Whether each datagram on this flow carries the bytes sent so far (line 4736). With several
/// streams nuttcp counts over all of them, so a single stream can't use the count.
fn is_counted(plan: &Plan, interval_s: f64) -> bool {
    let has_room = plan.chunk_bytes.0 >= MIN_COUNTED_BYTES;
    plan.transport == Transport::Udp && interval_s > 0.0 && plan.flows == 1 && has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_begin_are_known_by_their_first_bytes() {
        assert_eq!(recognises(b"HELO nuttcp v6.1.2\n"), First::Control);
        assert_eq!(recognises(b"buflen = 65536, nbuf"), First::Control);
        assert_eq!(recognises(b"HELO n"), First::Short { needs: 13 });
        assert_eq!(recognises(b""), First::Short { needs: 9 });
        assert_eq!(recognises(b"HELO mail.example.org\r\n"), First::Foreign);
    }

    #[test]
    fn only_begin_markers_open_a_flow() {
        assert_eq!(recognises_datagram(b"BOD0"), FirstDatagram::Opens { reply: Vec::new() });
        for other in [&b"EOD0"[..], b"BOD0 ", b"BO", b""] {
            assert_eq!(recognises_datagram(other), FirstDatagram::Foreign);
        }
    }
}
