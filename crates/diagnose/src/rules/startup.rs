//! # What it means
//! Most of the test was slow start: the transfer was too short for the path, or the path is so long
//! that slow start takes seconds.
//!
//! # Why it limits
//! A connection begins with about ten segments and doubles them in each round trip. It needs log2(W
//! / 10) round trips to reach a window of W. The ideal time of a transfer is RTT · log2(W / 10) +
//! size / rate.
//!
//! # How it is seen
//! Delivery grew by a quarter or more, round trip after round trip, for at least half of the
//! measured window. Nothing had been lost, and the congestion window was full (tcp_info
//! bytes_acked, snd_cwnd, unacked).
//!
//! # What to try
//! Reuse connections, send more over each, or use several at once. If you know that the path can
//! carry it, begin with more: `initcwnd` on the sender's route and `initrwnd` on the receiver's.
//!
//! # When it is wrong
//! A receive buffer that grows slowly slows the sender's growth too; then the congestion window is
//! not full. To measure the path rather than the start, test longer.
//!
//! # Source
//! RFC 6928; RFC 5681 section 3.1; ip-route(8) (`initcwnd`).

use goodput_model::{Change, Confidence, Finding, Missing, TcpInfo};

use crate::bounds::next_after;
use crate::change::of_host;
use crate::finding::{Draft, percent, rate, time};
use crate::names::ROUTE_DESTINATION;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_LIMITING_TIME_SHARE;
use crate::view::{Moment, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "startup",
    title: "Most of the test was slow start",
    refines: &[parts::STARTUP],
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "starting_percent",
    witness_words: ("time in slow start", " %"),
    source: include_str!("startup.rs"),
};

/// Growth of the delivery rate below which a pipe counts as full, and for how many round trips in a
/// row: `bbr_full_bw_thresh` and `bbr_full_bw_cnt` of net/ipv4/tcp_bbr.c.
const FULL_PIPE_GROWTH_RATIO: f64 = 1.25;
const FULL_PIPE_ROUND_TRIPS: u32 = 3;
/// Round-trip time below which slow start takes no time worth naming, seconds.
const LONG_PATH_S: f64 = 0.001;
/// Part of the congestion window in flight, at the best of the samples, from which it is what
/// limited. The receive window limits if it stays below.
const MIN_INFLIGHT_SHARE_OF_CWND: f64 = 0.5;
/// What to begin with instead of the 10 segments of RFC 6928; CDNs were measured to use 30 to 100.
const LARGER: u32 = 40;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    let (side, place) = (&view.sender, view.sender.place());
    let rtt = side.min_rtt_s()?;
    let connections = side.connections()?;
    if rtt < LONG_PATH_S || connections.iter().any(|connection| !is_by_window(connection)) {
        return Ok(None);
    }
    let share = starting_share(view)?;
    if share < MIN_LIMITING_TIME_SHARE {
        return Ok(None);
    }
    let first = connections[0][0].tcp.snd_cwnd_segments()?;
    let (_, end) = side.window_s();
    let last = connections[0][connections[0].len() - 1].tcp;
    let (window, mss) = (last.snd_cwnd_segments()?, side.mss_bytes()?);
    let grew = format!(
        "delivery still grew by a quarter in each round trip for {} of the measured time",
        percent(share)
    );
    let rounds = format!(
        "the window grew from {first} to {window} segments in {:.0} round trips of {}; at the end it \
         allowed {}",
        end / rtt,
        time(rtt),
        rate(window as f64 * mss * 8.0 / rtt * side.flow_count()?)
    );
    Draft::new(RULE.id, place, Confidence::Likely, "slow start, which took most of the transfer")
        .share(share)
        .saw(place, RULE.witness_name, share * 100.0, grew)
        .saw(place, "tcp_info.snd_cwnd_segments", window as f64, rounds)
        .predicted(next_after(view, &[RULE.id]))
        .changes(larger_start(view))
        .advice("send more over each connection, or use several at once (-P)")
        .advice("to measure the path rather than the start, test longer (-t)")
        .found()
}

/// Share of the measured window in which the connections still started, the one that was ready
/// first.
fn starting_share(view: &View) -> Result<f64, Missing> {
    let (from, to) = view.sender.window_s();
    let mut share: f64 = 1.0;
    for connection in view.sender.connections()? {
        let until = growing_until_s(&connection)?.min(to);
        share = share.min((until - from).max(0.0) / (to - from));
    }
    Ok(share)
}

