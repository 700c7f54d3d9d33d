//! Finds the transfer among the connections: those that move data to or from one peer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use goodput_kernel::ForeignSocket;
use goodput_model::Role;

use crate::error::EngineError;

/// Payload that a connection must move within the first look to count as moving, bytes. The messages of
/// a control connection stay below.
const MIN_MOVED_BYTES: u64 = 2000;
/// A connection that is this much slower than the fastest one does not belong to the same transfer.
const MAX_SLOWER_FACTOR: u64 = 50;
/// Another transfer is ignored if the largest one moves more than this many times its bytes.
const MAX_SMALLER_FACTOR: u64 = 10;
/// Transfers that an error lists.
const MAX_LISTED: usize = 5;

/// What distinguishes one connection from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
}

impl Key {
    /// The key of a socket.
    pub fn of(socket: &ForeignSocket) -> Self {
        Self { local: socket.local, peer: socket.peer }
    }

    /// The other end of the same connection.
    fn mirrored(self) -> Self {
        Self { local: self.peer, peer: self.local }
    }
}

/// The connections of one transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferConnections {
    /// Its connections.
    pub keys: Vec<Key>,
    /// Whether this end sends or receives.
    pub role: Role,
    /// The other host.
    pub peer: IpAddr,
    bytes: u64,
}

/// Payload acknowledged and received so far, by connection.
pub type Counts = BTreeMap<Key, (u64, u64)>;

/// Reads the counts of a look.
pub fn counts(sockets: &[ForeignSocket]) -> Counts {
    let count = |socket: &ForeignSocket| {
        let tcp = socket.tcp_info.value()?;
        Some((Key::of(socket), (tcp.acked_bytes?, tcp.received_bytes?)))
    };
    sockets.iter().filter_map(count).collect()
}

/// The one transfer that moved data between two looks. `None` if nothing moved; an error if several
/// can't be distinguished.
pub fn choose(before: &Counts, after: &Counts) -> Result<Option<TransferConnections>, EngineError> {
    let mut transfers = transfers(&moving(before, after));
    transfers.sort_by_key(|transfer| std::cmp::Reverse(transfer.bytes));
    let mut transfers = transfers.into_iter();
    let Some(largest) = transfers.next() else { return Ok(None) };
    let others: Vec<_> =
        transfers.filter(|t| t.bytes >= largest.bytes / MAX_SMALLER_FACTOR).collect();
    match others.is_empty() {
        true => Ok(Some(largest)),
        false => Err(several(&largest, &others)),
    }
}

/// How much each moving connection moved, and in which direction. For a connection within this host
/// both ends are seen; the sending end reports more.
fn moving(before: &Counts, after: &Counts) -> BTreeMap<Key, (Role, u64)> {
    let went = |(key, (acked, received)): (&Key, &(u64, u64))| {
        let (acked_before, received_before) = before.get(key).copied().unwrap_or((0, 0));
        let sent = acked.saturating_sub(acked_before);
        let received = received.saturating_sub(received_before);
        let (role, bytes) = match sent >= received {
            true => (Role::Sender, sent),
            false => (Role::Receiver, received),
        };
        (bytes >= MIN_MOVED_BYTES).then_some((*key, (role, bytes)))
    };
    let all: BTreeMap<_, _> = after.iter().filter_map(went).collect();
    let senders: BTreeSet<Key> =
        all.iter().filter(|(_, (role, _))| *role == Role::Sender).map(|(key, _)| *key).collect();
    let seen_at_sender =
        |key: &Key, role: Role| role == Role::Receiver && senders.contains(&key.mirrored());
    all.into_iter().filter(|(key, (role, _))| !seen_at_sender(key, *role)).collect()
}

