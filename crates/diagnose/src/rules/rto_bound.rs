//! # What it means
//! The sender spends its time waiting for retransmission time-outs. So much of a window is lost, or
//! its very end, that no acknowledgement comes back to report the loss sooner.
//!
//! # Why it limits
//! A time-out lasts at least 200 ms, however short the path, and then the window begins at one
//! segment again.
//!
//! # How it is seen
//! Counted by the kernel: at least two time-outs, and at least a fifth of the time spent in them
//! and in the recovery after them. The time-out is many times the round-trip time. Time in which
//! other flows fill the path does not count.
//!
//! # What to try
//! Find what loses packets in runs: a queue too short for a burst, a link that pauses. On paths
//! within one site a shorter minimum time-out loses less time: `net.ipv4.tcp_rto_min_us`, or
//! `rto_min` on the route.
//!
//! # When it is wrong
//! It is the effect of a loss, whose cause may be named by another finding.
//!
//! # Source
//! RFC 6298 (section 2.4: minimum time-out); Vasudevan and others, SIGCOMM 2009 (short time-outs);
//! include/uapi/linux/tcp.h (tcpi_total_rto_time); ip-sysctl (tcp_rto_min_us).

use goodput_model::{Change, Confidence, Finding, Missing, Place};

use crate::account::held_share;
use crate::bounds::next_after;
use crate::change::of_host;
use crate::finding::{Draft, percent, time};
use crate::names::TCP_RTO_MIN_US;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "rto-bound",
    title: "The sender waits for retransmission time-outs",
    refines: &[parts::RECOVERY],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "timeout_percent",
    witness_words: ("time in time-outs", " %"),
    source: include_str!("rto_bound.rs"),
};

/// Share of the time that matters.
const MIN_TIME_SHARE: f64 = 0.2;
/// Fewer time-outs are an accident.
const MIN_TIMEOUTS: f64 = 2.0;
/// Time-out over round-trip time from which a shorter time-out would gain.
const MIN_TIMEOUT_RTT_RATIO: f64 = 5.0;
/// Least time-out that leaves room for a delayed acknowledgement of 40 ms (`TCP_DELACK_MIN`),
/// microseconds.
const MIN_RTO_MIN_US: f64 = 50_000.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    // Time-outs of one flow cost nothing while the others fill the path.
    let counted = view.sender.timeout_share()?;
    let share = counted.min(held_share(view, RULE.refines)?);
    let count = view.sender.timeouts()?;
    // If nothing at all arrives, time-outs are not the reason.
    view.goodput()?;
    let (timeout, rtt) = (view.sender.timeout_s()?, view.sender.rtt_s()?);
    if share < MIN_TIME_SHARE || count < MIN_TIMEOUTS || timeout < MIN_TIMEOUT_RTT_RATIO * rtt {
        return Ok(None);
    }
    let place = view.sender.place();
    Draft::new(RULE.id, Place::Path, Confidence::Likely, "retransmission time-outs")
        .share(share)
        .saw(place, RULE.witness_name, counted * 100.0, format!("{count:.0} time-outs and their recovery took {} of the time (tcp_info total_rto, total_rto_time)", percent(counted)))
        .saw(place, "tcp_info.rto_us", timeout * 1e6, format!("a time-out lasts {}, a round trip {} (tcp_info rto, rtt)", time(timeout), time(rtt)))
        .saw_if(place, "retransmitted_percent", view.sender.retransmitted_share().map(|s| s * 100.0), |p| {
            format!("{} of the bytes were sent again", percent(p / 100.0))
        })
        .predicted(next_after(view, &[RULE.id]))
        .changes(change(view, rtt))
        .advice("find what loses packets in runs: a queue too short for a burst, a link that pauses")
        .advice("on a path within one site, give its route a lower rto_min (ip-route(8))")
        .found()
}

fn change(view: &View, rtt: f64) -> Option<Change> {
    let wanted = (4.0 * rtt * 1e6).max(MIN_RTO_MIN_US).round();
    let now = view.sender.words(TCP_RTO_MIN_US)?;
    let lower = now.parse().is_ok_and(|now: f64| now >= 2.0 * wanted);
    let why = "a time-out that fits this round-trip time";
    lower.then(|| {
        of_host(&view.sender, TCP_RTO_MIN_US, None, (Some(now), format!("{wanted:.0}")), why)
    })
}

/// Share of the time in time-outs and the recovery after them, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(view.sender.timeout_share()? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;

    #[test]
    fn fires_where_time_outs_take_the_time() {
        let case = Case::rto_bound().fact(Near, TCP_RTO_MIN_US, 200_000u64);
        let finding = fires(&RULE, case);
        assert_eq!(finding.confidence, Confidence::Likely);
        assert_eq!(finding.changes[0].to, "50000");
    }

    #[test]
    fn stays_quiet_where_they_do_not() {
        quiet(&RULE, Case::path_loss());
        quiet(&RULE, Case::rto_bound().tcp(|tcp, n| tcp.total_rto_time_ms = Some(5 * n)));
        quiet(&RULE, Case::rto_bound().tcp(|tcp, _| tcp.rto_us = Some(3000)));
    }

    #[test]
    fn cannot_tell_on_an_old_kernel() {
        cannot_tell(&RULE, Case::rto_bound().tcp(|tcp, _| tcp.total_rto_time_ms = None));
    }
}
