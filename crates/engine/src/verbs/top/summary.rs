//! What limited the connections over the last time, all together and by peer.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use goodput_model::{
    AccountPart, BitRate, ConnectionActivity, ConnectionGroup, ConnectionSummary, Connections,
    HeldBy,
};

/// The looks of the last time, summed up. Idle connections don't count.
#[derive(Debug)]
pub struct Summary {
    over_s: f64,
    /// Of the last look.
    at: String,
    looks: VecDeque<Look>,
}

/// One look.
#[derive(Debug)]
struct Look {
    seconds: f64,
    by_peer: BTreeMap<IpAddr, Tally>,
    by_limiter: BTreeMap<Option<HeldBy>, Tally>,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    connections: usize,
    bits: f64,
    held_s: BTreeMap<Option<HeldBy>, f64>,
}

impl Summary {
    /// Of the last so many seconds.
    pub fn over(seconds: f64) -> Self {
        Self { over_s: seconds, at: String::new(), looks: VecDeque::new() }
    }

    /// Adds a look, and drops those that begin before the time that is summed up.
    pub fn enter(&mut self, seen: &Connections) {
        self.at.clone_from(&seen.at);
        self.looks.push_back(Look::of(seen));
        while self.looks.front().is_some_and(|first| self.seconds() - first.seconds >= self.over_s)
        {
            self.looks.pop_front();
        }
    }

    /// Time that it covers, seconds.
    pub fn seconds(&self) -> f64 {
        self.looks.iter().map(|look| look.seconds).sum()
    }

    /// What the looks show together.
    pub fn now(&self) -> ConnectionSummary {
        let mut by_limiter = self.groups(|look| &look.by_limiter, |_| None);
        by_limiter.sort_by(|a, b| b.share.total_cmp(&a.share));
        let mut by_peer = self.groups(|look| &look.by_peer, Some);
        by_peer.sort_by(|a, b| b.bits_per_s.0.total_cmp(&a.bits_per_s.0));
        ConnectionSummary { at: self.at.clone(), seconds: self.seconds(), by_limiter, by_peer }
    }

    fn groups<K: Ord + Copy>(
        &self,
        by: impl Fn(&Look) -> &BTreeMap<K, Tally>,
        peer: impl Fn(K) -> Option<IpAddr>,
    ) -> Vec<ConnectionGroup> {
        let mut tallies: BTreeMap<K, Tally> = BTreeMap::new();
        for (key, tally) in self.looks.iter().flat_map(by) {
            tallies.entry(*key).or_default().add(tally);
        }
        let seconds = self.seconds();
        let active_s: f64 = tallies.values().flat_map(|tally| tally.held_s.values()).sum();
        let group = |(key, tally): (K, Tally)| {
            let longest = tally.held_s.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
            Some(ConnectionGroup {
                peer: peer(key),
                connections: tally.connections,
                bits_per_s: BitRate(tally.bits / seconds),
                held_by: *longest.0,
                share: tally.held_s.values().sum::<f64>() / active_s,
            })
        };
        tallies.into_iter().filter_map(group).collect()
    }
}

impl Look {
    fn of(seen: &Connections) -> Self {
        let mut look =
            Self { seconds: seen.seconds, by_peer: BTreeMap::new(), by_limiter: BTreeMap::new() };
        for connection in seen.connections.iter().filter(|connection| !connection.idle) {
            // Its payload is divided like its time, so that the rates add up.
            let rate = connection.rate().0;
            look.by_peer.entry(connection.peer.ip()).or_default().connections += 1;
            for (by, held_s) in held_s(connection, seen.seconds) {
                let peer = look.by_peer.entry(connection.peer.ip()).or_default();
                let limiter = look.by_limiter.entry(by).or_default();
                limiter.connections += 1;
                for tally in [peer, limiter] {
                    tally.bits += rate * held_s;
                    *tally.held_s.entry(by).or_default() += held_s;
                }
            }
        }
        look
    }
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.connections = self.connections.max(other.connections);
        self.bits += other.bits;
        for (by, held_s) in &other.held_s {
            *self.held_s.entry(*by).or_default() += held_s;
        }
    }
}

/// What limited a connection, and for how long: all of the time together.
fn held_s(connection: &ConnectionActivity, seconds: f64) -> Vec<(Option<HeldBy>, f64)> {
    let parts = connection.limits.value().map_or(&[][..], Vec::as_slice);
    let mut held: Vec<(Option<HeldBy>, f64)> =
        parts.iter().map(|part| (held_by(part), part.seconds)).collect();
    let known_s: f64 = parts.iter().map(|part| part.seconds).sum();
    let unknown_s = seconds - known_s;
    // What is not all of the time only because of rounding is all of it.
    if unknown_s > f64::EPSILON.sqrt() * seconds {
        held.push((None, unknown_s));
    }
    held
}

fn held_by(part: &AccountPart) -> Option<HeldBy> {
    Some(HeldBy { limiter: part.limiter, end: part.end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Known, Limiter, Place, Role};

    fn connection(
        port: u16,
        peer: &str,
        mbit: f64,
        limiter: Option<Limiter>,
    ) -> ConnectionActivity {
        let part =
            |limiter| AccountPart { limiter, end: Place::Path, seconds: 1.0, between_s: None };
        ConnectionActivity {
            local: ([10, 0, 0, 1], port).into(),
            peer: peer.parse().unwrap(),
            program: Known::missing("not asked"),
            idle: mbit == 0.0,
            sent_bits_per_s: BitRate(mbit * 1e6),
            received_bits_per_s: BitRate(0.0),
            role: Role::Sender,
            rtt_us: Known::Value(1000),
            retransmitted_percent: Known::Value(0.0),
            congestion: Known::missing("not asked"),
            limits: limiter.map_or_else(
                || Known::missing("not asked"),
                |limiter| Known::Value(vec![part(limiter)]),
            ),
        }
    }

    fn look(connections: Vec<ConnectionActivity>) -> Connections {
        Connections { at: String::new(), seconds: 1.0, connections }
    }

    #[test]
    fn connections_are_grouped_by_limiter_and_by_peer() {
        let mut summary = Summary::over(60.0);
        let window = Some(Limiter::ReceiveWindow);
        for _ in 0..2 {
            summary.enter(&look(vec![
                connection(1, "10.0.0.2:80", 10.0, window),
                connection(2, "10.0.0.3:80", 20.0, window),
                connection(3, "10.0.0.3:81", 5.0, None),
                connection(4, "10.0.0.4:81", 0.0, None),
            ]));
        }
        let ConnectionSummary { by_limiter, by_peer, .. } = summary.now();
        assert_eq!(by_limiter.len(), 2, "{by_limiter:?}");
        let first = &by_limiter[0];
        assert_eq!(
            (first.held_by, first.connections),
            (Some(HeldBy { limiter: Limiter::ReceiveWindow, end: Place::Path }), 2)
        );
        assert!((first.share - 2.0 / 3.0).abs() < 1e-9 && (first.bits_per_s.0 - 30e6).abs() < 1.0);
        let peers: Vec<_> = by_peer.iter().map(|group| group.peer.unwrap().to_string()).collect();
        assert_eq!(peers, ["10.0.0.3", "10.0.0.2"], "an idle one is none");
    }

    #[test]
    fn only_the_last_minute_counts() {
        let mut summary = Summary::over(60.0);
        (0..100).for_each(|_| summary.enter(&look(Vec::new())));
        assert!((summary.seconds() - 60.0).abs() < 1e-9);
        let now = summary.now();
        assert!(now.by_peer.is_empty() && now.by_limiter.is_empty());
    }
}
