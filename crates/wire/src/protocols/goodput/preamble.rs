//! The first 8 bytes of every connection: `goodput` and the role of the connection.

use goodput_model::FlowPlan;

use crate::session::{Cookie, First};
use crate::ticket::{FlowTicket, Proof};

/// Bytes of the preamble.
pub const PREAMBLE_BYTES: usize = 8;

/// Bytes before the payload of a TCP data connection: preamble and cookie.
pub const DATA_OPENING_BYTES: usize = PREAMBLE_BYTES + 16;

const MAGIC: &[u8; 7] = b"goodput";

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Control messages in the clear.
    Control,
    /// Control messages encrypted under the shared token.
    Secured,
    /// Control messages encrypted between a client and a server with a key each.
    Keyed,
    /// Payload of one flow.
    Data,
}

impl Role {
    const ALL: [Self; 4] = [Self::Control, Self::Secured, Self::Keyed, Self::Data];

    fn byte(self) -> u8 {
        match self {
            Self::Control => b'c',
            Self::Secured => b's',
            Self::Keyed => b'k',
            Self::Data => b'd',
        }
    }

    /// The preamble of a connection of this role.
    pub fn preamble(self) -> [u8; PREAMBLE_BYTES] {
        let mut preamble = [0; PREAMBLE_BYTES];
        preamble[..MAGIC.len()].copy_from_slice(MAGIC);
        preamble[MAGIC.len()] = self.byte();
        preamble
    }
}

/// The meaning of a connection's first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Too few bytes to decide.
    Incomplete,
    /// A control connection; its own bytes follow after [`PREAMBLE_BYTES`].
    Control,
    /// A control connection, encrypted under the shared token.
    Secured,
    /// A control connection, encrypted between two keys.
    Keyed,
    /// A data connection; payload follows after [`DATA_OPENING_BYTES`].
    Data(Cookie),
    /// goodput's, but with a role that this version does not know.
    UnknownRole(u8),
    /// Not goodput.
    Foreign,
}

impl Opening {
    /// Reads the first bytes of a connection. Reading again with more bytes is cheap.
    pub fn read(bytes: &[u8]) -> Self {
        let common = bytes.len().min(MAGIC.len());
        if bytes[..common] != MAGIC[..common] {
            return Self::Foreign;
        }
        let Some((role, rest)) = bytes[common..].split_first() else { return Self::Incomplete };
        match Role::ALL.into_iter().find(|r| r.byte() == *role) {
            None => Self::UnknownRole(*role),
            Some(Role::Control) => Self::Control,
            Some(Role::Secured) => Self::Secured,
            Some(Role::Keyed) => Self::Keyed,
            Some(Role::Data) => match rest.first_chunk() {
                Some(cookie) => Self::Data(Cookie(*cookie)),
                None => Self::Incomplete,
            },
        }
    }
}

/// Whether a connection with these first bytes asks for a handshake, which costs CPU time.
pub fn asks_for_handshake(first: &[u8]) -> bool {
    matches!(Opening::read(first), Opening::Secured | Opening::Keyed)
}

/// What the connecting side sends first on a TCP data connection, even if it only receives payload on it.
pub fn data_opening(cookie: &Cookie) -> [u8; DATA_OPENING_BYTES] {
    let mut opening = [0; DATA_OPENING_BYTES];
    opening[..PREAMBLE_BYTES].copy_from_slice(&Role::Data.preamble());
    opening[PREAMBLE_BYTES..].copy_from_slice(&cookie.0);
    opening
}

/// A flow of goodput's own protocol.
pub(super) fn ticket(flow: FlowPlan, cookie: &Cookie) -> FlowTicket {
    let proof = Proof(data_opening(cookie).to_vec());
    FlowTicket { flow, proof, framing: goodput_framing::goodput(), shares: None }
}

/// The cookie in a proof made by [`data_opening`].
pub fn cookie_of(proof: &Proof) -> Option<Cookie> {
    match Opening::read(&proof.0) {
        Opening::Data(cookie) => Some(cookie),
        _ => None,
    }
}

/// How goodput's own protocol classifies the first bytes of a connection.
pub fn recognises(bytes: &[u8]) -> First {
    match Opening::read(bytes) {
        Opening::Foreign => First::Foreign,
        Opening::Incomplete if bytes.len() < PREAMBLE_BYTES => {
            First::Short { needs: PREAMBLE_BYTES }
        }
        Opening::Incomplete => First::Short { needs: DATA_OPENING_BYTES },
        Opening::Control | Opening::Secured | Opening::Keyed | Opening::UnknownRole(_) => {
            First::Control
        }
        Opening::Data(cookie) => First::Data(Proof(data_opening(&cookie).to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_prefix_is_incomplete_and_the_whole_is_read() {
        let cookie = Cookie(*b"0123456789abcdef");
        let opening = data_opening(&cookie);
        for end in 0..opening.len() {
            assert_eq!(Opening::read(&opening[..end]), Opening::Incomplete, "{end}");
        }
        assert_eq!(Opening::read(&opening), Opening::Data(cookie));
        assert_eq!(Opening::read(&Role::Control.preamble()), Opening::Control);
        assert_eq!(Opening::read(&Role::Secured.preamble()), Opening::Secured);
        assert_eq!(Opening::read(&Role::Keyed.preamble()), Opening::Keyed);
        assert_eq!(Opening::read(b"goodputX"), Opening::UnknownRole(b'X'));
    }

    #[test]
    fn foreign_bytes_are_known_from_the_first_that_differs() {
        assert_eq!(recognises(b""), First::Short { needs: 8 });
        assert_eq!(recognises(b"g"), First::Short { needs: 8 });
        assert_eq!(recognises(b"G"), First::Foreign);
        assert_eq!(recognises(b"good morning"), First::Foreign);
        assert_eq!(recognises(b"goodputc"), First::Control);
        assert_eq!(recognises(b"goodputd"), First::Short { needs: 24 });
    }

    proptest! {
        #[test]
        fn a_proof_is_what_a_data_connection_begins_with(cookie: [u8; 16], tail: Vec<u8>) {
            let proof = Proof(data_opening(&Cookie(cookie)).to_vec());
            prop_assert_eq!(cookie_of(&proof), Some(Cookie(cookie)));
            let begun = [proof.0.as_slice(), &tail].concat();
            prop_assert_eq!(recognises(&begun), First::Data(proof));
        }
    }
}
