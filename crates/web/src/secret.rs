//! The token that lets a person in, and what is derived from it. Nothing here says anything by how long it takes.

use base64ct::{Base64UrlUnpadded, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Shortest token, bytes: of random letters, more than anyone can try.
const MIN_BYTES: usize = 20;

/// The token of this server.
#[derive(Clone)]
pub struct Secret {
    token: String,
    /// Random, so that no seal outlives this start of the server.
    start: [u8; 32],
}

/// What a seal proves. Each is useless in place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Knowing the token.
    Login,
    /// Having logged in: the value of the cookie.
    Session,
    /// Having been given a form by this server.
    Form,
}

impl Secret {
    /// The token in the text of a file.
    ///
    /// # Errors
    /// When it is too short, in words for a person.
    pub fn new(text: &str) -> Result<Self, String> {
        let token = text.trim();
        if token.len() < MIN_BYTES {
            return Err(format!(
                "it has fewer than {MIN_BYTES} characters, so it could be guessed"
            ));
        }
        Ok(Self { token: token.into(), start: rand::random() })
    }

    /// What only this server can make, until it ends.
    pub fn seal(&self, purpose: Purpose) -> String {
        Base64UrlUnpadded::encode_string(&self.mac(purpose).finalize().into_bytes())
    }

    /// Whether `seal` is the one for `purpose`.
    pub fn is_seal(&self, purpose: Purpose, seal: &str) -> bool {
        let seal = Base64UrlUnpadded::decode_vec(seal).unwrap_or_default();
        self.mac(purpose).verify_slice(&seal).is_ok()
    }

    /// Whether `token` is this one.
    pub fn is_token(&self, token: &str) -> bool {
        let given = Self { token: token.trim().into(), start: self.start };
        self.is_seal(Purpose::Login, &given.seal(Purpose::Login))
    }

    fn mac(&self, purpose: Purpose) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(self.token.as_bytes());
        let mut mac = mac.expect("HMAC takes keys of any length");
        mac.update(match purpose {
            Purpose::Login => b"goodput web login",
            Purpose::Session => b"goodput web session",
            Purpose::Form => b"goodput web form",
        });
        mac.update(&self.start);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_and_its_own_seals_are_taken() {
        let secret = Secret::new("0123456789012345678901234\n").unwrap();
        assert!(secret.is_token("0123456789012345678901234 "));
        for wrong in ["", "012345678901234567890123", "0123456789012345678901235", "ä"] {
            assert!(!secret.is_token(wrong), "{wrong}");
        }
        let session = secret.seal(Purpose::Session);
        assert!(secret.is_seal(Purpose::Session, &session));
        assert!(!secret.is_seal(Purpose::Form, &session));
        assert!(!secret.is_seal(Purpose::Session, &session[1..]));
        assert!(!secret.is_seal(Purpose::Session, "not base64!"));
        assert!(Secret::new("short").is_err_and(|why| why.contains("20")));
    }

    #[test]
    fn a_restart_ends_sessions_and_forms() {
        let [before, after] = [(); 2].map(|()| Secret::new("0123456789012345678901234").unwrap());
        for purpose in [Purpose::Session, Purpose::Form] {
            assert!(!after.is_seal(purpose, &before.seal(purpose)), "{purpose:?}");
        }
    }
}
