//! The shared token: which texts are accepted, and the key derived from it.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use crate::session::Token;

/// Fewest hexadecimal digits of a token: 128 bits. An attacker who has the server's answer to a first record can try
/// tokens offline, so a token must be too long for any search. A slow derivation would strengthen a weak token only a
/// little, and break compatibility with older peers.
pub const MIN_TOKEN_DIGITS: usize = 32;

/// Fewest different digits. Of 32 random digits, 8 or more differ except in one token in 10 million.
const MIN_DIFFERENT_DIGITS: usize = 8;

/// Separates keys derived here from anything else derived from the token.
const KEY_DOMAIN: &[u8] = b"goodput control channel 1\0";

/// Why a text can't be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It could be guessed.
    #[error(
        "the token needs at least {MIN_TOKEN_DIGITS} random hexadecimal digits; make one with `openssl rand -hex 16`, and give it to both ends"
    )]
    Guessable,
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
        let is_hex = bytes.iter().all(u8::is_ascii_hexdigit);
        let different: BTreeSet<_> = bytes.iter().map(u8::to_ascii_lowercase).collect();
        let is_random = different.len() >= MIN_DIFFERENT_DIGITS;
        if bytes.len() < MIN_TOKEN_DIGITS || !is_hex || !is_random {
            return Err(TokenError::Guessable);
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

    const TEXT: &str = "4cf1d5a6e0b27c9388ab41f02d6e759c";

    #[test]
    fn one_newline_at_the_end_is_not_part_of_it() {
        let plain = Token::new(TEXT).unwrap();
        assert_eq!(Token::new(format!("{TEXT}\n")).unwrap().key(), plain.key());
        assert_eq!(Token::new(format!("{TEXT}\r\n")).unwrap().key(), plain.key());
        assert!(Token::new(format!("{TEXT}\n\n")).is_err());
    }

    #[test]
    fn what_could_be_guessed_is_refused_with_a_way_to_make_a_good_one() {
        for bad in [
            "",
            &TEXT[1..],
            "correct horse battery staple, and more",
            "00000000000000000000000000000000",
            "abababababababababababababababab",
        ] {
            let error = Token::new(bad).unwrap_err();
            assert!(error.to_string().contains("openssl rand"), "{bad}: {error}");
        }
    }

    #[test]
    fn it_is_never_printed() {
        let token = Token::new(TEXT).unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
