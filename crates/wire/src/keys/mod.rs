//! The keys by which clients and servers know each other: X25519 (RFC 7748), as text and as files.
//!
//! ```text
//! authorized  the clients that a server knows, and what each may do
//! known       the servers that a client knows
//! ```

mod authorized;
mod known;

use std::fmt;
use std::str::FromStr;

use base64ct::{Base64Unpadded, Encoding};
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};

pub use authorized::{AuthorizedKey, AuthorizedKeys, Clients, KeyAuthorization, KeyRole};
pub use known::KnownServers;

/// Prefix of a public key as text: the kind of key.
const KIND: &str = "x25519:";
/// Prefix of a private key's line in its file.
const PRIVATE: &str = "goodput-private-key-1";
/// Longest name of a key.
const MAX_NAME_BYTES: usize = 64;

/// Why a text is not a key or a file of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not a public key.
    #[error(
        "{0:?} is not a public key; write one that `goodput key` prints: it begins with {KIND}"
    )]
    Public(String),
    /// A point of small order: anyone could claim to have its private key.
    #[error(
        "{0} is a public key whose private key everyone knows; write one that `goodput key` prints"
    )]
    Weak(PublicKey),
    /// Not the file of a private key.
    #[error("it is not a private key file as made by `goodput key`")]
    Private,
    /// A name that can't be used in files and logs.
    #[error(
        "{0:?} is not a valid name for a key: 1 to {MAX_NAME_BYTES} letters, digits and . _ @ + -"
    )]
    Name(String),
    /// A line of a file is wrong.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The system has no random numbers, or the library no X25519.
    #[error("can't make a key: {0}")]
    Unable(String),
}

/// Identifies a peer. Text: `x25519:` and 43 characters of base64 (RFC 4648 section 4, without padding).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

/// Proves that its holder is the peer with the public key. Never printed.
#[derive(Clone)]
pub struct PrivateKey {
    secret: [u8; 32],
    public: PublicKey,
}

/// A private key with its owner's name for it, as stored on disk.
#[derive(Debug, Clone)]
pub struct KeyFile {
    /// Whose it is.
    pub name: String,
    /// The key.
    pub key: PrivateKey,
}

impl PublicKey {
    /// The key with these bytes, unchecked.
    pub(crate) fn unchecked(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The same key.
    ///
    /// # Errors
    /// When anyone could answer for it: with a point of small order every exchange yields zero (RFC 7748 section 6.1).
    pub(crate) fn checked(self) -> Result<Self, KeyError> {
        let mut exchanged = [0; 32];
        let mut exchange = exchange()?;
        // Any secret will do; the exchange clears the three lowest bits of each.
        exchange.set(&[1; 32]);
        exchange
            .dh(&self.0, &mut exchanged)
            .map_err(|cause| KeyError::Unable(cause.to_string()))?;
        if exchanged == [0; 32] { Err(KeyError::Weak(self)) } else { Ok(self) }
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = text.strip_prefix(KIND).and_then(decode);
        bytes.map(Self).ok_or_else(|| KeyError::Public(text.into())).and_then(Self::checked)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KIND}{}", Base64Unpadded::encode_string(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PrivateKey {
    /// The key with this secret; any 32 bytes are a valid secret.
    pub fn of(secret: [u8; 32]) -> Result<Self, KeyError> {
        let mut exchange = exchange()?;
        exchange.set(&secret);
        let public = exchange.pubkey().try_into().map_err(|_| KeyError::Private)?;
        Ok(Self { secret, public: PublicKey(public) })
    }

    /// The public key of this private key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.public)
    }
}

impl KeyFile {
    /// A key of this name from 32 random bytes.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn new(name: &str, secret: [u8; 32]) -> Result<Self, KeyError> {
        Ok(Self { name: checked_name(name)?, key: PrivateKey::of(secret)? })
    }

    /// Reads the text of [`KeyFile::to_text`].
    ///
    /// # Errors
    /// When it is anything else.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lines: Vec<_> = lines(text).map(|(_, words)| words).collect();
        let [words] = lines.as_slice() else { return Err(KeyError::Private) };
        let &[PRIVATE, name, secret] = words.as_slice() else { return Err(KeyError::Private) };
        Self::new(name, decode(secret).ok_or(KeyError::Private)?)
    }

    /// The text to store on disk; a secret.
    pub fn to_text(&self) -> String {
        let secret = Base64Unpadded::encode_string(&self.key.secret);
        let name = &self.name;
        format!(
            "# A private key of goodput. Anyone who reads it can act as {name}.\n{PRIVATE} {name} {secret}\n"
        )
    }
}

