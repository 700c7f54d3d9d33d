//! The lines about a file that was fetched or stored: at which server, how many times, and how long the answers took.

use goodput_model::{BitRate, Bytes, EndName, Fetch, Fetches, Known, Record, Rpcs, Seconds};

/// Share of the time without payload that is worth a line.
const MIN_SHOWN_SHARE: f64 = 0.01;

/// What only a sending server could report.
const UNSEEN_OF_A_SENDER: &str =
    "the server's disk, CPU, send buffer, congestion window and retransmissions";
/// What only a receiving server could report.
const UNSEEN_OF_A_RECEIVER: &str = "the server's disk, CPU and receive buffer";

/// The lines; none if the target is not a file at a server.
pub fn lines(record: &Record) -> Vec<(&'static str, String)> {
    let Some(fetches) = record.fetches.as_ref().filter(|_| record.mount.is_none()) else {
        return Vec::new();
    };
    let stores = record.plan.direction.senders().contains(&EndName::Near);
    let all = moved_bytes(record, stores);
    let mut lines = vec![(if stores { "uploaded" } else { "fetched" }, moved(fetches, all))];
    if let Known::Value(first) = &fetches.first {
        lines.push(("first fetch", first_fetch(first, fetches)));
    }
    lines.extend(confirmed(fetches).map(|text| ("confirmed", text)));
    let answered = if stores { "go-ahead" } else { "first byte" };
    lines.extend(answers(fetches).map(|text| (answered, text)));
    if let Some(rpcs) = &fetches.rpcs {
        lines.push(("calls", calls(rpcs, if stores { "WRITEs" } else { "READs" })));
        lines.extend(round_trips(rpcs).map(|text| ("round trip", text)));
        lines.extend(again(rpcs).map(|text| ("sent again", text)));
        lines.extend(put_off(rpcs).map(|text| ("put off", text)));
    }
    if let Some(proxy) = &fetches.proxy {
        lines.push(("proxy", format!("{proxy}; this is the path to the proxy, not to the server")));
    }
    lines.push((
        "not seen",
        if stores { UNSEEN_OF_A_RECEIVER } else { UNSEEN_OF_A_SENDER }.to_owned(),
    ));
    if let Some(to) = &fetches.moved_to {
        lines.push(("moved to", to.clone()));
    }
    lines
}

/// How long the server took to confirm an upload.
fn confirmed(fetches: &Fetches) -> Option<String> {
    let after = Seconds::of_us(fetches.confirmed_us?);
    let whole = match fetches.whole_s {
        Known::Value(whole_s) => format!("; {} for each upload (median)", Seconds(whole_s)),
        Known::Missing(_) => String::new(),
    };
    Some(format!("by the server {after} after the last byte was written (median){whole}"))
}

/// Payload that all fetches or uploads moved at this end, bytes, if the record has it.
pub(super) fn moved_bytes(record: &Record, stores: bool) -> Option<u64> {
    let only = record.result.directions.first()?;
    if stores { &only.sent_bytes } else { &only.received_bytes }.value().copied()
}

/// `all_bytes`: what all of them moved together.
fn moved(fetches: &Fetches, all_bytes: Option<u64>) -> String {
    let answers = fetches.answers;
    let file = match &fetches.file_bytes {
        Known::Value(file) => match all_bytes.filter(|all| answers == 1 && all < file) {
            Some(part) => format!("{} of {}", Bytes(part), Bytes(*file)),
            None => format!("{} each", Bytes(*file)),
        },
        Known::Missing(why) => why.missing.to_string(),
    };
    let by = [fetches.version.value(), fetches.tls.as_ref(), fetches.server.value()];
    let by: Vec<&str> = by.into_iter().flatten().map(String::as_str).collect();
    let times = if answers == 1 { "time" } else { "times" };
    let whole = |file: &u64| all_bytes.is_none_or(|all| all >= file.saturating_mul(answers));
    let is_cut = answers > 1 && !fetches.file_bytes.value().is_none_or(whole);
    let cut = if is_cut { " (the last in part)" } else { "" };
    let over = match fetches.connections {
        Known::Value(1) => ", over 1 connection".into(),
        Known::Value(connections) => format!(", over {connections} connections"),
        Known::Missing(_) => String::new(),
    };
    format!("{answers} {times}{cut}, {file}{over}   {}", by.join(", "))
}

