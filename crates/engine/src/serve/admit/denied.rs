//! Datagrams from excluded networks. They are counted, but rarely logged, because anyone can send as many as the
//! network carries, under any address.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;

use super::quotas::site_of;

/// Shortest time between two log lines of a network.
pub const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Most networks that are logged by name at the same time. All others count as one.
const MAX_NETWORKS: usize = 64;

/// A network, or all networks that are not counted by name.
type Whose = Option<IpNet>;

/// What was dropped lately.
#[derive(Default)]
pub struct Denied(Mutex<HashMap<Whose, Entry>>);

struct Entry {
    logged: Instant,
    /// Datagrams since then.
    since: u64,
}

/// A log line.
#[derive(Debug, PartialEq, Eq)]
pub struct Dropped {
    whose: Whose,
    datagrams: u64,
    is_first: bool,
}

impl Denied {
    /// Counts a datagram. Returns what to log: the first datagram of a network is logged at once.
    pub fn count(&self, from: IpAddr, now: Instant) -> Option<Dropped> {
        let mut networks = self.lock();
        let site = Some(site_of(from));
        let is_named = networks.contains_key(&site) || networks.len() < MAX_NETWORKS;
        let whose = if is_named { site } else { None };
        if let Some(known) = networks.get_mut(&whose) {
            known.since += 1;
            return None;
        }
        networks.insert(whose, Entry { logged: now, since: 0 });
        Some(Dropped { whose, datagrams: 1, is_first: true })
    }

    /// What to log now of all later datagrams. A network that was quiet meanwhile is forgotten.
    pub fn due(&self, now: Instant) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        self.lock().retain(|whose, entry| {
            if now < entry.logged + LOG_INTERVAL {
                return true;
            }
            let line = entry.take(*whose);
            let goes_on = line.is_some();
            entry.logged = now;
            dropped.extend(line);
            goes_on
        });
        dropped
    }

    /// What was counted but not logged when the server ends.
    pub fn rest(&self) -> Vec<Dropped> {
        self.lock().iter_mut().filter_map(|(whose, entry)| entry.take(*whose)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Whose, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn take(&mut self, whose: Whose) -> Option<Dropped> {
        let datagrams = std::mem::take(&mut self.since);
        (datagrams > 0).then_some(Dropped { whose, datagrams, is_first: false })
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.is_first { "" } else { "more " };
        let noun = if self.datagrams == 1 { "datagram" } else { "datagrams" };
        write!(f, "dropped {} {more}{noun} from senders in ", self.datagrams)?;
        match self.whose {
            Some(network) => write!(f, "{network}")?,
            None => f.write_str("other networks")?,
        }
        // Perhaps only some addresses of that network are denied.
        f.write_str(" that --allow and --deny leave out")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_network_is_logged_at_once_then_once_a_minute_and_forgotten_when_it_is_quiet() {
        let (denied, now) = (Denied::default(), Instant::now());
        let first = denied.count(address("192.0.2.1"), now).expect("it is the first").to_string();
        let line =
            "dropped 1 datagram from senders in 192.0.2.0/24 that --allow and --deny leave out";
        assert_eq!(first, line);
        for number in 0..1000 {
            let from = IpAddr::from([192, 0, 2, (number % 250) as u8]);
            assert_eq!(denied.count(from, now), None);
        }
        assert!(denied.count(address("2001:db8::1"), now + LOG_INTERVAL / 2).is_some(), "another");
        assert!(denied.due(now + LOG_INTERVAL / 2).is_empty());
        let [later] = &denied.due(now + LOG_INTERVAL)[..] else { panic!("one network is due") };
        let later = later.to_string();
        assert!(later.starts_with("dropped 1000 more datagrams from senders in 192.0.2.0/24 that"));
        assert_eq!(denied.count(address("192.0.2.1"), now + LOG_INTERVAL), None);
        assert_eq!(denied.rest().len(), 1, "the last one is not lost");
        assert!(denied.due(now + LOG_INTERVAL * 2).is_empty(), "both were quiet");
        assert!(denied.lock().is_empty());
    }

    #[test]
    fn forged_addresses_of_many_networks_take_little_memory_and_few_lines() {
        let (denied, now) = (Denied::default(), Instant::now());
        let from = (0..100_000_u32).map(|number| IpAddr::V4((number << 8).into()));
        let logged = from.filter_map(|from| denied.count(from, now)).count();
        assert_eq!((logged, denied.lock().len()), (MAX_NETWORKS + 1, MAX_NETWORKS + 1));
        let [others] = &denied.due(now + LOG_INTERVAL)[..] else { panic!("the others are one") };
        assert!(
            others.to_string().contains("more datagrams from senders in other networks"),
            "{others}"
        );
    }
}
