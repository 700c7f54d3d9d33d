//! The places for connections: how many there are, how many one client may have, and which connection leaves its place to
//! the next one.
//!
//! Who opens connections and asks nothing must not keep others away, neither other clients nor other programs of the same
//! host. So a newcomer always finds a place, except where all connections that could leave are being answered.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// All places; all clones are one.
#[derive(Clone)]
pub struct Places {
    most: usize,
    most_of_client: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    connections: Vec<Connection>,
    /// Grows with everything that happens, so that it tells what was earlier.
    now: u64,
}

struct Connection {
    number: u64,
    client: IpAddr,
    /// Since when it has been without a whole request; `None` while it is answered.
    waits_since: Option<u64>,
    /// Dropped when the connection has to go.
    _stays: oneshot::Sender<()>,
}

/// The place of one connection, until it is dropped.
pub struct Place {
    of: Places,
    number: u64,
}

/// Ends when the connection has to leave its place to another one.
pub struct Leaving(oneshot::Receiver<()>);

/// A whole request has come, and its answer is still being made: until it is dropped, the connection keeps its place.
pub struct Answering(Arc<Place>);

impl Places {
    /// This number of places, and at most `most_of_client` of them for each client.
    pub fn new(most: usize, most_of_client: usize) -> Self {
        Self { most, most_of_client, taken: Arc::default() }
    }

    /// A place for a connection from this address. If there is none, another connection leaves, of those without a whole
    /// request: one of this client if it has its share, otherwise one of the client with the most, and the one that has
    /// waited longest. `None` if all of these are being answered.
    pub fn take(&self, address: IpAddr) -> Option<(Arc<Place>, Leaving)> {
        let client = client_of(address);
        let mut taken = self.lock();
        let has_share = taken.of(client) >= self.most_of_client;
        if has_share || taken.connections.len() >= self.most {
            let leaves = taken.who_leaves(has_share.then_some(client))?;
            taken.connections.swap_remove(leaves);
        }
        let number = taken.tick();
        let (stays, leaving) = oneshot::channel();
        let waits_since = Some(number);
        taken.connections.push(Connection { number, client, waits_since, _stays: stays });
        Some((Arc::new(Place { of: self.clone(), number }), Leaving(leaving)))
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // A panic in between leaves connections that are whole.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Number of a client's connections.
    fn of(&self, client: IpAddr) -> usize {
        self.connections.iter().filter(|connection| connection.client == client).count()
    }

    /// Where the connection is that leaves: one of `client`, or of any.
    fn who_leaves(&self, client: Option<IpAddr>) -> Option<usize> {
        let all = self.connections.iter().enumerate();
        let asked = all.filter(|(_, one)| client.is_none_or(|client| one.client == client));
        let waiting = asked.filter_map(|(at, one)| Some((at, one.client, one.waits_since?)));
        let leaves = waiting.max_by_key(|(_, client, since)| (self.of(*client), Reverse(*since)));
        leaves.map(|(at, ..)| at)
    }

    fn connection(&mut self, number: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.number == number)
    }
}

impl Leaving {
    /// Waits until the connection has to leave.
    pub async fn has_to(self) {
        // Nothing is ever sent: what ends is the sender.
        let _ = self.0.await;
    }
}

impl Answering {
    /// A whole request of the connection has come.
    pub fn begin(place: &Arc<Place>) -> Self {
        if let Some(connection) = place.of.lock().connection(place.number) {
            connection.waits_since = None;
        }
        Self(Arc::clone(place))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut taken = self.0.of.lock();
        let now = taken.tick();
        if let Some(connection) = taken.connection(self.0.number) {
            connection.waits_since = Some(now);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.lock().connections.retain(|connection| connection.number != self.number);
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

    /// A place whose connection is being answered.
    fn answered(places: &Places, address: &str) -> Option<(Answering, Leaving)> {
        let (place, leaving) = places.take(address.parse().unwrap())?;
        Some((Answering::begin(&place), leaving))
    }

    fn has_to_leave(leaving: &mut Leaving) -> bool {
        leaving.0.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn one_client_has_its_share_and_leaves_the_rest_to_others() {
        let places = Places::new(100, 2);
        let take = |address: &str| answered(&places, address);
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
        assert!(take("2001:db8::3").is_some());
    }

    #[test]
    fn who_waited_longest_for_a_request_leaves_its_place_to_the_next_one() {
        let places = Places::new(100, 3);
        let mut taken = [(); 3].map(|()| places.take("192.0.2.1".parse().unwrap()).unwrap());
        // The first one has asked something, and waits anew.
        drop(Answering::begin(&taken[0].0));
        let _other = places.take("192.0.2.2".parse().unwrap()).unwrap();
        let left = |taken: &mut [(_, Leaving); 3]| {
            [0, 1, 2].map(|at: usize| has_to_leave(&mut taken[at].1))
        };
        assert_eq!(left(&mut taken), [false; 3]);
        let _fourth = places.take("192.0.2.1".parse().unwrap()).unwrap();
        assert_eq!(left(&mut taken), [false, true, false]);
        let _fifth = places.take("192.0.2.1".parse().unwrap()).unwrap();
        assert_eq!(left(&mut taken), [false, true, true]);
    }

    #[test]
    fn where_all_is_taken_the_client_with_the_most_leaves_a_place() {
        let places = Places::new(4, 3);
        let (_lone, mut lone) = places.take("192.0.2.1".parse().unwrap()).unwrap();
        let mut crowd = [(); 3].map(|()| places.take("192.0.2.2".parse().unwrap()).unwrap());
        let _newcomer = places.take("192.0.2.3".parse().unwrap()).unwrap();
        assert!(has_to_leave(&mut crowd[0].1) && !has_to_leave(&mut crowd[1].1));
        assert!(!has_to_leave(&mut lone));
    }

    #[test]
    fn who_is_answered_stays() {
        let places = Places::new(2, 2);
        let (_answering, mut leaving) = answered(&places, "192.0.2.1").unwrap();
        let (_waiting, mut waiting) = places.take("192.0.2.2".parse().unwrap()).unwrap();
        let _newcomer = answered(&places, "192.0.2.3").unwrap();
        assert!(has_to_leave(&mut waiting) && !has_to_leave(&mut leaving));
        assert!(places.take("192.0.2.4".parse().unwrap()).is_none());
    }
}
