//! The rates that clients share: each flow keeps to that of its client, of the networks around it, and of
//! everybody, whichever leaves it the least.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use goodput_model::{BitRate, Role};
use goodput_mover::SharedRate;

use super::accounts::{Account, Limit, Whose, whose};

/// The rates of all who measure.
pub struct Rates {
    /// Bits per second, each direction.
    limit: Limit,
    accounts: Mutex<HashMap<Whose, Weak<Both>>>,
}

/// A rate in each direction.
struct Both {
    sent: Arc<SharedRate>,
    received: Arc<SharedRate>,
}

/// What one measurement keeps to.
#[derive(Clone, Default)]
pub struct Share(Vec<Arc<Both>>);

impl Rates {
    /// Within this limit.
    pub fn new(limit: Limit) -> Self {
        Self { limit, accounts: Mutex::default() }
    }

    /// What a measurement of this client keeps to, together with all others of the same accounts.
    pub fn of(&self, client: IpAddr) -> Share {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.retain(|_, both| both.strong_count() > 0);
        let both = whose(client).into_iter().filter_map(|whose| {
            if let Some(both) = accounts.get(&whose).and_then(Weak::upgrade) {
                return Some(both);
            }
            let most = self.limit.most(&Account { whose, unproven: false });
            let rate = || SharedRate::new(BitRate(most as f64)).map(Arc::new);
            let limited = match whose {
                Whose::Client(_) => self.limit.client < u64::MAX,
                Whose::Around(..) | Whose::All => self.limit.all < u64::MAX,
            };
            let both = limited.then(|| Some(Both { sent: rate()?, received: rate()? })).flatten();
            let both = Arc::new(both?);
            accounts.insert(whose, Arc::downgrade(&both));
            Some(both)
        });
        Share(both.collect())
    }
}

impl Share {
    /// What flows keep to in which this end has `role`.
    pub fn of(&self, role: Role) -> Vec<Arc<SharedRate>> {
        let own = |both: &Arc<Both>| match role {
            Role::Sender => Arc::clone(&both.sent),
            Role::Receiver => Arc::clone(&both.received),
        };
        self.0.iter().map(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(rates: &Rates, text: &str) -> Share {
        rates.of(text.parse().expect("an address"))
    }

    fn received(share: &Share) -> Vec<f64> {
        share.of(Role::Receiver).iter().map(|shared| shared.rate().0).collect()
    }

    #[test]
    fn measurements_of_one_client_have_one_rate_and_all_have_the_total() {
        let rates = Rates::new(Limit { all: 1000, client: 600, unproven_percent: 100 });
        let (one, again) = (share(&rates, "192.0.2.1"), share(&rates, "192.0.2.1"));
        assert_eq!(received(&one), [600.0, 800.0, 1000.0]);
        let same = |a: &Share, b: &Share| {
            let (a, b) = (a.of(Role::Sender), b.of(Role::Sender));
            a.iter().zip(&b).map(|(a, b)| Arc::ptr_eq(a, b)).collect::<Vec<_>>()
        };
        assert_eq!(same(&one, &again), [true; 3]);
        assert_eq!(same(&one, &share(&rates, "192.0.2.9")), [false, true, true]);
        assert_eq!(same(&one, &share(&rates, "198.51.100.1")), [false, false, true]);
        drop((one, again));
        share(&rates, "192.0.2.1");
        assert_eq!(rates.accounts.lock().expect("nobody panicked").len(), 3, "the rest is gone");
    }

    #[test]
    fn without_a_total_networks_have_no_rate() {
        let rates = Rates::new(Limit { all: u64::MAX, client: 600, unproven_percent: 100 });
        assert_eq!(received(&share(&rates, "2001:db8::1")), [600.0]);
        let none = Rates::new(Limit { all: u64::MAX, client: u64::MAX, unproven_percent: 100 });
        assert!(received(&share(&none, "192.0.2.1")).is_empty());
    }
}
