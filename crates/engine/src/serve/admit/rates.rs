//! The rates that clients share: each flow keeps to the lowest of its client's rate, those of the networks around it,
//! and everyone's. The rate of a key replaces that of its client.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use goodput_model::{BitRate, RateLimit, Role};
use goodput_mover::SharedRate;
use goodput_wire::keys::{AuthorizedKey, PublicKey};

use super::quotas::{Limit, Quota, Whose, whose};
use crate::run::rate_limits::SharedLimit;

/// The rates of all measuring clients.
pub struct Rates {
    /// Bits per second, each direction.
    limit: Limit,
    /// Where the rate of one client comes from.
    of_client: RateLimit,
    quotas: Mutex<HashMap<Whose, Weak<Both>>>,
    keys: Mutex<HashMap<PublicKey, Weak<Both>>>,
}

/// A rate in each direction.
struct Both {
    sent: Arc<SharedRate>,
    received: Arc<SharedRate>,
}

/// The rates that one measurement keeps to.
#[derive(Clone, Default)]
pub struct Share {
    of_key: Option<Arc<Both>>,
    of_address: Vec<(RateLimit, Arc<Both>)>,
}

impl Rates {
    /// Rates within this limit; one client's comes from `of_client`.
    pub fn new(limit: Limit, of_client: RateLimit) -> Self {
        Self { limit, of_client, quotas: Mutex::default(), keys: Mutex::default() }
    }

    /// The rates for a measurement of this client, shared with all others of the same quotas.
    pub fn of(&self, client: IpAddr, key: Option<&AuthorizedKey>) -> Share {
        let of_key = key.and_then(|key| self.of_key(key.key, key.max_rate?));
        let has_own = |whose: &Whose| of_key.is_some() && matches!(whose, Whose::Client(_));
        let mut quotas = self.quotas.lock().unwrap_or_else(PoisonError::into_inner);
        quotas.retain(|_, both| both.strong_count() > 0);
        let others = whose(client).into_iter().filter(|whose| !has_own(whose));
        let both = others.filter_map(|whose| {
            let limit = match whose {
                Whose::Client(_) => self.of_client,
                Whose::Around(..) => RateLimit::NetworkShare,
                Whose::All => RateLimit::Total,
            };
            if let Some(both) = quotas.get(&whose).and_then(Weak::upgrade) {
                return Some((limit, both));
            }
            let most = self.limit.most(&Quota { whose, unproven: false });
            let limited = match whose {
                Whose::Client(_) => self.limit.client < u64::MAX,
                Whose::Around(..) | Whose::All => self.limit.all < u64::MAX,
            };
            let both = limited.then(|| Both::new(BitRate(most as f64))).flatten();
            let both = Arc::new(both?);
            quotas.insert(whose, Arc::downgrade(&both));
            Some((limit, both))
        });
        let of_address = both.collect();
        Share { of_key, of_address }
    }

    /// The rate that all measurements of a key share, from any address. Measurements that began before the rate changed
    /// keep the old one.
    fn of_key(&self, key: PublicKey, rate: BitRate) -> Option<Arc<Both>> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, both| both.strong_count() > 0);
        let known = keys.get(&key).and_then(Weak::upgrade);
        if let Some(both) = known.filter(|both| both.sent.rate() == rate) {
            return Some(both);
        }
        let both = Arc::new(Both::new(rate)?);
        keys.insert(key, Arc::downgrade(&both));
        Some(both)
    }
}

impl Both {
    /// The same rate in each direction; `None` if it is not a positive number.
    fn new(rate: BitRate) -> Option<Self> {
        let shared = || SharedRate::new(rate).map(Arc::new);
        Some(Self { sent: shared()?, received: shared()? })
    }
}

impl Share {
    /// The rates for flows in which this end has `role`.
    pub fn of(&self, role: Role) -> Vec<SharedLimit> {
        let own = |(limit, both): (RateLimit, &Arc<Both>)| {
            let rate = match role {
                Role::Sender => &both.sent,
                Role::Receiver => &both.received,
            };
            SharedLimit { rate: Arc::clone(rate), limit }
        };
        let of_key = self.of_key.iter().map(|both| (RateLimit::Key, both));
        let of_address = self.of_address.iter().map(|(limit, both)| (*limit, both));
        of_key.chain(of_address).map(own).collect()
    }

    /// The rate of the key, if it has one.
    pub fn key_rate(&self) -> Option<BitRate> {
        self.of_key.as_ref().map(|both| both.sent.rate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(all: u64, client: u64) -> Rates {
        Rates::new(Limit { all, client, unproven_percent: 100 }, RateLimit::Client)
    }

    fn share(rates: &Rates, text: &str) -> Share {
        rates.of(text.parse().expect("an address"), None)
    }

    fn received(share: &Share) -> Vec<f64> {
        share.of(Role::Receiver).iter().map(|shared| shared.rate.rate().0).collect()
    }

    #[test]
    fn measurements_of_one_client_have_one_rate_and_all_have_the_total() {
        let rates = limited(1000, 600);
        let (one, again) = (share(&rates, "192.0.2.1"), share(&rates, "192.0.2.1"));
        assert_eq!(received(&one), [600.0, 800.0, 1000.0]);
        let same = |a: &Share, b: &Share| {
            let (a, b) = (a.of(Role::Sender), b.of(Role::Sender));
            a.iter().zip(&b).map(|(a, b)| Arc::ptr_eq(&a.rate, &b.rate)).collect::<Vec<_>>()
        };
        assert_eq!(same(&one, &again), [true; 3]);
        assert_eq!(same(&one, &share(&rates, "192.0.2.9")), [false, true, true]);
        assert_eq!(same(&one, &share(&rates, "198.51.100.1")), [false, false, true]);
        drop((one, again));
        share(&rates, "192.0.2.1");
        assert_eq!(rates.quotas.lock().expect("nobody panicked").len(), 3, "the rest is gone");
    }

    #[test]
    fn without_a_total_networks_have_no_rate() {
        let rates = limited(u64::MAX, 600);
        assert_eq!(received(&share(&rates, "2001:db8::1")), [600.0]);
        let none = limited(u64::MAX, u64::MAX);
        assert!(received(&share(&none, "192.0.2.1")).is_empty());
    }

    #[test]
    fn a_key_has_its_rate_wherever_it_is_used_in_place_of_its_clients() {
        let rates = limited(1000, 600);
        let ann = |options: &str| super::super::keys::tests::ann(options);
        let at = |text: &str, key: &AuthorizedKey| {
            rates.of(text.parse().expect("an address"), Some(key))
        };
        let key = ann("max-rate=900");
        let (one, other) = (at("192.0.2.1", &key), at("2001:db8::1", &key));
        assert_eq!(received(&one), [900.0, 800.0, 1000.0]);
        assert_eq!(one.key_rate(), Some(BitRate(900.0)));
        let limits: Vec<_> = one.of(Role::Sender).iter().map(|shared| shared.limit).collect();
        assert_eq!(limits, [RateLimit::Key, RateLimit::NetworkShare, RateLimit::Total]);
        let own = |share: &Share| share.of(Role::Sender).remove(0);
        assert!(Arc::ptr_eq(&own(&one).rate, &own(&other).rate));
        assert_eq!(received(&at("192.0.2.1", &ann("max-rate=300")))[0], 300.0);
        assert_eq!(received(&at("192.0.2.1", &ann("")))[0], 600.0, "its client's");
    }
}