/// The fetch before the measurement, compared with the others.
fn first_fetch(first: &Fetch, fetches: &Fetches) -> String {
    let rate = BitRate::over(first.bytes, first.took_s);
    let rate = rate.map_or_else(String::new, |rate| format!(", {rate}"));
    let part = match fetches.file_bytes {
        Known::Value(file) if first.whole && first.bytes < file => {
            format!(" for {}", Bytes(first.bytes))
        }
        _ if first.whole => String::new(),
        _ => " (given up)".into(),
    };
    let alike = match &fetches.alone_times {
        Known::Value(alone) => {
            let mean = Seconds(alone.geometric_mean_s);
            format!(", {} more like it {mean} (mean)", alone.n)
        }
        Known::Missing(_) => String::new(),
    };
    let then = match fetches.whole_s {
        Known::Value(whole_s) => format!(", then {} (median)", Seconds(whole_s)),
        Known::Missing(_) => String::new(),
    };
    format!("{}{part}{rate}{alike}{then}", Seconds(first.took_s))
}

/// A size in the format of `nfs.rsize`.
pub(super) fn as_typed(Bytes(bytes): Bytes) -> String {
    match bytes {
        0 => "0 bytes".into(),
        bytes if bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{}K", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

/// The calls that read or wrote the file piece by piece.
fn calls(rpcs: &Rpcs, name: &str) -> String {
    let Rpcs { call_bytes, slots, answered, short, .. } = rpcs;
    let short = if *short == 0 { String::new() } else { format!(", {short} answered in part") };
    format!("{answered} {name} of {}, {slots} in flight{short}", as_typed(*call_bytes))
}

/// How long the calls took.
fn round_trips(rpcs: &Rpcs) -> Option<String> {
    let times = [
        ("median", &rpcs.round_trip_us),
        ("mean", &rpcs.mean_round_trip_us),
        ("p99", &rpcs.p99_round_trip_us),
        ("at most", &rpcs.longest_round_trip_us),
    ];
    let known =
        times.into_iter().filter_map(|(name, time)| Some((name, Seconds::of_us(*time.value()?))));
    let texts: Vec<String> = known.map(|(name, time)| format!("{name} {time}")).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// The calls that the server postponed; nothing if there were none.
fn put_off(rpcs: &Rpcs) -> Option<String> {
    let calls = *rpcs.put_off.value()?;
    let s = if calls == 1 { "" } else { "s" };
    (calls > 0).then(|| format!("{calls} call{s}: the server asked to come back later (JUKEBOX)"))
}

/// The calls that were repeated; nothing if there were none.
fn again(rpcs: &Rpcs) -> Option<String> {
    let (calls, connections) = (*rpcs.retransmitted.value()?, *rpcs.reconnects.value()?);
    let s = |count: u64| if count == 1 { "" } else { "s" };
    (connections > 0).then(|| {
        format!(
            "{calls} call{}, over {connections} new connection{}, as the old one broke or brought no answer",
            s(calls),
            s(connections)
        )
    })
}

fn answers(fetches: &Fetches) -> Option<String> {
    let (Known::Value(median), Known::Value(longest)) =
        (&fetches.first_byte_us, &fetches.longest_first_byte_us)
    else {
        return None;
    };
    let waiting = match fetches.asking_share {
        Known::Value(share) if share >= MIN_SHOWN_SHARE => {
            format!("   {:.0} % of the time without payload, before files", share * 100.0)
        }
        _ => String::new(),
    };
    Some(format!(
        "{} (median), {} at most{waiting}",
        Seconds::of_us(*median),
        Seconds::of_us(*longest)
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use goodput_model::{Fetch, FetchTimes};

    use super::*;

    const FIRST: Fetch = Fetch {
        bytes: 1_000_000,
        whole: true,
        first_byte_us: Known::Value(100.0),
        took_s: 0.08,
        cpu_wait_us: Known::Value(0.0),
    };

    fn fetches() -> Fetches {
        Fetches {
            version: Known::Value("HTTP/1.1".into()),
            server: Known::Value("nginx".into()),
            tls: None,
            proxy: None,
            moved_to: None,
            remarks: BTreeMap::new(),
            first: Known::Value(FIRST),
            file_bytes: Known::Value(1_000_000),
            answers: 12,
            connections: Known::Value(1),
            first_byte_us: Known::Value(120.0),
            longest_first_byte_us: Known::Value(3000.0),
            whole_s: Known::Value(0.04),
            confirmed_us: None,
            whole_times: Known::missing("x"),
            alone_times: Known::missing("x"),
            asking_share: Known::Value(0.003),
            rpcs: None,
        }
    }

    #[test]
    fn a_fetch_is_reported_in_three_lines() {
        let fetches = fetches();
        let text = "12 times, 1 MB each, over 1 connection   HTTP/1.1, nginx";
        assert_eq!(moved(&fetches, None), text);
        assert_eq!(moved(&fetches, Some(12_000_000)), text);
        let cut = moved(&fetches, Some(11_999_999));
        assert_eq!(cut, text.replace("times,", "times (the last in part),"));
        let once = Fetches { answers: 1, ..fetches.clone() };
        let text = "1 time, 400 kB of 1 MB, over 1 connection   HTTP/1.1, nginx";
        assert_eq!(moved(&once, Some(400_000)), text);
        let part = Fetch { bytes: 400_000, took_s: 0.04, ..FIRST };
        assert!(first_fetch(&part, &once).starts_with("40 ms for 400 kB, 80 Mbit/s"));
        assert_eq!(first_fetch(&FIRST, &fetches), "80 ms, 100 Mbit/s, then 40 ms (median)");
        assert_eq!(answers(&fetches).unwrap(), "120 µs (median), 3 ms at most");
        let alone_times = FetchTimes::of(&[0.05, 0.05]);
        let text = "80 ms, 100 Mbit/s, 2 more like it 50 ms (mean), then 40 ms (median)";
        assert_eq!(first_fetch(&FIRST, &Fetches { alone_times, ..fetches }), text);
    }

    #[test]
    fn calls_are_counted_and_timed() {
        let rpcs = Rpcs {
            call_bytes: Bytes(32 << 10),
            slots: 8,
            answered: 4000,
            short: 2,
            retransmitted: Known::Value(16),
            put_off: Known::Value(3),
            reconnects: Known::Value(1),
            round_trip_us: Known::Value(400.0),
            mean_round_trip_us: Known::Value(500.0),
            p99_round_trip_us: Known::missing("x"),
            longest_round_trip_us: Known::Value(5000.0),
            shortest_round_trip_us: Known::missing("x"),
            idle_share: Known::missing("x"),
            reconnecting_share: Known::Value(0.3),
        };
        assert_eq!(calls(&rpcs, "READs"), "4000 READs of 32K, 8 in flight, 2 answered in part");
        assert_eq!(round_trips(&rpcs).unwrap(), "median 400 µs, mean 500 µs, at most 5 ms");
        assert_eq!(
            put_off(&rpcs).unwrap(),
            "3 calls: the server asked to come back later (JUKEBOX)"
        );
        let text = "16 calls, over 1 new connection, as the old one broke or brought no answer";
        assert_eq!(again(&rpcs).unwrap(), text);
        assert_eq!(again(&Rpcs { reconnects: Known::Value(0), ..rpcs }), None);
    }

    #[test]
    fn an_upload_is_confirmed() {
        let fetches = Fetches { confirmed_us: Some(3000.0), ..fetches() };
        let text = "by the server 3 ms after the last byte was written (median); 40 ms for each upload (median)";
        assert_eq!(confirmed(&fetches).unwrap(), text);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let given_up = Fetch { whole: false, ..FIRST };
        let fetches = Fetches {
            file_bytes: Known::missing("length not announced"),
            whole_s: Known::missing("x"),
            asking_share: Known::Value(0.25),
            ..fetches()
        };
        assert!(moved(&fetches, Some(1)).contains("12 times, length not announced"));
        assert_eq!(first_fetch(&given_up, &fetches), "80 ms (given up), 100 Mbit/s");
        assert!(
            answers(&fetches).unwrap().ends_with("25 % of the time without payload, before files")
        );
    }
}
