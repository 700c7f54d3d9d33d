//! The keys of NATS (nkeys: Ed25519, written with their kind and a checksum): a user's, by which a server knows it, and
//! one that signs.

use std::fmt;
use std::str::FromStr;

use base64ct::{Base64UrlUnpadded, Encoding};
use nkeys::{KeyPair, KeyPairType};

/// Why a key can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NkeyError {
    /// It is no seed.
    #[error("this is no nkey seed, which begins with S: {0}")]
    Seed(String),
    /// It is no public key.
    #[error("this is no public nkey, which begins with O, A or U: {0}")]
    Public(String),
}

/// A private key. Whoever has it is its owner: it is never printed.
pub struct Seed(KeyPair);

/// The public part of a key.
#[derive(Clone)]
pub struct Public(KeyPair);

impl Seed {
    /// A new key of a user, with which it logs in.
    pub fn user() -> Self {
        Self(KeyPair::new(KeyPairType::User))
    }

    /// A new key that signs; no server takes it for a user's.
    pub fn signer() -> Self {
        Self(KeyPair::new(KeyPairType::Operator))
    }

    /// Reads a seed, in a file with blanks and comments (`#`) or alone.
    ///
    /// # Errors
    /// It is none.
    pub fn read(text: &str) -> Result<Self, NkeyError> {
        let seed = without_comments(text);
        KeyPair::from_seed(&seed).map(Self).map_err(|why| NkeyError::Seed(why.to_string()))
    }

    /// The seed as a text.
    ///
    /// # Errors
    /// Never for a key that was made or read here.
    pub fn text(&self) -> Result<String, NkeyError> {
        self.0.seed().map_err(|why| NkeyError::Seed(why.to_string()))
    }

    /// Its public part.
    pub fn public(&self) -> String {
        self.0.public_key()
    }

    /// Signs bytes (Ed25519, RFC 8032).
    ///
    /// # Errors
    /// Never for a key that was made or read here.
    pub fn sign(&self, bytes: &[u8]) -> Result<String, NkeyError> {
        let signature = self.0.sign(bytes).map_err(|why| NkeyError::Seed(why.to_string()))?;
        Ok(Base64UrlUnpadded::encode_string(&signature))
    }
}

impl Public {
    /// Whether this key has signed these bytes.
    pub fn has_signed(&self, bytes: &[u8], signature: &str) -> bool {
        let signature = Base64UrlUnpadded::decode_vec(signature);
        signature.is_ok_and(|signature| self.0.verify(bytes, &signature).is_ok())
    }
}

impl FromStr for Public {
    type Err = NkeyError;

    /// Reads a public key, in a file with blanks and comments (`#`) or alone.
    fn from_str(text: &str) -> Result<Self, NkeyError> {
        let key = without_comments(text);
        KeyPair::from_public_key(&key).map(Self).map_err(|why| NkeyError::Public(why.to_string()))
    }
}

impl fmt::Display for Public {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.public_key())
    }
}

impl fmt::Debug for Public {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Public({self})")
    }
}

fn without_comments(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.starts_with('#')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_read_as_it_was_written_and_its_public_part_knows_what_it_signed() {
        let seed = Seed::signer();
        let text = format!("# of the coordinator\n {}\n", seed.text().unwrap());
        let again = Seed::read(&text).unwrap();
        assert_eq!(again.public(), seed.public());
        let public: Public = format!("# comment\n{}\n", seed.public()).parse().unwrap();
        let signature = again.sign(b"task").unwrap();
        assert!(public.has_signed(b"task", &signature));
        assert!(!public.has_signed(b"Task", &signature));
        for wrong in ["", "???", "AAAA", &Seed::signer().sign(b"task").unwrap()] {
            assert!(!public.has_signed(b"task", wrong), "{wrong}");
        }
        assert!(Seed::user().public().starts_with('U') && seed.public().starts_with('O'));
    }

    #[test]
    fn what_is_no_key_is_refused_without_a_word_of_it() {
        for wrong in ["", "SUSECRET", "not a key", "ä"] {
            let why = Seed::read(wrong).err().unwrap().to_string();
            assert!(why.contains("begins with S") && !why.contains("SUSECRET"), "{why}");
            assert!(wrong.parse::<Public>().is_err());
        }
        let seed = Seed::user();
        assert!(seed.text().unwrap().parse::<Public>().is_err());
        assert!(Seed::read(&seed.public()).is_err());
    }
}