/// When the delivery rate last grew by a quarter, if it did not for three round trips after that;
/// else the last sample. Steps shorter than the round-trip time are joined: within one, delivery
/// comes in bursts.
fn growing_until_s(connection: &[Moment]) -> Result<f64, Missing> {
    let (mut from, last) = (connection[0], connection[connection.len() - 1]);
    let (mut best, mut best_at, mut rounds) = (0.0, from.at_s, 0);
    for moment in &connection[1..] {
        if moment.tcp.total_retrans_segments()? > 0 {
            return Ok(best_at);
        }
        let elapsed = moment.at_s - from.at_s;
        if elapsed <= 0.0 || elapsed < moment.tcp.rtt_us()? as f64 / 1e6 {
            continue;
        }
        let bytes = moment.tcp.acked_bytes()?.saturating_sub(from.tcp.acked_bytes()?);
        let delivered = bytes as f64 / elapsed;
        from = *moment;
        if delivered > best * FULL_PIPE_GROWTH_RATIO {
            (best, best_at, rounds) = (delivered, moment.at_s, 0);
        } else {
            rounds += 1;
        }
        if rounds == FULL_PIPE_ROUND_TRIPS {
            return Ok(best_at);
        }
    }
    Ok(last.at_s)
}

/// Whether the congestion window, still without a threshold, was what kept the connection back.
fn is_by_window(connection: &[Moment]) -> bool {
    let fill = |moment: &Moment| {
        let (flying, window) = (moment.tcp.unacked_segments?, moment.tcp.snd_cwnd_segments?);
        let free = moment.tcp.snd_ssthresh_segments().ok()? >= TcpInfo::INFINITE_SSTHRESH;
        free.then_some(flying as f64 / window.max(1) as f64)
    };
    let later = connection.iter().skip(1);
    later.filter_map(fill).fold(0.0, f64::max) >= MIN_INFLIGHT_SHARE_OF_CWND
}

/// A larger first window, unless the route has one that is as large.
fn larger_start(view: &View) -> Option<Change> {
    let destination = view.sender.text(ROUTE_DESTINATION).ok();
    let present = view.sender.words("route.initcwnd").unwrap_or_else(|| "default".into());
    let why = "starts with four times as many segments and saves two round trips";
    let is_smaller = present.parse().map_or(true, |now: u32| now < LARGER);
    let values = (Some(present), LARGER.to_string());
    is_smaller.then(|| of_host(&view.sender, "route.initcwnd", destination, values, why))
}

/// Share of the measured window in which the connections still started, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    view.needs_tcp()?;
    Ok(starting_share(view)? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;

    /// Doubles each round trip of 300 ms, as on a path over a satellite.
    fn starting() -> Case {
        Case::healthy().goodput(20e6).app_limited(0.5).writer(0.98, 0.0, 0.02).tcp(|tcp, n| {
            let rounds = (n / 3) as i32;
            let window = (10.0 * 2f64.powi(rounds)) as u64;
            tcp.snd_cwnd_segments = Some(window);
            tcp.unacked_segments = Some(window);
            tcp.acked_bytes = Some((10.0 * 1448.0 * (2f64.powi(rounds) - 1.0)) as u64);
            tcp.rtt_us = Some(300_000);
            tcp.min_rtt_us = Some(300_000);
        })
    }

    #[test]
    fn growth_throughout_is_named_and_explains_what_looks_like_a_buffer() {
        let finding = fires(&RULE, starting());
        assert_eq!(finding.changes[0].as_argument(), "route.initcwnd=default,40");
        let found = diagnose(&starting().evidence()).findings;
        assert_eq!(found[0].rule, "startup");
        assert!(found.iter().all(|finding| finding.rule != "send-buffer"), "{found:?}");
    }

    #[test]
    fn a_route_that_starts_with_as_many_has_nothing_to_change() {
        let already = starting().fact(Near, "route.initcwnd", 64u64);
        assert!(fires(&RULE, already).changes.is_empty());
    }

    #[test]
    fn a_steady_transfer_a_loss_and_a_window_that_is_not_full_are_quiet() {
        let steady = |n: u64| Some(n * 10_000_000);
        quiet(&RULE, Case::healthy().tcp(move |tcp, n| tcp.acked_bytes = steady(n)));
        quiet(&RULE, starting().tcp(|tcp, n| tcp.total_retrans_segments = Some(n / 2)));
        quiet(&RULE, starting().tcp(|tcp, _| tcp.unacked_segments = Some(2)));
        quiet(&RULE, starting().tcp(|tcp, _| tcp.min_rtt_us = Some(100)));
    }

    #[test]
    fn cannot_tell_for_datagrams_and_without_counts() {
        cannot_tell(&RULE, Case::healthy_udp());
        cannot_tell(&RULE, starting().tcp(|tcp, _| tcp.acked_bytes = None));
    }
}
