//! The shared token: what is accepted as one, and the key that comes from it.

use sha2::{Digest, Sha256};

use crate::session::Token;

/// Fewest bytes of a token. One that a person thought up is too easy to guess at any length; 16
/// random bytes are not (`docs/protocol.md`, security considerations).
pub const MIN_TOKEN_BYTES: usize = 16;

/// Separates keys made from a token here from anything else that may be made from it.
const KEY_DOMAIN: &[u8] = b"goodput control channel 1\0";

/// What can't be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It could be guessed.
    #[error(
        "the token has {bytes} bytes and needs at least {MIN_TOKEN_BYTES}; make one with `openssl rand -hex 16`"
    )]
    TooShort {
        /// How many there are, a newline at the end not counted.
        bytes: usize,
    },
}

impl Token {
    /// A token from the contents of a file; one newline at the end is not part of it.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, TokenError> {
        let mut bytes = bytes.into();
        if bytes.ends_with(b"\n") {
            bytes.pop();
        }
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
        if bytes.len() < MIN_TOKEN_BYTES {
            return Err(TokenError::TooShort { bytes: bytes.len() });
        }
        Ok(Self(bytes))
    }

    /// The pre-shared key of the control channel: SHA-256 of a fixed text and the token.
    pub(crate) fn key(&self) -> [u8; 32] {
        Sha256::new().chain_update(KEY_DOMAIN).chain_update(&self.0).finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_newline_at_the_end_is_not_part_of_it() {
        let plain = Token::new("0123456789abcdef").unwrap();
        assert_eq!(Token::new("0123456789abcdef\n").unwrap().key(), plain.key());
        assert_eq!(Token::new("0123456789abcdef\r\n").unwrap().key(), plain.key());
        assert_ne!(Token::new("0123456789abcdef\n\n").unwrap().key(), plain.key());
    }

    #[test]
    fn a_short_one_is_refused_with_a_way_to_make_a_good_one() {
        let error = Token::new("0123456789abcde\n").unwrap_err();
        assert_eq!(error, TokenError::TooShort { bytes: 15 });
        assert!(error.to_string().contains("openssl rand"), "{error}");
    }

    #[test]
    fn it_is_never_printed() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
