//! The token with a client's login: three lines, encrypted for the server's RSA key, in base64 (3.21, `iperf_auth.c`).

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    Pkcs1PrivateDecryptingKey, Pkcs1PublicEncryptingKey,
};
use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256};

use super::{Login, Padding, Users};

/// How far a client's time of day may be off, seconds (`--time-skew-threshold`).
const SKEW_S: u64 = 10;

/// Longest token, characters: the token for a key of 8192 bits.
const MAX_TOKEN_BYTES: usize = 1400;

/// The token of a login at this time of day.
pub fn token(login: &Login, unix_s: u64) -> Result<String, String> {
    let Login { username, password, .. } = login;
    let text = format!("user: {username}\npwd:  {password}\nts:   {unix_s}");
    let sealed = sealed(login, text.as_bytes());
    let sealed = sealed.map_err(|Unspecified| {
        "the user name and password can't be encrypted: they are too long for the key"
    })?;
    Ok(Base64::encode_string(&sealed))
}

fn sealed(login: &Login, text: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let mut buffer = vec![0; login.key.key_size_bytes()];
    let key = login.key.clone();
    let length = match login.padding {
        Padding::Oaep => {
            let key = OaepPublicEncryptingKey::new(key)?;
            key.encrypt(&OAEP_SHA1_MGF1SHA1, text, &mut buffer, None)?.len()
        }
        Padding::Pkcs1 => Pkcs1PublicEncryptingKey::new(key)?.encrypt(text, &mut buffer)?.len(),
    };
    buffer.truncate(length);
    Ok(buffer)
}

fn opened(users: &Users, sealed: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let mut buffer = vec![0; users.key().key_size_bytes()];
    let key = users.key().clone();
    let length = match users.padding() {
        Padding::Oaep => {
            let key = OaepPrivateDecryptingKey::new(key)?;
            key.decrypt(&OAEP_SHA1_MGF1SHA1, sealed, &mut buffer, None)?.len()
        }
        Padding::Pkcs1 => Pkcs1PrivateDecryptingKey::new(key)?.decrypt(sealed, &mut buffer)?.len(),
    };
    buffer.truncate(length);
    Ok(buffer)
}

/// A valid login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Whose it is.
    pub user: String,
    /// Identifies the token: the SHA-256 of its bytes. A token that comes again was captured.
    pub fingerprint: [u8; 32],
}

/// Why a login is not valid, for this end's own log. The client does not learn the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoginMismatch {
    /// There is none, or it is not base64.
    #[error("it sent no login")]
    Absent,
    /// It can't be decrypted.
    #[error(
        "its login can't be decrypted with OAEP padding: it was made for another key, or by an iperf3 before 3.17, which needs `goodput serve --pkcs1-padding` (that server then accepts no OAEP)"
    )]
    NotOaep,
    /// It can't be decrypted.
    #[error(
        "its login can't be decrypted with PKCS#1 v1.5 padding: it was made for another key, or by an iperf3 3.17 or later without --use-pkcs1-padding, which needs a server without --pkcs1-padding"
    )]
    NotPkcs1,
    /// No such user, or not this password.
    #[error("its user name or password is wrong")]
    Unknown,
    /// It was made at another time.
    #[error("its time of day is more than {SKEW_S} s off")]
    Stale,
}

/// The user of a token, if the token was made at about this time of day. Takes a private operation of RSA,
/// milliseconds.
///
/// A client may send slightly changed copies of a captured token, and learn the token's content from the answers and
/// their timing (Bleichenbacher, CRYPTO 1998; Manger, CRYPTO 2001). So the operation takes the same time for every
/// result. The caller gives the same answer to every wrong token, at a time that does not depend on the result.
pub fn check(users: &Users, token: &str, unix_s: u64) -> Result<Checked, LoginMismatch> {
    let token = token.trim_end();
    if token.is_empty() || token.len() > MAX_TOKEN_BYTES {
        return Err(LoginMismatch::Absent);
    }
    let sealed = Base64::decode_vec(token).map_err(|_| LoginMismatch::Absent)?;
    let undecipherable = match users.padding() {
        Padding::Oaep => LoginMismatch::NotOaep,
        Padding::Pkcs1 => LoginMismatch::NotPkcs1,
    };
    let text = opened(users, &sealed).map_err(|Unspecified| undecipherable)?;
    let login = Decrypted::read(&text).ok_or(undecipherable)?;
    if !users.knows(&login.username, &login.password) {
        return Err(LoginMismatch::Unknown);
    }
    if login.unix_s.abs_diff(unix_s) > SKEW_S {
        return Err(LoginMismatch::Stale);
    }
    Ok(Checked { user: login.username, fingerprint: Sha256::digest(&sealed).into() })
}

struct Decrypted {
    username: String,
    password: String,
    unix_s: u64,
}

impl Decrypted {
    fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim_end_matches('\0');
        let mut lines = text.lines();
        let mut after = |key: &str| lines.next()?.strip_prefix(key);
        let (username, password) = (after("user: ")?, after("pwd:  ")?);
        let unix_s = after("ts:   ")?.trim().parse().ok()?;
        Some(Self { username: username.into(), password: password.into(), unix_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::{login, users};

    const NOW: u64 = 1_700_000_000;

    fn checked(login: &Login, padding: Padding, at: u64) -> Result<String, LoginMismatch> {
        check(&users(padding), &token(login, at).unwrap(), NOW).map(|checked| checked.user)
    }

    #[test]
    fn each_padding_is_known_to_the_server_that_takes_it() {
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let login = login("mario", "rossi", padding);
            for at in [NOW, NOW - 10, NOW + 10] {
                assert_eq!(checked(&login, padding, at), Ok("mario".into()), "{padding:?}");
            }
            for at in [NOW - 11, NOW + 11] {
                assert_eq!(checked(&login, padding, at), Err(LoginMismatch::Stale), "{padding:?}");
            }
        }
    }

    #[test]
    fn the_other_padding_is_refused_with_what_to_do() {
        let old = login("mario", "rossi", Padding::Pkcs1);
        let why = checked(&old, Padding::Oaep, NOW).unwrap_err();
        assert!(why.to_string().contains("before 3.17"), "{why}");
        let new = login("mario", "rossi", Padding::Oaep);
        let why = checked(&new, Padding::Pkcs1, NOW).unwrap_err();
        assert!(why.to_string().contains("3.17 or later"), "{why}");
    }

    #[test]
    fn who_is_not_known_is_not_let_in() {
        for (name, password) in [("mario", "Rossi"), ("maria", "rossi"), ("", ""), ("mario}", "")] {
            let login = login(name, password, Padding::Oaep);
            assert_eq!(checked(&login, Padding::Oaep, NOW), Err(LoginMismatch::Unknown), "{name}");
        }
        let users = users(Padding::Oaep);
        for token in ["", "not base64!", "AAAA", &"A".repeat(344), &"A".repeat(100_000)] {
            assert!(check(&users, token, NOW).is_err());
        }
    }

    #[test]
    fn tokens_of_the_same_words_differ_and_so_do_their_fingerprints() {
        let login = login("mario", "rossi", Padding::Oaep);
        let users = users(Padding::Oaep);
        let [one, other] = [(); 2].map(|()| token(&login, NOW).unwrap());
        assert_ne!(one, other);
        assert_eq!(check(&users, &one, NOW), check(&users, &one, NOW));
        assert_ne!(check(&users, &one, NOW), check(&users, &other, NOW));
    }
}
