//! Cookies: how the server makes them. Who presents one, and that each is good once, is for the
//! holder of the sockets to see to.

use goodput_model::FlowPlan;
use sha2::{Digest, Sha256};

use crate::session::{Cookie, FlowTicket};

/// Separates cookies from anything else that may be made from the same seed.
const DOMAIN: &[u8] = b"goodput cookie 1\0";

/// Makes cookies that only the holder of the seed can foretell.
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

    /// A ticket for each flow.
    pub fn tickets(&mut self, flows: &[FlowPlan]) -> Vec<FlowTicket> {
        flows.iter().map(|flow| FlowTicket { flow: *flow, cookie: self.next_cookie() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Direction, Plan};
    use std::collections::HashSet;

    fn tickets(seed: u8) -> Vec<FlowTicket> {
        let plan = Plan { direction: Direction::Both, flows: 4, ..Plan::standard() };
        CookieMint::new([seed; 32]).tickets(&plan.flow_plans())
    }

    #[test]
    fn all_cookies_differ_within_and_between_seeds() {
        let all: HashSet<_> = (0..50).flat_map(tickets).map(|t| t.cookie).collect();
        assert_eq!(all.len(), 50 * 8);
    }
}
