//! The token by which a client says who it is: three lines, encrypted for the server's RSA key, in
//! base64 (3.21, `iperf_auth.c`).

use base64ct::{Base64, Encoding};
use rsa::rand_core::{CryptoRng, Error, RngCore};
use rsa::{Oaep, Pkcs1v15Encrypt};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::login::{Accounts, Login, Padding};

/// How far a client's time of day may be off, seconds (`--time-skew-threshold`).
const SKEW_S: u64 = 10;

/// Longest token, characters: that of a key of 8192 bits.
const TOKEN_MAX: usize = 1400;

/// Separates these random bytes from anything else that is made from the same seed.
const DOMAIN: &[u8] = b"goodput iperf3 token\0";

/// The token of a login at this time of day.
pub fn token(login: &Login, unix_s: u64, seed: &[u8; 32]) -> Result<String, String> {
    let Login { username, password, key, padding } = login;
    let text = format!("user: {username}\npwd:  {password}\nts:   {unix_s}");
    let (mut random, text) = (Random::new(seed), text.as_bytes());
    let sealed = match padding {
        Padding::Oaep => key.encrypt(&mut random, Oaep::new::<Sha1>(), text),
        Padding::Pkcs1 => key.encrypt(&mut random, Pkcs1v15Encrypt, text),
    };
    let sealed = sealed.map_err(|why| {
        format!("the user name and password can't be encrypted: {why}; they may be too long")
    })?;
    Ok(Base64::encode_string(&sealed))
}

/// The user whose token this is, if it was made at about this time of day.
///
/// Whoever asks may have a token that was captured, changed a little, and so learn from what is said
/// of it, and when, what it holds (Bleichenbacher, CRYPTO 1998; Manger, CRYPTO 2001). So there is one
/// answer to all that is wrong, and the caller gives it after a time that does not depend on this.
pub fn user(accounts: &Accounts, token: &str, unix_s: u64, seed: &[u8; 32]) -> Option<String> {
    if token.len() > TOKEN_MAX {
        return None;
    }
    let sealed = Base64::decode_vec(token.trim_end()).ok()?;
    let (key, random) = (accounts.key(), &mut Random::new(seed));
    let oaep = key.decrypt_blinded(random, Oaep::new::<Sha1>(), &sealed);
    let pkcs1 = key.decrypt_blinded(random, Pkcs1v15Encrypt, &sealed);
    let told = oaep.or(pkcs1).ok().and_then(|text| Told::read(&text));
    let told = told.filter(|told| {
        let known = accounts.knows(&told.username, &told.password);
        known & (told.unix_s.abs_diff(unix_s) <= SKEW_S)
    });
    told.map(|told| told.username)
}

struct Told {
    username: String,
    password: String,
    unix_s: u64,
}

impl Told {
    fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim_end_matches('\0');
        let mut lines = text.lines();
        let mut after = |key: &str| lines.next()?.strip_prefix(key);
        let (username, password) = (after("user: ")?, after("pwd:  ")?);
        let unix_s = after("ts:   ")?.trim().parse().ok()?;
        Some(Self { username: username.into(), password: password.into(), unix_s })
    }
}

/// Random bytes from a seed: SHA-256 of it and a counter.
struct Random<'a> {
    seed: &'a [u8; 32],
    count: u64,
}

impl<'a> Random<'a> {
    fn new(seed: &'a [u8; 32]) -> Self {
        Self { seed, count: 0 }
    }

    fn block(&mut self) -> [u8; 32] {
        self.count += 1;
        let hash = Sha256::new().chain_update(DOMAIN).chain_update(self.seed);
        hash.chain_update(self.count.to_be_bytes()).finalize().into()
    }
}

impl CryptoRng for Random<'_> {}

impl RngCore for Random<'_> {
    fn next_u32(&mut self) -> u32 {
        self.next_u64() as u32
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, to: &mut [u8]) {
        for piece in to.chunks_mut(32) {
            let block = self.block();
            piece.copy_from_slice(&block[..piece.len()]);
        }
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(to);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::{accounts, login};

    const SEED: [u8; 32] = [9; 32];
    const NOW: u64 = 1_700_000_000;

    fn is_let_in(login: &Login, at: u64) -> bool {
        user(&accounts(), &token(login, at, &SEED).unwrap(), NOW, &[1; 32]).is_some()
    }

    #[test]
    fn both_paddings_are_known() {
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let login = login("mario", "rossi", padding);
            assert!(is_let_in(&login, NOW) && is_let_in(&login, NOW - 10), "{padding:?}");
            assert!(!is_let_in(&login, NOW - 11) && !is_let_in(&login, NOW + 11), "{padding:?}");
        }
    }

    #[test]
    fn who_is_not_known_is_not_let_in() {
        for (name, password) in [("mario", "Rossi"), ("maria", "rossi"), ("", ""), ("mario}", "")] {
            assert!(!is_let_in(&login(name, password, Padding::Oaep), NOW), "{name} {password}");
        }
        for token in ["", "not base64!", "AAAA", &"A".repeat(344), &"A".repeat(100_000)] {
            assert_eq!(user(&accounts(), token, NOW, &SEED), None);
        }
    }

    #[test]
    fn tokens_of_the_same_words_differ() {
        let login = login("mario", "rossi", Padding::Oaep);
        assert_ne!(token(&login, NOW, &[1; 32]), token(&login, NOW, &[2; 32]));
    }
}
