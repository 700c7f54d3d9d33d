//! The tables of `goodput top`.

use goodput_model::{
    AccountPart, ConnectionActivity, ConnectionGroup, ConnectionSummary, Connections, HeldBy,
    Known, Role, Seconds,
};

use super::table::Table;
use crate::args::Order;

/// Peers that the summary shows.
const MAX_PEERS: usize = 10;
/// Stands for what is unknown.
const UNKNOWN: &str = "-";

/// How many connections there are, and how much they move together.
pub fn heading(seen: &Connections) -> String {
    let active = seen.connections.iter().filter(|connection| !connection.idle).count();
    let known = seen.connections.iter().filter(|connection| connection.limit().is_some()).count();
    let all = seen.connections.len();
    let noun = if all == 1 { "connection" } else { "connections" };
    format!("{all} {noun}, {active} active; limit known for {known}")
}

/// The connections that have all words of `filter`, in this order; idle ones only if wanted.
pub fn chosen<'a>(
    seen: &'a Connections,
    order: Order,
    idle: bool,
    filter: &str,
) -> Vec<&'a ConnectionActivity> {
    let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
    let mut text = String::new();
    let mut has_words = |connection: &ConnectionActivity| {
        words.is_empty() || {
            text.clear();
            text.push_str(&cells(connection, seen.seconds).join(" ").to_lowercase());
            words.iter().all(|word| text.contains(word))
        }
    };
    let all = seen.connections.iter();
    let mut chosen: Vec<_> = all.filter(|one| (idle || !one.idle) && has_words(one)).collect();
    let key = |connection: &ConnectionActivity| match order {
        Order::Rate => connection.rate().0,
        Order::RoundTrip => connection.rtt_us.value().map_or(-1.0, |us| *us as f64),
        Order::Retransmitted => connection.retransmitted_percent.value().copied().unwrap_or(-1.0),
    };
    chosen.sort_by(|a, b| key(b).total_cmp(&key(a)));
    chosen
}

/// Why none of the connections that were seen are chosen; `None` if some are.
pub fn none_of(
    seen: &Connections,
    chosen: &[&ConnectionActivity],
    idle: bool,
    filter: &str,
) -> Option<&'static str> {
    match chosen {
        [_, ..] => None,
        [] if seen.connections.is_empty() => Some("this network namespace has no TCP connection"),
        [] if filter.trim().is_empty() => Some("all are idle; key i or --idle shows them"),
        [] if idle => Some("no connection has these words"),
        [] => Some("no active connection has these words; key i or --idle adds idle ones"),
    }
}

/// The connections, one in a row.
pub fn table(connections: &[&ConnectionActivity], seconds: f64) -> String {
    let mut table =
        Table::new(&["rate", "limited by", "connection", "program", "round trip", "resent"]);
    for connection in connections {
        table.row(&cells(connection, seconds).each_ref().map(String::as_str));
    }
    table.text()
}

/// A part of a list that fits a screen.
pub struct Part {
    /// Its table.
    pub text: String,
    /// Connections above it.
    pub above: usize,
    /// Connections in it.
    pub shown: usize,
    /// Connections in the list.
    pub all: usize,
}

impl Part {
    /// Where it is, if it is not all: ` · 11 to 20 of 300`.
    pub fn place(&self) -> String {
        let Self { above, shown, all, .. } = self;
        match shown < all {
            true => format!(" · {} to {} of {all}", above + 1, above + shown),
            false => String::new(),
        }
    }
}

/// The connections after the first `above` ones, or the last ones, as many as have room in `lines` below the headings.
pub fn part(all: &[&ConnectionActivity], seconds: f64, above: usize, lines: usize) -> Part {
    let number = all.len();
    if above.saturating_add(lines) >= number {
        let (text, shown) = fitting(number, lines, |shown| table(&all[number - shown..], seconds));
        if above >= number - shown {
            return Part { text, above: number - shown, shown, all: number };
        }
    }
    let rest = &all[above..];
    let (text, shown) = fitting(rest.len(), lines, |shown| table(&rest[..shown], seconds));
    Part { text, above, shown, all: number }
}