/// The name, if files and logs can contain it.
fn checked_name(name: &str) -> Result<String, KeyError> {
    let good = |c: char| c.is_ascii_alphanumeric() || "._@+-".contains(c);
    let is_name = (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(good);
    if is_name { Ok(name.into()) } else { Err(KeyError::Name(name.into())) }
}

/// The 32 bytes of a key.
fn decode(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let decoded = Base64Unpadded::decode(text, &mut bytes).ok()?;
    (decoded.len() == 32).then_some(bytes)
}

/// The words of each line that has any, with line numbers from 1. A word that begins with `#` starts a comment.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    text.lines().zip(1..).filter_map(|(line, number)| {
        let words: Vec<_> =
            line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
        (!words.is_empty()).then_some((number, words))
    })
}

fn exchange() -> Result<Box<dyn snow::types::Dh>, KeyError> {
    let exchange = DefaultResolver.resolve_dh(&DHChoice::Curve25519);
    exchange.ok_or_else(|| KeyError::Unable("there is no X25519".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first key of RFC 7748 section 6.1.
    #[test]
    fn the_public_key_is_the_one_of_the_standard() {
        let hex = |text: &str| -> [u8; 32] {
            std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
        };
        let secret = hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let public = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        assert_eq!(PrivateKey::of(secret).unwrap().public().0, public);
    }

    #[test]
    fn a_key_that_needs_no_secret_is_refused() {
        // The points of small order (RFC 7748 section 6.1; their coordinates: Bernstein, "Curve25519: new
        // Diffie-Hellman speed records", section 3).
        let one = {
            let mut bytes = [0; 32];
            bytes[0] = 1;
            bytes
        };
        for bytes in [[0; 32], one] {
            let text = PublicKey(bytes).to_string();
            assert_eq!(text.parse::<PublicKey>(), Err(KeyError::Weak(PublicKey(bytes))));
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let good = PrivateKey::of([7; 32]).unwrap().public().to_string();
        assert_eq!(good.len(), KIND.len() + 43);
        for bad in [
            "",
            "x25519:",
            &good[KIND.len()..],
            &good[..good.len() - 1],
            &format!("{good}="),
            &format!("{good}A"),
            &good.replace("x25519", "X25519"),
            &good.replace("x25519:", "x25519: "),
        ] {
            assert!(bad.parse::<PublicKey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_private_key_is_never_printed() {
        let file = KeyFile::new("me@here", [9; 32]).unwrap();
        let secret = Base64Unpadded::encode_string(&[9; 32]);
        assert!(file.to_text().contains(&secret));
        assert!(!format!("{file:?}").contains(&secret), "{file:?}");
    }

    #[test]
    fn the_file_of_a_private_key_has_one_line() {
        let text = KeyFile::new("me@here", [9; 32]).unwrap().to_text();
        let line = text.lines().last().unwrap();
        for bad in ["", "# nothing", &text.repeat(2), &line.replace("-1 ", "-2 "), &line[..60]] {
            assert_eq!(KeyFile::parse(bad).unwrap_err(), KeyError::Private, "{bad}");
        }
        for name in ["", "a b", "ä", "a\n", "#a", &"a".repeat(65)] {
            assert!(KeyFile::new(name, [9; 32]).is_err(), "{name}");
        }
    }

    proptest! {
        // Making keys is slow in test builds.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn keys_come_back_from_their_texts(secret: [u8; 32], name in "[A-Za-z0-9._@+-]{1,64}") {
            let file = KeyFile::new(&name, secret).unwrap();
            let back = KeyFile::parse(&file.to_text()).unwrap();
            prop_assert_eq!((back.name, back.key.secret), (name, secret));
            let public = file.key.public();
            prop_assert_eq!(public.to_string().parse(), Ok(public));
        }

        #[test]
        fn no_two_texts_are_one_key(text in "x25519:[A-Za-z0-9+/]{43}") {
            if let Ok(key) = text.parse::<PublicKey>() {
                prop_assert_eq!(key.to_string(), text);
            }
        }

        #[test]
        fn no_text_makes_a_reader_panic(text: String) {
            let _ = (text.parse::<PublicKey>(), KeyFile::parse(&text));
        }
    }
}
