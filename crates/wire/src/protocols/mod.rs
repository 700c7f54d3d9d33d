//! Every protocol, in the order of the list. The first is goodput's own.

pub mod goodput;
pub mod iperf2;
pub mod iperf3;
pub mod nuttcp;
pub mod ttcp;

use crate::session::{First, FirstDatagram, Protocol};
use crate::ticket::Proof;

/// The list is the source of truth: targets, `goodput list protocols`, the conformance suite and the fuzz target use
/// it.
pub const ALL: &[&Protocol] =
    &[&goodput::PROTOCOL, &iperf3::PROTOCOL, &iperf2::PROTOCOL, &nuttcp::PROTOCOL, &ttcp::PROTOCOL];

/// The meaning of a connection's first bytes.
pub enum Opening {
    /// Too few bytes to decide.
    TooShort {
        /// At least this many bytes decide. A reader that reads no more than these takes no payload.
        needs: usize,
    },
    /// The beginning of a conversation of this protocol, whose session takes these bytes as well.
    Control(&'static Protocol),
    /// A data connection that presents a proof.
    Data(Proof),
    /// A data connection if the proof is awaited, else the beginning of a conversation.
    Either(&'static Protocol, Proof),
    /// None of the given protocols. [`crate::foreign::client`] describes the client.
    Unknown,
}

/// Which of `spoken` a connection with these first bytes belongs to. Asking again with more bytes is cheap.
pub fn opening(spoken: &[&'static Protocol], first: &[u8]) -> Opening {
    let mut needs: Option<usize> = None;
    for protocol in spoken {
        match (protocol.recognises)(first) {
            First::Foreign => {}
            First::Short { needs: more } => needs = Some(needs.map_or(more, |n| n.min(more))),
            First::Control => return Opening::Control(protocol),
            First::Data(proof) => return Opening::Data(proof),
            First::Either(proof) => return Opening::Either(protocol, proof),
        }
    }
    needs.map_or(Opening::Unknown, |needs| Opening::TooShort { needs })
}

/// Which of `spoken` the first datagram of an address belongs to, and how; `None` if none.
pub fn datagram_opening(
    spoken: &[&'static Protocol],
    datagram: &[u8],
) -> Option<(&'static Protocol, FirstDatagram)> {
    let read = |protocol: &&'static Protocol| {
        let first = (protocol.recognises_datagram)(datagram);
        (first != FirstDatagram::Foreign).then_some((*protocol, first))
    };
    spoken.iter().find_map(read)
}

#[cfg(test)]
mod tests;