/// Connections with the same host in the same direction are one transfer.
fn transfers(moving: &BTreeMap<Key, (Role, u64)>) -> Vec<TransferConnections> {
    let mut groups: Vec<TransferConnections> = Vec::new();
    for (key, (role, bytes)) in moving {
        let same =
            |group: &&mut TransferConnections| group.peer == key.peer.ip() && group.role == *role;
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.keys.push(*key);
                group.bytes = group.bytes.saturating_add(*bytes);
            }
            None => groups.push(TransferConnections {
                keys: vec![*key],
                role: *role,
                peer: key.peer.ip(),
                bytes: *bytes,
            }),
        }
    }
    for group in &mut groups {
        let of = |key: &Key| moving.get(key).map_or(0, |(_, bytes)| *bytes);
        let fastest = group.keys.iter().map(of).max().unwrap_or(0);
        group.keys.retain(|key| of(key) >= fastest / MAX_SLOWER_FACTOR);
    }
    groups
}

fn several(largest: &TransferConnections, others: &[TransferConnections]) -> EngineError {
    let all: Vec<&TransferConnections> = std::iter::once(largest).chain(others).collect();
    let name = |transfer: &&TransferConnections| {
        let way = if transfer.role == Role::Sender { "to" } else { "from" };
        let port = transfer.keys.first().map_or(0, |key| distinct_port(key, &all));
        format!("{way} {} (--attach port:{port})", transfer.peer)
    };
    let mut list = all.iter().take(MAX_LISTED).map(name).collect::<Vec<_>>().join(", ");
    if all.len() > MAX_LISTED {
        list.push_str(&format!(" and {} more", all.len() - MAX_LISTED));
    }
    EngineError::attach(format!("{} transfers are moving data; choose one: {list}", all.len()))
}

/// The port of a connection that no other connection has.
fn distinct_port(key: &Key, all: &[&TransferConnections]) -> u16 {
    let uses = |port: u16| {
        let keys = all.iter().flat_map(|transfer| &transfer.keys);
        keys.filter(|other| other.local.port() == port || other.peer.port() == port).count()
    };
    let (local, peer) = (key.local.port(), key.peer.port());
    if uses(local) <= uses(peer) { local } else { peer }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(local: &str, peer: &str) -> Key {
        Key { local: local.parse().unwrap(), peer: peer.parse().unwrap() }
    }

    fn chosen(after: &[(Key, (u64, u64))]) -> Result<Option<TransferConnections>, EngineError> {
        choose(&Counts::new(), &after.iter().copied().collect())
    }

    #[test]
    fn flows_to_one_host_are_one_transfer_and_its_control_connection_is_none() {
        let flow = |port: u16| key(&format!("10.0.0.1:{port}"), "10.0.0.2:5201");
        let found = chosen(&[
            (flow(1000), (300, 300)),
            (flow(1001), (5_000_000, 0)),
            (flow(1002), (4_000_000, 37)),
        ]);
        let found = found.unwrap().unwrap();
        assert_eq!((found.keys.len(), found.role), (2, Role::Sender));
        assert_eq!(found.peer.to_string(), "10.0.0.2");
    }

    #[test]
    fn of_a_connection_within_this_host_the_sending_end_is_watched() {
        let (one, other) =
            (key("127.0.0.1:1000", "127.0.0.1:80"), key("127.0.0.1:80", "127.0.0.1:1000"));
        let found = chosen(&[(one, (0, 9_000_000)), (other, (9_100_000, 0))]).unwrap().unwrap();
        assert_eq!((found.keys, found.role), (vec![other], Role::Sender));
    }

    #[test]
    fn nothing_that_moves_is_distinguished_from_several() {
        let flow = |peer: &str, port: u16| key(&format!("10.0.0.1:{port}"), peer);
        assert_eq!(chosen(&[(flow("10.0.0.2:80", 7), (100, 100))]).unwrap(), None);
        let error = chosen(&[
            (flow("10.0.0.2:80", 7), (1_000_000, 0)),
            (flow("10.0.0.3:80", 8), (0, 900_000)),
        ]);
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains("2 transfers") && text.contains("from 10.0.0.3 (--attach port:8)"),
            "{text}"
        );
        let small = chosen(&[
            (flow("10.0.0.2:80", 7), (1_000_000, 0)),
            (flow("10.0.0.3:80", 8), (0, 50_000)),
        ]);
        assert_eq!(small.unwrap().unwrap().peer.to_string(), "10.0.0.2");
    }
}