/// The table of as many rows as have room, and how many: a row of a narrow screen has several lines.
fn fitting(rows: usize, lines: usize, table: impl Fn(usize) -> String) -> (String, usize) {
    let mut shown = rows.min(lines.max(1));
    loop {
        let text = table(shown);
        let needed = text.lines().count().saturating_sub(1);
        if needed <= lines || shown <= 1 {
            return (text, shown);
        }
        shown = (shown * lines / needed).clamp(1, shown - 1);
    }
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
pub fn summary(summary: &ConnectionSummary) -> String {
    let mut by_limiter = Table::new(&["limited by", "share of time", "connections", "rate"]);
    for group in &summary.by_limiter {
        by_limiter.row(&row(held_by(group.held_by), group).each_ref().map(String::as_str));
    }
    let mut by_peer = Table::new(&["peer", "share of time", "connections", "rate", "limited by"]);
    for group in summary.by_peer.iter().take(MAX_PEERS) {
        let peer = group.peer.map_or(UNKNOWN.into(), |peer| peer.to_string());
        let [peer, share, connections, rate] = row(peer, group);
        by_peer.row(&[&peer, &share, &connections, &rate, &held_by(group.held_by)]);
    }
    format!("{}\n{}", by_limiter.text(), by_peer.text())
}

fn row(name: String, group: &ConnectionGroup) -> [String; 4] {
    let share = format!("{:.0} %", group.share * 100.0);
    [name, share, group.connections.to_string(), group.bits_per_s.to_string()]
}

fn held_by(held_by: Option<HeldBy>) -> String {
    held_by.map_or("unknown".into(), |by| by.limiter.at(by.end))
}

#[cfg(test)]
mod tests {
    use goodput_model::{BitRate, Program};

    use super::*;

    fn connection(number: u16) -> ConnectionActivity {
        let program = Program {
            pid: number.into(),
            name: if number.is_multiple_of(2) { "Sync" } else { "web" }.into(),
        };
        ConnectionActivity {
            local: ([127, 0, 0, 1], 1000 + number).into(),
            peer: ([192, 0, 2, 7], 443).into(),
            program: Known::Value(program),
            idle: false,
            sent_bits_per_s: BitRate(f64::from(number) * 1e6),
            received_bits_per_s: BitRate(0.0),
            role: Role::Sender,
            rtt_us: Known::Value(u64::from(1000 - number)),
            retransmitted_percent: Known::missing("nothing was sent"),
            congestion: Known::missing("not asked"),
            limits: Known::missing("too short"),
        }
    }

    fn seen(number: u16) -> Connections {
        let connections = (0..number).map(connection).collect();
        Connections { at: "2026-01-01T00:00:00Z".into(), seconds: 1.0, connections }
    }

    #[test]
    fn a_filter_is_words_of_a_row_and_the_order_is_kept() {
        let seen = seen(10);
        let of = |filter: &str| -> Vec<u16> {
            let chosen = chosen(&seen, Order::Rate, false, filter);
            chosen.iter().map(|one| one.local.port() - 1000).collect()
        };
        assert_eq!(of("sync"), [8, 6, 4, 2, 0]);
        assert_eq!(of("192.0.2.7 WEB 1003"), [3]);
        assert_eq!(of("no such words"), [0; 0]);
        assert_eq!(of(" ").len(), 10);
        assert_eq!(chosen(&seen, Order::RoundTrip, false, "")[0].local.port(), 1000);
    }

    #[test]
    fn a_part_has_whole_rows_reaches_the_last_one_and_says_where_it_is() {
        let seen = seen(100);
        let all = chosen(&seen, Order::Rate, false, "");
        let first = part(&all, 1.0, 0, 10);
        assert!(first.shown >= 1 && first.text.lines().count() <= 11, "{}", first.text);
        assert_eq!((first.above, first.all), (0, 100));
        assert!(first.place().starts_with(" · 1 to "), "{}", first.place());
        for above in [95, 1000, usize::MAX] {
            let last = part(&all, 1.0, above, 10);
            assert_eq!(last.above + last.shown, 100, "{above}");
            assert!(last.text.contains("1000 → 192.0.2.7:443"), "{}", last.text);
        }
        assert_eq!(part(&all, 1.0, 0, 1000).place(), "");
        for lines in [0, 1] {
            assert_eq!(part(&all, 1.0, 3, lines).above, 3);
            assert_eq!(part(&[], 1.0, 3, lines).shown, 0);
        }
    }
}
