//! How many connections one client may have, so that it leaves some to others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The connections of each client that has any.
#[derive(Clone)]
pub struct Shares {
    most: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One connection of a client, until it is dropped.
pub struct Share {
    of: Shares,
    client: IpAddr,
}

impl Shares {
    /// At most this number of connections for each client.
    pub fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// Counts a connection from this address; `None` if its client has as many as it may.
    pub fn take(&self, address: IpAddr) -> Option<Share> {
        let client = client_of(address);
        let mut taken = self.lock();
        let own = taken.entry(client).or_default();
        if *own >= self.most {
            return None;
        }
        *own += 1;
        Some(Share { of: self.clone(), client })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // A panic in between leaves counts that are whole.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.of.lock();
        if let Some(own) = taken.get_mut(&self.client) {
            *own -= 1;
        }
        taken.retain(|_, own| *own > 0);
    }
}

/// The IPv4 address, or the IPv6 network of 64 bits: a host can use any address of such a network (RFC 4291 section
/// 2.5.4).
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_has_its_share_and_leaves_the_rest_to_others() {
        let shares = Shares::new(2);
        let take = |address: &str| shares.take(address.parse().unwrap());
        let first = take("192.0.2.1").unwrap();
        let _second = take("192.0.2.1").unwrap();
        assert!(take("192.0.2.1").is_none() && take("::ffff:192.0.2.1").is_none());
        assert!(take("192.0.2.2").is_some());
        drop(first);
        let _third = take("192.0.2.1").unwrap();
        let network = [take("2001:db8::1"), take("2001:db8::2")];
        assert!(network.iter().all(Option::is_some) && take("2001:db8::3").is_none());
        assert!(take("2001:db8:0:1::1").is_some());
        drop(network);
        assert_eq!(shares.lock().len(), 1, "who is gone is forgotten");
    }
}
