//! User names and passwords of iperf3's protocol, for servers that ask for them.
//!
//! The client encrypts them for the server's RSA key; the server keeps hashes
//! (iperf3 3.21, `iperf_auth.c`).

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{KeyPair, PrivateDecryptingKey, PublicEncryptingKey, PublicKey};
use sha2::{Digest, Sha256};

mod sealed;

pub use sealed::{Checked, LoginMismatch, check, token};

/// Why keys or users can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Not a key in PEM, or one that is too short or too long.
    #[error("it is not an RSA {kind} key of 2048 to 8192 bits in PEM: {why}")]
    Key {
        /// Public or private.
        kind: &'static str,
        /// The reader's error.
        why: String,
    },
    /// A line of the users file is not valid.
    #[error(
        "line {line} is not NAME,HASH, where HASH is the SHA-256 of {{NAME}}PASSWORD in hexadecimal digits"
    )]
    User {
        /// Its number, from 1.
        line: usize,
    },
    /// A name or a password that the token can't contain.
    #[error("a user name and a password are one line each")]
    Lines,
}

/// How the token is padded before it is encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Padding {
    /// OAEP with SHA-1 (RFC 8017 section 7.1): iperf3 since 3.17.
    #[default]
    Oaep,
    /// PKCS#1 v1.5 (RFC 8017 section 7.2): iperf3 before 3.17, and later with `--use-pkcs1-padding`.
    Pkcs1,
}

/// A client's user name and password. Never printed.
#[derive(Clone)]
pub struct Login {
    pub(crate) username: String,
    pub(crate) password: String,
    pub(crate) key: PublicEncryptingKey,
    pub(crate) padding: Padding,
}

/// Who may measure with a server. Never printed.
#[derive(Clone)]
pub struct Users(Arc<Inner>);

struct Inner {
    key: PrivateDecryptingKey,
    padding: Padding,
    /// Names with the SHA-256 of `{name}password`.
    users: Vec<(String, [u8; 32])>,
}

impl Login {
    /// A login with the server's public key, in PEM.
    pub fn new(
        username: String,
        password: String,
        public_key: &str,
        padding: Padding,
    ) -> Result<Self, LoginError> {
        if [&username, &password].iter().any(|text| text.contains(['\n', '\r'])) {
            return Err(LoginError::Lines);
        }
        let key = public(public_key).map_err(|why| LoginError::Key { kind: "public", why })?;
        Ok(Self { username, password, key, padding })
    }
}

impl Users {
    /// The server's private key, in PEM, and the users: a name, a comma and a hash on each line; lines that begin with
    /// `#` are comments. All clients must use this padding: if a server tried both, its timing would show which one
    /// matched.
    pub fn new(private_key: &str, users: &str, padding: Padding) -> Result<Self, LoginError> {
        let key = private(private_key).map_err(|why| LoginError::Key { kind: "private", why })?;
        let lines = users.lines().enumerate();
        let said = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let users = said.map(|(at, line)| user(line).ok_or(LoginError::User { line: at + 1 }));
        let users = users.collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(Inner { key, padding, users })))
    }

    pub(crate) fn key(&self) -> &PrivateDecryptingKey {
        &self.0.key
    }

    pub(crate) fn padding(&self) -> Padding {
        self.0.padding
    }

    /// Whether this is a user with the right password.
    pub(crate) fn knows(&self, username: &str, password: &str) -> bool {
        let salted = format!("{{{username}}}{password}");
        let hash: [u8; 32] = Sha256::digest(salted).into();
        // Compares all users and all bytes of each, so that the time reveals nothing.
        self.0.users.iter().fold(false, |known, (name, theirs)| {
            let differs = hash.iter().zip(theirs).fold(0, |differs, (a, b)| differs | (a ^ b));
            known | ((name == username) & (differs == 0))
        })
    }
}

/// A key that `openssl rsa` wrote, in the form of RFC 5208 or RFC 8017.
fn private(pem: &str) -> Result<PrivateDecryptingKey, String> {
    let (label, der) = pem_rfc7468::decode_vec(pem.as_bytes()).map_err(|why| why.to_string())?;
    let der = if label == "RSA PRIVATE KEY" {
        let pair = KeyPair::from_der(&der).map_err(|why| why.to_string())?;
        pair.as_der().map_err(|why| why.to_string())?.as_ref().to_vec()
    } else {
        der
    };
    PrivateDecryptingKey::from_pkcs8(&der).map_err(|why| why.to_string())
}

/// A key in the form of RFC 5280 or RFC 8017.
fn public(pem: &str) -> Result<PublicEncryptingKey, String> {
    let (_, der) = pem_rfc7468::decode_vec(pem.as_bytes()).map_err(|why| why.to_string())?;
    let key = PublicKey::from_der(&der).map_err(|why| why.to_string())?;
    let der = key.as_der().map_err(|why| why.to_string())?;
    PublicEncryptingKey::from_der(der.as_ref()).map_err(|why| why.to_string())
}

fn user(line: &str) -> Option<(String, [u8; 32])> {
    let (name, hash) = line.split_once(',')?;
    let hash = hash.trim();
    if hash.len() != 64 || !hash.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(hash.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some((name.trim().to_owned(), bytes))
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(…)")
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Users(…)")
    }
}
