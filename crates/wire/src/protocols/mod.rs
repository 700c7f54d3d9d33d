//! Every protocol, in the order in which they are listed. The first is goodput's own.

pub mod goodput;

use goodput::preamble;

use crate::session::{Cookie, Protocol};

/// The list is the truth: targets, `goodput list protocols`, the conformance suite and the fuzz
/// target are made from it.
pub const ALL: &[&Protocol] = &[&goodput::PROTOCOL];

pub use goodput::preamble::data_opening;

/// Most bytes that need to be read before a connection is known for what it is. A server that
/// reads no more than these at first swallows no payload.
pub const OPENING_BYTES: usize = preamble::DATA_OPENING_BYTES;

/// What the first bytes of a connection say.
pub enum Opening {
    /// Too few bytes to tell.
    TooShort,
    /// A control connection of this protocol, whose session takes these bytes as well.
    Control(&'static Protocol),
    /// A data connection that shows a cookie; payload follows after [`OPENING_BYTES`].
    Data(Cookie),
    /// No protocol that is known here. [`crate::foreign::client`] says what it seems to be.
    Unknown,
}

/// Tells by the first bytes of a connection what it is. Asking again with more of them is cheap.
pub fn opening(first: &[u8]) -> Opening {
    match preamble::Opening::read(first) {
        preamble::Opening::Data(cookie) => return Opening::Data(cookie),
        preamble::Opening::Incomplete => return Opening::TooShort,
        _ => {}
    }
    match ALL.iter().find(|protocol| (protocol.recognises)(first) == Some(true)) {
        Some(protocol) => Opening::Control(protocol),
        None if ALL.iter().any(|protocol| (protocol.recognises)(first).is_none()) => {
            Opening::TooShort
        }
        None => Opening::Unknown,
    }
}

#[cfg(test)]
mod tests;
