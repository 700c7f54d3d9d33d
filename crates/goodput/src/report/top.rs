//! The tables of `goodput top`.

use goodput_engine::{ConnectionGroup, Summary};
use goodput_model::{
    AccountPart, ConnectionActivity, Connections, Known, Limiter, Place, Role, Seconds,
};

use super::table::Table;
use crate::args::Order;

/// Peers that the summary shows.
const MAX_PEERS: usize = 10;
/// Stands for what is unknown.
const UNKNOWN: &str = "-";

/// How the connections are shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Their order.
    pub order: Order,
    /// Whether idle ones are shown.
    pub idle: bool,
    /// How many at most.
    pub rows: usize,
}

/// How many connections there are, and how much they move together.
pub fn heading(seen: &Connections) -> String {
    let active = seen.connections.iter().filter(|connection| !connection.idle).count();
    let known = seen.connections.iter().filter(|connection| connection.limit().is_some()).count();
    let all = seen.connections.len();
    let noun = if all == 1 { "connection" } else { "connections" };
    format!("{all} {noun}, {active} active; limit known for {known}")
}

/// The connections, one in a row.
pub fn connections(seen: &Connections, shown: Shown) -> String {
    let mut rows: Vec<_> =
        seen.connections.iter().filter(|connection| shown.idle || !connection.idle).collect();
    let key = |connection: &ConnectionActivity| match shown.order {
        Order::Rate => connection.rate().0,
        Order::RoundTrip => connection.rtt_us.value().map_or(-1.0, |us| *us as f64),
        Order::Retransmitted => connection.retransmitted_percent.value().copied().unwrap_or(-1.0),
    };
    rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
    let mut table =
        Table::new(&["rate", "limited by", "connection", "program", "round trip", "resent"]);
    for connection in rows.into_iter().take(shown.rows) {
        let cells = cells(connection, seen.seconds);
        table.row(&cells.each_ref().map(String::as_str));
    }
    table.text()
}

fn cells(connection: &ConnectionActivity, seconds: f64) -> [String; 6] {
    let ConnectionActivity { local, peer, role, .. } = connection;
    let arrow = if *role == Role::Sender { "→" } else { "←" };
    let program = connection.program.value();
    [
        connection.rate().to_string(),
        limited_by(connection, seconds),
        format!("{} {arrow} {peer}", local.port()),
        program.map_or(UNKNOWN.into(), |program| format!("{}/{}", program.name, program.pid)),
        known(&connection.rtt_us, |us| Seconds::of_us(*us as f64).to_string()),
        known(&connection.retransmitted_percent, |percent| format!("{percent:.2} %")),
    ]
}

fn known<T>(value: &Known<T>, shown: impl Fn(&T) -> String) -> String {
    value.value().map_or(UNKNOWN.into(), shown)
}

/// What limited a connection longest, and for which share of the time.
fn limited_by(connection: &ConnectionActivity, seconds: f64) -> String {
    match (connection.limit(), connection.idle) {
        (_, true) => "idle".into(),
        (Some(AccountPart { limiter, end, seconds: held_s, .. }), false) => {
            format!("{} {:.0} %", limiter.at(*end), held_s / seconds * 100.0)
        }
        // Of what arrives, only the sender knows more.
        _ if connection.role == Role::Receiver => "peer or path".into(),
        _ => UNKNOWN.into(),
    }
}

/// What limited the connections, and the busiest peers.
pub fn summary(summary: &Summary) -> String {
    let mut by_limiter = Table::new(&["limited by", "share of time", "connections", "rate"]);
    for group in summary.by_limiter() {
        by_limiter.row(&row(held_by(group.key), &group).each_ref().map(String::as_str));
    }
    let mut by_peer = Table::new(&["peer", "share of time", "connections", "rate", "limited by"]);
    for group in summary.by_peer().into_iter().take(MAX_PEERS) {
        let [peer, share, connections, rate] = row(group.key.to_string(), &group);
        by_peer.row(&[&peer, &share, &connections, &rate, &held_by(group.held_by)]);
    }
    format!("{}\n{}", by_limiter.text(), by_peer.text())
}

fn row<K>(name: String, group: &ConnectionGroup<K>) -> [String; 4] {
    let share = format!("{:.0} %", group.share * 100.0);
    [name, share, group.connections.to_string(), group.rate.to_string()]
}

fn held_by(held_by: Option<(Limiter, Place)>) -> String {
    held_by.map_or("unknown".into(), |(limiter, end)| limiter.at(end))
}
