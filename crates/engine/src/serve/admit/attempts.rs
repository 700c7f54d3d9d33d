//! How often a client may have something done that takes processor time: a few times at once, and then at a steady
//! rate. Those that come faster wait, up to a point. It is remembered whether or not the client stays.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::accounts::client_of;

/// Clients that are remembered at the same time. Beyond them none is new.
const CLIENTS: usize = 65_536;

/// How often.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// What is attempted.
    pub what: &'static str,
    /// Attempts that a client has at once.
    pub burst: u32,
    /// Time after which it has another one.
    pub refill: Duration,
    /// How long it may have to wait for one.
    pub patience: Duration,
}

/// The attempts of all clients.
pub struct Attempts {
    pace: Pace,
    /// When each client will have all its attempts again.
    whole: Mutex<HashMap<IpAddr, Instant>>,
}

impl Attempts {
    /// At this pace.
    pub fn new(pace: Pace) -> Self {
        Self { pace, whole: Mutex::default() }
    }

    /// Counts an attempt of a client; how long it has to wait.
    pub fn take(&self, client: IpAddr, now: Instant) -> Result<Duration, String> {
        let Pace { what, burst, refill, patience } = self.pace;
        let client = client_of(client).addr();
        let mut clients = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS {
            clients.retain(|_, whole| *whole > now);
        }
        if clients.len() >= CLIENTS && !clients.contains_key(&client) {
            return Err(format!("too many clients come with {what}"));
        }
        let whole = clients.entry(client).or_insert(now);
        let next = (*whole).max(now) + refill;
        let wait = next.saturating_duration_since(now + refill * burst);
        if wait > patience {
            return Err(format!(
                "it comes with more than {burst} {what} at once and one every {} ms",
                refill.as_millis()
            ));
        }
        *whole = next;
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFILL: Duration = Duration::from_secs(1);
    const PACE: Pace =
        Pace { what: "logins", burst: 10, refill: REFILL, patience: REFILL.saturating_mul(4) };

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
        assert_eq!(waits, [Some(REFILL), Some(REFILL * 2), Some(REFILL * 3), patience, None]);
        assert_eq!(attempts.take(address("2001:db8:0:1::2"), now), at_once, "another network");
        assert_eq!(attempts.take(client, now + REFILL * 5), at_once, "what waited is over");
        let later = now + REFILL * 1000;
        let all = (0..100).filter(|_| attempts.take(client, later) == at_once);
        assert_eq!(all.count(), PACE.burst as usize);
    }

    #[test]
    fn clients_that_are_gone_are_forgotten() {
        let (attempts, now) = (Attempts::new(PACE), Instant::now());
        for number in 0..CLIENTS as u32 {
            attempts.take(IpAddr::V4(number.into()), now).expect("there is room");
        }
        assert!(attempts.take(address("192.0.2.1"), now).is_err());
        assert!(attempts.take(address("192.0.2.1"), now + REFILL).is_ok());
        assert_eq!(attempts.whole.lock().expect("nobody panicked").len(), 1);
    }
}
