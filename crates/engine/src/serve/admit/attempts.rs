//! How often clients may request something that takes CPU time: a burst at first, then a steady rate. This holds for
//! one client, for the networks around it, and for all together. Faster requests wait, up to a point. The count
//! outlasts the client's connection.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::quotas::{Limit, Quota, Whose, whose};

/// Most quotas that are remembered at the same time. Beyond them no new one is added.
const MAX_ACCOUNTS: usize = 65_536;

/// Limits on attempts.
#[derive(Debug, Clone, Copy)]
pub struct AttemptLimits {
    /// What is attempted.
    pub what: &'static str,
    /// Attempts that a client has at once, and so has a network.
    pub burst: u32,
    /// Attempts that all clients together have at once.
    pub burst_of_all: u32,
    /// Attempts after the burst, in each `period`.
    pub then: Limit,
    /// The period that the limit is for.
    pub period: Duration,
    /// Longest time that a client may have to wait for an attempt.
    pub patience: Duration,
}

impl AttemptLimits {
    fn refusal(&self, whose: Whose) -> String {
        let (burst, then) = self.of(whose);
        let (what, quota) = (self.what, Quota { whose, unproven: false });
        let period_s = self.period.as_secs_f64();
        format!("more than {burst} {what} at once, or {then} in {period_s} s, come from {quota}")
    }

    /// Number of attempts at once, and number in each period after those.
    fn of(&self, whose: Whose) -> (u32, u64) {
        let burst = if whose == Whose::All { self.burst_of_all } else { self.burst };
        (burst, self.then.most(&Quota { whose, unproven: false }).max(1))
    }
}

/// The attempts of all clients.
pub struct Attempts {
    pace: AttemptLimits,
    /// When each quota will have all its attempts again.
    whole: Mutex<HashMap<Whose, Instant>>,
}

impl Attempts {
    /// Attempts at this pace.
    pub fn new(pace: AttemptLimits) -> Self {
        Self { pace, whole: Mutex::default() }
    }

    /// Counts an attempt of a client. Returns how long the client has to wait.
    pub fn take(&self, client: IpAddr, now: Instant) -> Result<Duration, String> {
        self.take_within(self.pace.patience, client, now)
    }

    /// Counts an attempt of a client that can't wait.
    pub fn take_at_once(&self, client: IpAddr, now: Instant) -> Result<(), String> {
        self.take_within(Duration::ZERO, client, now).map(drop)
    }

    fn take_within(
        &self,
        patience: Duration,
        client: IpAddr,
        now: Instant,
    ) -> Result<Duration, String> {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut wait, mut booked) = (Duration::ZERO, Vec::new());
        for whose in whose(client) {
            let (burst, then) = self.pace.of(whose);
            let refill = self.pace.period.div_f64(then as f64);
            let next = whole.get(&whose).copied().unwrap_or(now).max(now) + refill;
            let its = next.saturating_duration_since(now + refill * burst);
            if its > patience {
                return Err(self.pace.refusal(whose));
            }
            wait = wait.max(its);
            if next > now {
                booked.push((whose, next));
            }
        }
        // A refused attempt is booked nowhere, so that a flood takes nothing from others.
        if whole.len() + booked.len() > MAX_ACCOUNTS {
            whole.retain(|_, whole| *whole > now);
        }
        if whole.len() + booked.len() > MAX_ACCOUNTS {
            return Err(format!("too many clients come with {}", self.pace.what));
        }
        whole.extend(booked);
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFILL_TIME: Duration = Duration::from_secs(1);
    const PACE: AttemptLimits = AttemptLimits {
        what: "logins",
        burst: 10,
        burst_of_all: 1000,
        then: Limit { all: 1000, client: 1, unproven_percent: 100 },
        period: REFILL_TIME,
        patience: REFILL_TIME.saturating_mul(4),
    };

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_client_has_few_attempts_at_once_waits_for_more_and_is_refused_beyond() {
        let (attempts, now) = (Attempts::new(PACE), Instant::now());
        let (client, at_once) = (address("2001:db8::1"), Ok(Duration::ZERO));
        for _ in 0..PACE.burst {
            assert_eq!(attempts.take(client, now), at_once);
        }
        let same = address("2001:db8::2");
        let waits: Vec<_> = (0..5).map(|_| attempts.take(same, now).ok()).collect();
        let patience = Some(PACE.patience);
        assert_eq!(
            waits,
            [Some(REFILL_TIME), Some(REFILL_TIME * 2), Some(REFILL_TIME * 3), patience, None]
        );
        assert_eq!(attempts.take(address("2001:db8:1::2"), now), at_once, "another network");
        assert_eq!(attempts.take(client, now + REFILL_TIME * 5), at_once, "what waited is over");
        let later = now + REFILL_TIME * 1000;
        let all = (0..100).filter(|_| attempts.take(client, later) == at_once);
        assert_eq!(all.count(), PACE.burst as usize);
    }

