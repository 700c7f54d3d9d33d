//! A user name and a password, for servers that ask for them: of iperf3's protocol.
//!
//! The client encrypts them for the server's RSA key; the server keeps hashes
//! (iperf3 3.21, `iperf_auth.c`).

use std::fmt;
use std::sync::Arc;

use rsa::pkcs1::{DecodeRsaPrivateKey, DecodeRsaPublicKey};
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey};
use rsa::{RsaPrivateKey, RsaPublicKey};
use sha2::{Digest, Sha256};

/// Keys that are longer only cost time, bits.
const KEY_MAX_BITS: usize = 8192;

/// Why keys or users can't be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Not a key in PEM.
    #[error("it is no RSA {kind} key in PEM: {why}")]
    Key {
        /// Public or private.
        kind: &'static str,
        /// What the reader says.
        why: String,
    },
    /// A line of the users is none.
    #[error(
        "line {line} is not NAME,HASH, where HASH is the SHA-256 of {{NAME}}PASSWORD in hexadecimal digits"
    )]
    User {
        /// Its number, from 1.
        line: usize,
    },
    /// A name or a password that the token has no place for.
    #[error("a user name and a password are one line each")]
    Lines,
}

/// How the token is padded before it is encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Padding {
    /// OAEP with SHA-1 (RFC 8017 section 7.1): iperf3 from 3.17 on.
    #[default]
    Oaep,
    /// PKCS#1 v1.5 (RFC 8017 section 7.2): before, and later with `--use-pkcs1-padding`.
    Pkcs1,
}

/// What a client says who it is. Never printed.
#[derive(Clone)]
pub struct Login {
    pub(crate) username: String,
    pub(crate) password: String,
    pub(crate) key: RsaPublicKey,
    pub(crate) padding: Padding,
}

/// Who may measure with a server. Never printed.
#[derive(Clone)]
pub struct Accounts(Arc<Inner>);

struct Inner {
    key: RsaPrivateKey,
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
        let key = RsaPublicKey::from_public_key_pem(public_key)
            .or_else(|other| RsaPublicKey::from_pkcs1_pem(public_key).map_err(|_| other))
            .map_err(|why| LoginError::Key { kind: "public", why: why.to_string() })?;
        Ok(Self { username, password, key, padding })
    }
}

impl Accounts {
    /// The server's private key, in PEM, and the users: a name, a comma and a hash each line; lines
    /// that begin with `#` say nothing.
    pub fn new(private_key: &str, users: &str) -> Result<Self, LoginError> {
        let broken = |why: String| LoginError::Key { kind: "private", why };
        let key = RsaPrivateKey::from_pkcs8_pem(private_key)
            .or_else(|other| RsaPrivateKey::from_pkcs1_pem(private_key).map_err(|_| other))
            .map_err(|why| broken(why.to_string()))?;
        if rsa::traits::PublicKeyParts::n(&key).bits() > KEY_MAX_BITS {
            return Err(broken(format!("it has more than {KEY_MAX_BITS} bits")));
        }
        let lines = users.lines().enumerate();
        let said = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let users = said.map(|(at, line)| user(line).ok_or(LoginError::User { line: at + 1 }));
        let users = users.collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(Inner { key, users })))
    }

    pub(crate) fn key(&self) -> &RsaPrivateKey {
        &self.0.key
    }

    /// Whether this is a user with the right password.
    pub(crate) fn knows(&self, username: &str, password: &str) -> bool {
        let salted = format!("{{{username}}}{password}");
        let hash: [u8; 32] = Sha256::digest(salted).into();
        // All of them, and all bytes of each: the time it takes tells nothing.
        self.0.users.iter().fold(false, |known, (name, theirs)| {
            let differs = hash.iter().zip(theirs).fold(0, |differs, (a, b)| differs | (a ^ b));
            known | ((name == username) & (differs == 0))
        })
    }
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

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Accounts(…)")
    }
}
