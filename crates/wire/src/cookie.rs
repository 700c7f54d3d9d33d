//! Cookies: how the server makes them, and the jar from which each is taken once.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

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

/// The cookies that a server still expects, over all its sessions. Each is good once.
///
/// It is looked up, not compared: the time of a lookup tells nothing about 128 random bits.
#[derive(Debug)]
pub struct CookieJar<S> {
    expected: HashMap<Cookie, Expected<S>>,
}

#[derive(Debug)]
struct Expected<S> {
    session: S,
    flow: FlowPlan,
    deadline: Instant,
}

impl<S> Default for CookieJar<S> {
    fn default() -> Self {
        Self { expected: HashMap::new() }
    }
}

impl<S: Clone + Eq + Hash> CookieJar<S> {
    /// Expects these flows of `session` until `deadline`.
    pub fn insert(&mut self, session: &S, tickets: &[FlowTicket], deadline: Instant) {
        for FlowTicket { flow, cookie } in tickets {
            let expected = Expected { session: session.clone(), flow: *flow, deadline };
            self.expected.insert(*cookie, expected);
        }
    }

    /// Takes a cookie out: whose it is and which flow it proves. `None`: never given out, used
    /// already, or too late.
    pub fn redeem(&mut self, cookie: &Cookie, now: Instant) -> Option<(S, FlowPlan)> {
        let expected = self.expected.remove(cookie)?;
        (now <= expected.deadline).then_some((expected.session, expected.flow))
    }

    /// Expects nothing of `session` any more.
    pub fn forget(&mut self, session: &S) {
        self.expected.retain(|_, expected| expected.session != *session);
    }

    /// Drops what is too late.
    pub fn expire(&mut self, now: Instant) {
        self.expected.retain(|_, expected| now <= expected.deadline);
    }

    /// How many cookies are expected.
    pub fn len(&self) -> usize {
        self.expected.len()
    }

    /// Whether none is expected.
    pub fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::origin;
    use goodput_model::{Direction, Plan};
    use std::collections::HashSet;
    use std::time::Duration;

    const LATER: Duration = Duration::from_secs(10);

    fn tickets(seed: u8) -> Vec<FlowTicket> {
        let plan = Plan { direction: Direction::Both, flows: 4, ..Plan::standard() };
        CookieMint::new([seed; 32]).tickets(&plan.flow_plans())
    }

    #[test]
    fn all_cookies_differ_within_and_between_seeds() {
        let all: HashSet<_> = (0..50).flat_map(tickets).map(|t| t.cookie).collect();
        assert_eq!(all.len(), 50 * 8);
    }

    #[test]
    fn a_cookie_is_good_once() {
        let (mut jar, now, tickets) = (CookieJar::default(), origin(), tickets(1));
        jar.insert(&7, &tickets, now + LATER);
        assert_eq!(jar.redeem(&tickets[3].cookie, now), Some((7, tickets[3].flow)));
        assert_eq!(jar.redeem(&tickets[3].cookie, now), None);
        assert_eq!(jar.redeem(&Cookie([0; 16]), now), None);
        assert_eq!(jar.len(), 7);
    }

    #[test]
    fn a_late_or_forgotten_cookie_is_worth_nothing() {
        let (mut jar, now) = (CookieJar::default(), origin());
        let (one, two) = (tickets(1), tickets(2));
        jar.insert(&1, &one, now + LATER);
        jar.insert(&2, &two, now + LATER);
        jar.forget(&1);
        assert_eq!(jar.redeem(&one[0].cookie, now), None);
        assert_eq!(jar.redeem(&two[0].cookie, now + LATER * 2), None);
        jar.expire(now + LATER * 2);
        assert!(jar.is_empty());
    }
}
