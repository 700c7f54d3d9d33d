//! The settings helper: a process that keeps the privileges which a server gives up, and uses them for one thing
//! only: the setting requests of that server's clients.
//!
//! It doesn't trust the server: it parses each request strictly and checks it. It has a journal and
//! a guard for each client, as every run has, and puts everything back when the server is gone.

mod client;
mod main;
mod message;

pub use client::Helper;
pub use main::helper_main;
pub use message::{Answer, Refusal, Request, Work};

/// Parses any bytes as a packet of either side.
#[cfg(feature = "fuzzing")]
pub(crate) fn any_packet(bytes: &[u8]) {
    // A parsed request can be serialised again, unless its usual spelling is longer than a packet.
    if let Some(packet) = Request::parse(bytes).ok().and_then(|request| request.packet()) {
        assert!(Request::parse(&packet).is_ok());
    }
    if let Ok(answer) = message::hear(bytes) {
        let _ = message::answer_packet(answer);
    }
}

#[cfg(test)]
mod tests;