    /// Takes an attempt for each of this number of addresses. Returns how many got it at once, waited, were refused.
    fn outcomes(
        attempts: &Attempts,
        clients: impl Iterator<Item = u32>,
        now: Instant,
    ) -> [usize; 3] {
        clients.fold([0; 3], |mut counts, client| {
            let outcome = attempts.take(IpAddr::V4(client.into()), now);
            counts[match outcome {
                Ok(Duration::ZERO) => 0,
                Ok(_) => 1,
                Err(_) => 2,
            }] += 1;
            counts
        })
    }

    #[test]
    fn many_addresses_together_have_no_more_than_all_may_have() {
        let then = Limit { all: 100, client: 1, unproven_percent: 100 };
        let pace = AttemptLimits { burst: 1000, burst_of_all: 20, then, ..PACE };
        let (attempts, now) = (Attempts::new(pace), Instant::now());
        // Each in a network of its own.
        let apart = |from: u32| (from..from + 1000).map(|number| number << 8);
        assert_eq!(outcomes(&attempts, apart(0), now), [20, 400, 580]);
        assert_eq!(outcomes(&attempts, apart(1000), now), [0, 0, 1000]);
        let later = now + Duration::from_secs(2);
        assert_eq!(outcomes(&attempts, apart(2000), later), [0, 200, 800]);
        let all = attempts.take(address("192.0.2.1"), later).unwrap_err();
        for fact in ["20 logins", "100 in 1 s", "all clients"] {
            assert!(all.contains(fact), "{fact} in {all}");
        }
    }

    #[test]
    fn who_cannot_wait_is_refused_and_pays_nothing() {
        let (attempts, now) = (Attempts::new(PACE), Instant::now());
        let client = address("192.0.2.1");
        for _ in 0..PACE.burst {
            assert_eq!(attempts.take_at_once(client, now), Ok(()));
        }
        for _ in 0..100 {
            assert!(attempts.take_at_once(client, now).is_err());
        }
        assert_eq!(attempts.take(client, now), Ok(REFILL_TIME), "who waits is the first in turn");
    }

    #[test]
    fn a_network_of_many_addresses_leaves_others_their_part() {
        let then = Limit { all: 101, client: 1, unproven_percent: 100 };
        let pace = AttemptLimits { burst: 20, burst_of_all: 20, then, ..PACE };
        let (attempts, now) = (Attempts::new(pace), Instant::now());
        let [at_once, waited, refused] = outcomes(&attempts, 0..256, now);
        // A client's own and half of what is left: 51 a second, for 4 s.
        assert_eq!([at_once, waited, refused], [20, 204, 32]);
        assert!(attempts.take(address("192.0.2.1"), now).is_ok());
    }

    #[test]
    fn clients_that_are_gone_are_forgotten() {
        let endless = Limit { all: u64::MAX, client: 1, unproven_percent: 100 };
        let pace = AttemptLimits { burst_of_all: u32::MAX, then: endless, ..PACE };
        let (attempts, now) = (Attempts::new(pace), Instant::now());
        for number in 0..MAX_ACCOUNTS as u32 {
            attempts.take(IpAddr::V4(number.into()), now).expect("there is room");
        }
        assert!(attempts.take(address("2001:db8::1"), now).is_err());
        assert!(attempts.take(address("2001:db8::1"), now + REFILL_TIME).is_ok());
        assert_eq!(attempts.whole.lock().expect("nobody panicked").len(), 1);
    }
}
