//! How the server makes cookies. The code that holds the sockets checks who presents a cookie, and
//! that each is used once.

use sha2::{Digest, Sha256};

use crate::session::Cookie;

/// Separates cookies from anything else that may be made from the same seed.
const DOMAIN: &[u8] = b"goodput cookie 1\0";

/// Makes cookies that only the holder of the seed can predict.
#[derive(Debug)]
pub struct CookieMint {
    seed: [u8; 32],
    made: u64,
}

impl CookieMint {
    /// A mint; `seed` must come from the system's random generator and serve no other mint.
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed, made: 0 }
    }

    /// The next cookie: the first 16 bytes of SHA-256(text, seed, counter).
    pub fn next_cookie(&mut self) -> Cookie {
        let hash = Sha256::new()
            .chain_update(DOMAIN)
            .chain_update(self.seed)
            .chain_update(self.made.to_be_bytes())
            .finalize();
        self.made += 1;
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&hash[..16]);
        Cookie(cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn cookies(seed: u8) -> Vec<Cookie> {
        let mut mint = CookieMint::new([seed; 32]);
        (0..8).map(|_| mint.next_cookie()).collect()
    }

    #[test]
    fn all_cookies_differ_within_and_between_seeds() {
        let all: HashSet<_> = (0..50).flat_map(cookies).collect();
        assert_eq!(all.len(), 50 * 8);
    }
}
