//! Logins with a user name and a password: one decryption at a time beside the event loop, few for each
//! client, and each login good once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use goodput_wire::login::{Accounts, Checked, check};
use tokio::sync::Semaphore;

use super::accounts::client_of;
use crate::client::blocking;
use crate::clock::host_clock;

/// Attempts that a client has at once.
const BURST: u32 = 10;

/// Time after which it has another one.
const REFILL: Duration = Duration::from_secs(1);

/// Attempts of all clients that may wait for the one that is looked at.
const WAITING: usize = 16;

/// Clients that are remembered at the same time. Beyond them none is new.
const CLIENTS: usize = 65_536;

/// How long a login that was let in is remembered: twice as long as it is valid, which is 10 s before
/// and after its own time of day (`--time-skew-threshold` of iperf3).
const REMEMBERED: Duration = Duration::from_secs(40);

/// All logins at one server.
pub struct Logins {
    waiting: Semaphore,
    looked_at: Semaphore,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    clients: HashMap<IpAddr, Attempts>,
    /// Fingerprints of logins that were let in, and when.
    used: HashMap<[u8; 32], Instant>,
}

/// What is left of a client's attempts: a bucket that fills with time.
struct Attempts {
    left: u32,
    at: Instant,
}

impl Default for Logins {
    fn default() -> Self {
        Self {
            waiting: Semaphore::new(WAITING),
            looked_at: Semaphore::new(1),
            memory: Mutex::default(),
        }
    }
}

impl Logins {
    /// The user whose login this is, or why there is none, for this end's own log.
    pub async fn check(
        &self,
        accounts: &Accounts,
        token: String,
        client: IpAddr,
    ) -> Result<String, String> {
        self.memory(|memory| memory.attempt(client_of(client).addr(), Instant::now()))?;
        let _waiting = self.waiting.try_acquire().map_err(|_| "too many logins wait at once")?;
        let _only = self.looked_at.acquire().await.map_err(|closed| closed.to_string())?;
        let accounts = accounts.clone();
        let unix_s = host_clock().unix_us / 1_000_000;
        let checked = blocking(move || check(&accounts, &token, unix_s)).await;
        let checked = checked.map_err(|why| why.to_string())?.map_err(|why| why.to_string())?;
        self.memory(|memory| memory.let_in(checked, Instant::now()))
    }

    fn memory<T>(&self, look: impl FnOnce(&mut Memory) -> T) -> T {
        look(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Memory {
    /// Counts an attempt of a client.
    fn attempt(&mut self, client: IpAddr, now: Instant) -> Result<(), String> {
        if self.clients.len() >= CLIENTS {
            self.clients.retain(|_, attempts| attempts.refilled(now) < BURST);
        }
        if self.clients.len() >= CLIENTS && !self.clients.contains_key(&client) {
            return Err("too many clients try to log in".into());
        }
        let attempts = self.clients.entry(client).or_insert(Attempts { left: BURST, at: now });
        let left = attempts.refilled(now);
        if left == 0 {
            return Err(format!(
                "it tries to log in more often than {BURST} times and once in {} s",
                REFILL.as_secs()
            ));
        }
        *attempts = Attempts { left: left - 1, at: attempts.whole(now) };
        Ok(())
    }

    /// Lets a login in that was not used before.
    fn let_in(&mut self, checked: Checked, now: Instant) -> Result<String, String> {
        self.used.retain(|_, at| now.saturating_duration_since(*at) < REMEMBERED);
        match self.used.insert(checked.fingerprint, now) {
            None => Ok(checked.user),
            Some(_) => Err(format!("the login of {:?} was used before", checked.user)),
        }
    }
}

impl Attempts {
    fn periods(&self, now: Instant) -> u32 {
        let passed = now.saturating_duration_since(self.at).as_secs() / REFILL.as_secs();
        u32::try_from(passed).unwrap_or(u32::MAX)
    }

    /// What is left by now.
    fn refilled(&self, now: Instant) -> u32 {
        self.left.saturating_add(self.periods(now)).min(BURST)
    }

    /// When the last whole attempt was added.
    fn whole(&self, now: Instant) -> Instant {
        if self.refilled(now) == BURST { now } else { self.at + REFILL * self.periods(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        client_of(text.parse().expect("an address")).addr()
    }

    #[test]
    fn a_client_has_few_attempts_and_gets_more_with_time() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let client = address("2001:db8::1");
        for _ in 0..BURST {
            memory.attempt(client, now).expect("one of the first");
        }
        assert!(memory.attempt(address("2001:db8::2"), now).is_err(), "the same network");
        assert!(memory.attempt(address("2001:db8:0:1::2"), now).is_ok(), "another network");
        assert!(memory.attempt(client, now + REFILL * 3 / 2).is_ok());
        assert!(memory.attempt(client, now + REFILL * 3 / 2).is_err());
        assert!(memory.attempt(client, now + REFILL * 2).is_ok(), "the half that was over counts");
        let later = now + REFILL * 1000;
        assert_eq!((0..100).filter(|_| memory.attempt(client, later).is_ok()).count(), 10);
    }

    #[test]
    fn a_login_is_good_once() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let login = |byte| Checked { user: "mario".into(), fingerprint: [byte; 32] };
        assert_eq!(memory.let_in(login(1), now), Ok("mario".into()));
        assert!(memory.let_in(login(1), now + REMEMBERED / 2).is_err());
        assert!(memory.let_in(login(2), now + REMEMBERED / 2).is_ok());
        memory.let_in(login(3), now + REMEMBERED * 2).expect("another login");
        assert_eq!(memory.used.len(), 1, "what is too old to be taken is forgotten");
    }

    #[test]
    fn clients_that_are_gone_are_forgotten() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        for number in 0..CLIENTS as u32 {
            memory.attempt(IpAddr::V4(number.into()), now).expect("there is room");
        }
        assert!(memory.attempt(address("192.0.2.1"), now).is_err());
        assert!(memory.attempt(address("192.0.2.1"), now + REFILL).is_ok());
        assert_eq!(memory.clients.len(), 1);
    }
}
