//! Logins with a user name and a password: one decryption at a time beside the event loop, few for each
//! client, and each login good once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use goodput_wire::login::{Accounts, Checked, check};
use tokio::sync::Semaphore;

use super::accounts::client_of;
use crate::clock::host_clock;
use crate::threads::blocking;

/// Attempts that a client has at once.
const BURST: u32 = 10;

/// Time after which it has another one.
const REFILL: Duration = Duration::from_secs(1);

/// How long a login may wait for its client's next attempt, and then for those that came before it. Both
/// together are shorter than a session waits (`JUDGING`, wire/src/protocols/iperf3/times.rs).
const PATIENCE: Duration = Duration::from_secs(4);

/// Clients that are remembered at the same time. Beyond them none is new.
const CLIENTS: usize = 65_536;

/// How long a login that was let in is remembered: twice as long as it is valid, which is 10 s before
/// and after its own time of day (`--time-skew-threshold` of iperf3).
const REMEMBERED: Duration = Duration::from_secs(40);

/// All logins at one server.
pub struct Logins {
    looked_at: Semaphore,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// When each client will have all its attempts again.
    clients: HashMap<IpAddr, Instant>,
    /// Fingerprints of logins that were let in, and when.
    used: HashMap<[u8; 32], Instant>,
}

impl Default for Logins {
    fn default() -> Self {
        Self { looked_at: Semaphore::new(1), memory: Mutex::default() }
    }
}

impl Logins {
    /// The user whose login this is, or why there is none, for this end's own log. Logins that come faster than
    /// they are looked at wait.
    pub async fn check(
        &self,
        accounts: &Accounts,
        token: String,
        client: IpAddr,
    ) -> Result<String, String> {
        let client = client_of(client).addr();
        let wait = self.memory(|memory| memory.attempt(client, Instant::now()))?;
        tokio::time::sleep(wait).await;
        let turn = tokio::time::timeout(PATIENCE, self.looked_at.acquire()).await;
        let turn = turn.map_err(|_| "too many logins wait at once")?;
        let _only = turn.map_err(|closed| closed.to_string())?;
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
    /// Counts an attempt of a client; how long it has to wait.
    fn attempt(&mut self, client: IpAddr, now: Instant) -> Result<Duration, String> {
        if self.clients.len() >= CLIENTS {
            self.clients.retain(|_, whole| *whole > now);
        }
        if self.clients.len() >= CLIENTS && !self.clients.contains_key(&client) {
            return Err("too many clients try to log in".into());
        }
        let whole = self.clients.entry(client).or_insert(now);
        let next = (*whole).max(now) + REFILL;
        let wait = next.saturating_duration_since(now + REFILL * BURST);
        if wait > PATIENCE {
            return Err(format!(
                "it tries to log in more often than {BURST} times and once in {} s",
                REFILL.as_secs()
            ));
        }
        *whole = next;
        Ok(wait)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        client_of(text.parse().expect("an address")).addr()
    }

    #[test]
    fn a_client_has_few_attempts_at_once_waits_for_more_and_is_refused_beyond() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let (client, at_once) = (address("2001:db8::1"), Ok(Duration::ZERO));
        for _ in 0..BURST {
            assert_eq!(memory.attempt(client, now), at_once);
        }
        let same = address("2001:db8::2");
        let waits: Vec<_> = (0..5).map(|_| memory.attempt(same, now).ok()).collect();
        assert_eq!(waits, [Some(REFILL), Some(REFILL * 2), Some(REFILL * 3), Some(PATIENCE), None]);
        assert_eq!(memory.attempt(address("2001:db8:0:1::2"), now), at_once, "another network");
        assert_eq!(memory.attempt(client, now + REFILL * 5), at_once, "what waited is over");
        let later = now + REFILL * 1000;
        let all = (0..100).filter(|_| memory.attempt(client, later) == at_once);
        assert_eq!(all.count(), BURST as usize);
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
