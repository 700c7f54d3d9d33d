//! Clients that propose measurements and don't send their flows have to wait longer each time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ipnet::IpNet;

use super::quotas::client_of;

/// A proposal that is given up sooner has not blocked anyone.
const MIN_HARMFUL_TIME: Duration = Duration::from_secs(2);
/// Abandoned proposals without a penalty: flows get lost, and some firewalls let only some ports through.
const FORGIVEN_PROPOSALS: u32 = 2;
/// The first wait; each further one is twice as long.
const FIRST_WAIT_TIME: Duration = Duration::from_secs(5);
/// The longest wait.
const MAX_WAIT_TIME: Duration = Duration::from_secs(300);
/// After this time without another abandoned proposal, all are forgotten.
const FORGET_TIME: Duration = Duration::from_secs(900);

/// Clients that abandoned proposals.
#[derive(Debug, Default)]
pub struct BackOff(HashMap<IpNet, Unfulfilled>);

#[derive(Debug, Clone, Copy)]
struct Unfulfilled {
    count: u32,
    last: Instant,
}

impl Unfulfilled {
    /// When the next proposal is accepted.
    fn until(&self) -> Option<Instant> {
        let doubled = self.count.checked_sub(FORGIVEN_PROPOSALS + 1)?;
        let wait = FIRST_WAIT_TIME.saturating_mul(1 << doubled.min(16)).min(MAX_WAIT_TIME);
        Some(self.last + wait)
    }
}

impl BackOff {
    /// Whether a client may propose a measurement; if not, why.
    pub fn may_propose(&self, client: IpAddr, now: Instant) -> Result<(), String> {
        let Some(entry) = self.0.get(&client_of(client)) else { return Ok(()) };
        let Some(left) = entry.until().and_then(|until| until.checked_duration_since(now)) else {
            return Ok(());
        };
        if left.is_zero() {
            return Ok(());
        }
        Err(format!(
            "busy: the flows of {} measurements proposed by this client never arrived; check that data connections get through, and try again in {} s",
            entry.count,
            left.as_secs_f64().ceil()
        ))
    }

    /// A client's proposal was given up after it was `held`, or its time ran out.
    pub fn unfulfilled(&mut self, client: IpAddr, held: Duration, now: Instant) {
        if held < MIN_HARMFUL_TIME {
            return;
        }
        self.0.retain(|_, entry| now.saturating_duration_since(entry.last) < FORGET_TIME);
        let new = Unfulfilled { count: 0, last: now };
        let entry = self.0.entry(client_of(client)).or_insert(new);
        *entry = Unfulfilled { count: entry.count.saturating_add(1), last: now };
    }

    /// All flows of a proposal have come, which makes up for one abandoned proposal.
    pub fn fulfilled(&mut self, client: IpAddr) {
        let client = client_of(client);
        let Some(entry) = self.0.get_mut(&client) else { return };
        entry.count -= 1;
        if entry.count == 0 {
            self.0.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Duration = Duration::from_secs(10);

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn waits_grow_are_bounded_and_concern_one_client() {
        let (mut waiting, mut now) = (BackOff::default(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..12 {
            waiting.unfulfilled(address(1), HELD, now);
            let mut waited = 0;
            while waiting.may_propose(address(1), now).is_err() {
                now += Duration::from_secs(1);
                waited += 1;
            }
            waits.push(waited);
        }
        assert_eq!(waits, [0, 0, 5, 10, 20, 40, 80, 160, 300, 300, 300, 300]);
        assert_eq!(waiting.may_propose(address(2), now), Ok(()));
    }

    #[test]
    fn the_reason_says_how_long() {
        let (mut waiting, now) = (BackOff::default(), Instant::now());
        (0..3).for_each(|_| waiting.unfulfilled(address(1), HELD, now));
        let why = waiting.may_propose(address(1), now).unwrap_err();
        assert!(why.starts_with("busy: ") && why.contains("try again in 5 s"), "{why}");
    }

    #[test]
    fn what_was_short_or_made_good_or_is_long_past_does_not_count() {
        let (mut waiting, now) = (BackOff::default(), Instant::now());
        (0..9).for_each(|_| waiting.unfulfilled(address(1), MIN_HARMFUL_TIME / 2, now));
        assert_eq!(waiting.may_propose(address(1), now), Ok(()));
        (0..3).for_each(|_| waiting.unfulfilled(address(1), HELD, now));
        waiting.fulfilled(address(1));
        assert_eq!(waiting.may_propose(address(1), now), Ok(()));
        (0..9).for_each(|_| waiting.unfulfilled(address(2), HELD, now));
        waiting.unfulfilled(address(3), HELD, now + FORGET_TIME);
        assert_eq!(waiting.0.len(), 1, "only what is fresh is kept");
    }
}
