//! # What it means
//! The connection began with a slow-start threshold from an earlier connection to this peer, or
//! from the route.
//!
//! # Why it limits
//! Slow start ends at the threshold; from there the window grows by one segment in each round trip.
//! A threshold from a bad day keeps each new connection slow until it expires.
//!
//! # How it is seen
//! The threshold was set in the first sample, before anything was lost (tcp_info snd_ssthresh), and
//! the congestion window then crawled: full, without loss and without a queue on the path.
//!
//! # What to try
//! `net.ipv4.tcp_no_ssthresh_metrics_save` = 1, the kernel's default, which ignores old thresholds.
//! Forget the present ones with `ip tcp_metrics flush`.
//!
//! # When it is wrong
//! CUBIC may set the threshold without a loss when round trips grow, but not within the first one.
//! If the path is full anyway, the threshold costs nothing and the rule stays quiet. A connection
//! of another program (`--attach`) was not seen from its start; then the rule can't decide.
//!
//! # Source
//! net/ipv4/tcp_metrics.c (`tcp_init_metrics`); ip-tcp_metrics(8); ip-route(8) (`ssthresh`).

use goodput_model::{Confidence, Finding, Missing, TcpInfo};

use crate::account::{held, held_share};
use crate::bounds::next_after;
use crate::change::of_host;
use crate::finding::{Draft, percent, rate, time};
use crate::names::TCP_NO_SSTHRESH_SAVE;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "cached-metrics",
    title: "The connection began with an old slow-start threshold",
    refines: &[parts::CUT_WINDOW],
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "crawling_from_the_start_percent",
    witness_words: ("time crawling, from the start", " %"),
    source: include_str!("cached_metrics.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    view.needs_start()?;
    let Some(threshold) = inherited(view)? else { return Ok(None) };
    let held = held(view, &[parts::CUT_WINDOW])?;
    let share = held.share();
    if !held.is_most() || !view.sender.hardly_loses()? {
        return Ok(None);
    }
    let (side, place) = (&view.sender, view.sender.place());
    let (mss, rtt) = (side.mss_bytes()?, side.rtt_s()?);
    let set = format!(
        "the slow-start threshold was {threshold} segments before anything was lost (tcp_info snd_ssthresh): {} in each {}",
        rate(threshold as f64 * mss * 8.0 / rtt),
        time(rtt)
    );
    let held = format!(
        "the congestion window was full {} of the time, though nothing was lost and no queue stood; \
         it ended at {} segments",
        percent(share),
        side.last_tcp()?.snd_cwnd_segments()?
    );
    let draft = Draft::new(RULE.id, place, Confidence::Certain, "an old slow-start threshold")
        .share(share)
        .saw(place, "tcp_info.snd_ssthresh_segments", threshold as f64, set)
        .saw(place, RULE.witness_name, share * 100.0, held)
        .predicted(next_after(view, &[RULE.id]))
        .command(place, "ip tcp_metrics flush", "forgets what the host learned of its peers")
        .command(place, "ip route show", "whether a route sets it (ssthresh)");
    let used = side.words(TCP_NO_SSTHRESH_SAVE).as_deref() == Some("0");
    let values = (Some("0".into()), "1".into());
    let why = "ignores the thresholds of earlier connections";
    draft.changes(used.then(|| of_host(side, TCP_NO_SSTHRESH_SAVE, None, values, why))).found()
}

/// The threshold that the first sample shows, before anything was lost.
fn inherited(view: &View) -> Result<Option<u64>, Missing> {
    let connections = view.sender.connections()?;
    let first = connections[0][0];
    let threshold = first.tcp.snd_ssthresh_segments()?;
    let untouched = first.tcp.total_retrans_segments()? == 0;
    let before_any_round = first.at_s <= first.tcp.min_rtt_us()? as f64 / 1e6;
    Ok((threshold < TcpInfo::INFINITE_SSTHRESH && untouched && before_any_round)
        .then_some(threshold))
}

/// Share of the time that the window crawled from an old threshold, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    view.needs_tcp()?;
    let share = held_share(view, &[parts::CUT_WINDOW])?;
    Ok(if inherited(view)?.is_some() { share * 100.0 } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;
    use goodput_model::Plan;

    fn remembered() -> Case {
        let case = Case::crawling().tcp(|tcp, _| {
            tcp.snd_ssthresh_segments = Some(20);
            tcp.delivery_rate_bytes_per_s = Some(15_250_000);
        });
        case.fact(Near, TCP_NO_SSTHRESH_SAVE, "0")
    }

    #[test]
    fn a_threshold_from_the_start_is_named_and_explains_the_crawl() {
        let finding = fires(&RULE, remembered());
        let change = finding.changes[0].as_argument();
        assert_eq!(change, "sysctl.net.ipv4.tcp_no_ssthresh_metrics_save=0,1");
        let found = diagnose(&remembered().evidence()).findings;
        assert_eq!(found.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(), ["cached-metrics"]);
    }

    #[test]
    fn one_that_slow_start_set_and_one_that_costs_nothing_are_quiet() {
        quiet(&RULE, Case::crawling());
        quiet(&RULE, remembered().tcp(|tcp, _| tcp.rtt_us = Some(200_000)));
    }

    #[test]
    fn cannot_tell_for_datagrams_or_from_the_middle_of_a_connection_on() {
        cannot_tell(&RULE, Case::healthy_udp());
        cannot_tell(&RULE, remembered().plan(|plan| plan.mover = Plan::WATCHING.into()));
    }
}
