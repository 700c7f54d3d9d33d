//! The cookie: 36 characters and a NUL that begin every connection of a test.

use sha2::{Digest, Sha256};

use crate::session::First;
use crate::ticket::Proof;

/// Bytes of a cookie, with its NUL (iperf3 3.21, `COOKIE_SIZE` in `iperf.h`).
pub const COOKIE_BYTES: usize = 37;

/// The characters of iperf3's cookies (`make_cookie` in `iperf_util.c`).
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Separates cookies from anything else that may be made from the same seed.
const DOMAIN: &[u8] = b"goodput iperf3 cookie\0";

/// The cookie of a client with this seed.
pub fn cookie(seed: &[u8; 32]) -> Proof {
    let half =
        |half: u8| Sha256::new().chain_update(DOMAIN).chain_update(seed).chain_update([half]);
    let bytes = half(0).finalize().into_iter().chain(half(1).finalize());
    let letters = bytes.take(COOKIE_BYTES - 1).map(|byte| ALPHABET[usize::from(byte) % 32]);
    Proof(letters.chain([0]).collect())
}

/// The cookie at the beginning of these bytes, if it is complete. Versions up to 3.1 build it from
/// the host's name and the time, so it may contain any printable character.
pub fn read(bytes: &[u8]) -> Option<Proof> {
    let cookie = bytes.get(..COOKIE_BYTES)?;
    let (letters, nul) = cookie.split_at(COOKIE_BYTES - 1);
    (nul == [0] && letters.iter().all(u8::is_ascii_graphic)).then(|| Proof(cookie.to_vec()))
}

/// The cookie's 36 characters, as in iperf3's JSON.
pub fn text(cookie: &Proof) -> Option<String> {
    String::from_utf8(cookie.0.strip_suffix(&[0])?.to_vec()).ok()
}

/// How iperf3 classifies the first bytes of a connection: the control connection and the data
/// connections of a test all begin with its cookie.
pub fn recognises(bytes: &[u8]) -> First {
    if let Some(cookie) = read(bytes) {
        return First::Either(cookie);
    }
    let so_far = bytes.len() < COOKIE_BYTES && bytes.iter().all(u8::is_ascii_graphic);
    if so_far { First::Short { needs: COOKIE_BYTES } } else { First::Foreign }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a capture of iperf3 3.12.
    const CAPTURED: &[u8; COOKIE_BYTES] = b"to6orkg3aukzfrx3ka2w4iqdn6fkb3iztjdq\0";

    #[test]
    fn cookies_of_every_version_are_known() {
        assert_eq!(recognises(CAPTURED), First::Either(Proof(CAPTURED.to_vec())));
        let old = b"nas.example.1447113600.123456.5f2e77\0and more";
        assert_eq!(recognises(&old[..]), First::Either(Proof(old[..COOKIE_BYTES].to_vec())));
        for end in 0..COOKIE_BYTES - 1 {
            assert_eq!(recognises(&CAPTURED[..end]), First::Short { needs: COOKIE_BYTES });
        }
    }

    #[test]
    fn text_and_payload_are_no_cookie() {
        for other in [&b"GET / HTTP/1.1\r\n"[..], b" !\"#$", &[0x40, 1, 0, 0x78], &[b'a'; 37]] {
            assert_eq!(recognises(other), First::Foreign, "{}", other.escape_ascii());
        }
    }

    #[test]
    fn a_seed_gives_a_cookie_that_iperf3_could_have_made() {
        let made = cookie(&[7; 32]);
        assert_eq!(read(&made.0).as_ref(), Some(&made));
        assert!(made.0[..36].iter().all(|letter| ALPHABET.contains(letter)));
        assert_ne!(made, cookie(&[8; 32]));
        assert_eq!(text(&made).unwrap().as_bytes(), &made.0[..36]);
        assert_eq!(text(&Proof::default()), None);
    }
}
