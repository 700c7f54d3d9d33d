//! Logins with a user name and a password. Decryptions run one at a time, beside the event loop; each client gets few,
//! and each login is good once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use goodput_wire::login::{Checked, Users, check};
use tokio::sync::Semaphore;

use super::attempts::{AttemptLimits, Attempts};
use super::quotas::Limit;
use crate::clock::host_clock;
use crate::threads::blocking;

/// How often a client may try to log in. All clients wait for each other (`looked_at`).
const PACE: AttemptLimits = AttemptLimits {
    what: "logins",
    burst: 10,
    burst_of_all: u32::MAX,
    then: Limit { all: u64::MAX, client: 1, unproven_percent: 100 },
    period: Duration::from_secs(1),
    patience: LOGIN_WAIT_TIME,
};

/// How long a login may wait for its client's next attempt, and then for earlier logins. Both together are shorter than
/// a session waits (`JUDGING`, wire/src/protocols/iperf3/times.rs).
const LOGIN_WAIT_TIME: Duration = Duration::from_secs(4);

/// How long an accepted login is remembered: twice its validity, which is 10 s before and after its own time of day
/// (`--time-skew-threshold` of iperf3).
const LOGIN_REMEMBERED_TIME: Duration = Duration::from_secs(40);

/// All logins at one server.
pub struct Logins {
    looked_at: Semaphore,
    attempts: Attempts,
    /// Fingerprints of accepted logins, and when they were accepted.
    used: Mutex<HashMap<[u8; 32], Instant>>,
}

impl Default for Logins {
    fn default() -> Self {
        let attempts = Attempts::new(PACE);
        Self { looked_at: Semaphore::new(1), attempts, used: Mutex::default() }
    }
}

impl Logins {
    /// The user whose login this is, or why there is none, for this end's own log. Logins that come faster than they
    /// are checked wait.
    pub async fn check(
        &self,
        users: &Users,
        token: String,
        client: IpAddr,
    ) -> Result<String, String> {
        let wait = self.attempts.take(client, Instant::now())?;
        tokio::time::sleep(wait).await;
        let turn = tokio::time::timeout(LOGIN_WAIT_TIME, self.looked_at.acquire()).await;
        let turn = turn.map_err(|_| "too many logins wait at once")?;
        let _only = turn.map_err(|closed| closed.to_string())?;
        let users = users.clone();
        let unix_s = host_clock().unix_us / 1_000_000;
        let checked = blocking(move || check(&users, &token, unix_s)).await;
        let checked = checked.map_err(|why| why.to_string())?.map_err(|why| why.to_string())?;
        self.let_in(checked, Instant::now())
    }

    /// Accepts a login that was not used before.
    fn let_in(&self, checked: Checked, now: Instant) -> Result<String, String> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, at| now.saturating_duration_since(*at) < LOGIN_REMEMBERED_TIME);
        match used.insert(checked.fingerprint, now) {
            None => Ok(checked.user),
            Some(_) => Err(format!("the login of {:?} was already used", checked.user)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_good_once() {
        let (logins, now) = (Logins::default(), Instant::now());
        let login = |byte| Checked { user: "mario".into(), fingerprint: [byte; 32] };
        assert_eq!(logins.let_in(login(1), now), Ok("mario".into()));
        assert!(logins.let_in(login(1), now + LOGIN_REMEMBERED_TIME / 2).is_err());
        assert!(logins.let_in(login(2), now + LOGIN_REMEMBERED_TIME / 2).is_ok());
        logins.let_in(login(3), now + LOGIN_REMEMBERED_TIME * 2).expect("another login");
        assert_eq!(
            logins.used.lock().expect("nobody panicked").len(),
            1,
            "what is too old to be taken is forgotten"
        );
    }
}
