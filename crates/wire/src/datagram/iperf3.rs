//! How an iperf3 client opens a UDP stream: four bytes there, four bytes back.
//!
//! ```text
//! client → server   request   39 38 37 36     before 3.12: 15 cd 5b 07
//! server → client   reply     36 37 38 39     before 3.12: b1 68 de 3a
//! ```
//!
//! Since 3.12 these bytes are the same on every host; earlier versions sent them in host byte
//! order, shown here for a little-endian host (iperf 3.12, `iperf.h`, `UDP_CONNECT_MSG`,
//! `UDP_CONNECT_REPLY` and the `LEGACY_` ones; `iperf_udp.c`, `iperf_udp_accept`,
//! `iperf_udp_connect`).

use std::time::Duration;

use goodput_model::EndName;

use crate::greeting::{Greeting, GreetingStep};
use crate::ticket::FlowTicket;

/// What the client sends since 3.12; an older server takes any datagram.
pub const REQUEST: [u8; 4] = [0x39, 0x38, 0x37, 0x36];
/// What a client before 3.12 sends: 123456789.
pub const LEGACY_REQUEST: [u8; 4] = [0x15, 0xcd, 0x5b, 0x07];
/// What a server answers since 3.12.
pub const REPLY: [u8; 4] = [0x36, 0x37, 0x38, 0x39];
/// What a server before 3.12 answers, and what later servers answer to old clients: 987654321.
pub const LEGACY_REPLY: [u8; 4] = [0xb1, 0x68, 0xde, 0x3a];

/// An unanswered request is sent again after this time. iperf3's client asks only once; its server
/// takes a second request for payload if the first one arrived.
const REPEAT_INTERVAL: Duration = Duration::from_secs(1);

/// What to answer to `datagram`, if it is a request of any version.
pub fn reply_to(datagram: &[u8]) -> Option<[u8; 4]> {
    match datagram.try_into().ok()? {
        REQUEST => Some(REPLY),
        LEGACY_REQUEST => Some(LEGACY_REPLY),
        word if word == swapped(LEGACY_REQUEST) => Some(swapped(LEGACY_REPLY)),
        _ => None,
    }
}

/// Whether `datagram` is a server's answer, of any version.
pub fn is_reply(datagram: &[u8]) -> bool {
    [REPLY, LEGACY_REPLY, swapped(LEGACY_REPLY)].iter().any(|reply| datagram == reply)
}

/// The same word from a host of the other byte order.
const fn swapped(word: [u8; 4]) -> [u8; 4] {
    u32::from_ne_bytes(word).swap_bytes().to_ne_bytes()
}

/// A client's request for a stream.
pub struct Request {
    /// Whether this end sends on the flow. If not, payload may come before the answer.
    sends: bool,
}

impl Request {
    /// The request for this flow.
    pub fn of(ticket: &FlowTicket) -> Self {
        Self { sends: ticket.is_sender(EndName::Near) }
    }
}

impl Greeting for Request {
    fn repeat(&self) -> Duration {
        REPEAT_INTERVAL
    }

    fn hear(&mut self, heard: Option<&[u8]>) -> GreetingStep {
        match heard {
            None => GreetingStep::Say(REQUEST.to_vec()),
            Some(heard) if is_reply(heard) => GreetingStep::Done,
            Some(_) if self.sends => GreetingStep::Nothing,
            Some(_) => GreetingStep::Payload,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_generation_and_byte_order_is_answered_in_kind() {
        assert_eq!(reply_to(&REQUEST), Some(REPLY));
        assert_eq!(reply_to(&LEGACY_REQUEST), Some(LEGACY_REPLY));
        assert_eq!(reply_to(&[0x07, 0x5b, 0xcd, 0x15]), Some([0x3a, 0xde, 0x68, 0xb1]));
        for request in [REQUEST, LEGACY_REQUEST] {
            assert!(reply_to(&request).is_some_and(|reply| is_reply(&reply)));
            assert!(!is_reply(&request));
        }
    }

    #[test]
    fn payload_is_neither() {
        for payload in [&[][..], &REQUEST[..3], &[0x39, 0x38, 0x37, 0x36, 0], b"EOD0"] {
            assert_eq!(reply_to(payload), None);
            assert!(!is_reply(payload));
        }
    }
}
