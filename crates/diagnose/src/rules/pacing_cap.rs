//! # What it means
//! The sending socket's pacing rate has a cap, and the socket sends at that cap.
//!
//! # Why it limits
//! The kernel spaces out TCP's packets so that the rate never exceeds `SO_MAX_PACING_RATE`,
//! whatever congestion control and windows allow.
//!
//! # How it is seen
//! The cap is set (tcp_info max_pacing_rate), the pacing rate is at the cap, and the goodput is the
//! cap minus the headers. Or each socket sent all that the cap allowed, and less arrived: the first
//! window is sent at once, and with a low cap, all that follows waits for seconds.
//!
//! # What to try
//! Raise or remove the cap: goodput's own `--max-pacing`, the program's own
//! `setsockopt(SO_MAX_PACING_RATE)`, or a BPF program that sets it for others.
//!
//! # When it is wrong
//! With `--rate` goodput itself sets a cap, a little above that rate; that is sender-application. A
//! cap above the goodput has no effect.
//!
//! # Source
//! socket(7); net/ipv4/tcp_output.c (`tcp_update_skb_after_send`); tc-fq(8).

use goodput_model::{Change, Confidence, Finding, Missing, TcpInfo};

use crate::account::is_paced_out;
use crate::bounds::next_after;
use crate::change::of_plan;
use crate::finding::{Draft, percent, rate, rate_argument};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{Moment, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "pacing-cap",
    title: "The socket's pacing rate is capped",
    refines: &[parts::SENDING_PROGRAM],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "goodput_of_cap_percent",
    witness_words: ("goodput as a share of the pacing cap", " %"),
    source: include_str!("pacing_cap.rs"),
};

/// Goodput over the cap from which the cap is what limits. TCP's own pacing counts payload, fq headers too,
/// 3.5 % of a full segment, and timers come late.
const MIN_SHARE_OF_CAP: f64 = 0.9;
/// Pacing rate over the cap from which it stands there.
const MIN_PACING_SHARE_OF_CAP: f64 = 0.95;
/// No cap: all bits set, of 32 in kernels before 4.20.
const UNCAPPED: [u64; 2] = [TcpInfo::NO_PACING_RATE, u32::MAX as u64];

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    if view.plan().rate_bits_per_s.is_some() {
        return Ok(None);
    }
    let Some(cap) = cap(view)? else { return Ok(None) };
    let of_cap = view.goodput()? / cap;
    if !stands_at_cap(view)? || of_cap < MIN_SHARE_OF_CAP && !is_used_up(view)? {
        return Ok(None);
    }
    let place = view.sender.place();
    let summary = format!("a cap on the socket's pacing rate: {}", rate(cap));
    let text = format!(
        "the socket may send {} (tcp_info max_pacing_rate); the goodput is {} of this rate",
        rate(cap),
        percent(of_cap)
    );
    let draft = Draft::new(RULE.id, place, Confidence::Certain, summary)
        .saw(place, RULE.witness_name, of_cap * 100.0, text)
        .saw_if(place, "rtt_inflation", view.sender.rtt_inflation(), |ratio| {
            format!("the round-trip time under load is {ratio:.2} × the smallest: no queue grew")
        })
        .predicted(next_after(view, &[RULE.id]));
    match change(view) {
        Some(change) => draft.changes([change]).found(),
        None => draft
            .advice(
                "find who set SO_MAX_PACING_RATE: the program itself, or BPF (bpftool cgroup tree)",
            )
            .found(),
    }
}

/// What all sockets together may send, bits per second; `None` if one has no cap.
fn cap(view: &View) -> Result<Option<f64>, Missing> {
    let mut sum = 0.0;
    for connection in view.sender.connections()? {
        let cap = last(&connection).max_pacing_rate_bytes_per_s()?;
        if cap == 0 || UNCAPPED.contains(&cap) {
            return Ok(None);
        }
        sum += cap as f64 * 8.0;
    }
    Ok(Some(sum))
}

/// Whether each socket paces at its cap.
fn stands_at_cap(view: &View) -> Result<bool, Missing> {
    for connection in view.sender.connections()? {
        let tcp = last(&connection);
        let (now, cap) = (tcp.pacing_rate_bytes_per_s()?, tcp.max_pacing_rate_bytes_per_s()?);
        if (now as f64) < MIN_PACING_SHARE_OF_CAP * cap as f64 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether each socket has sent all that its cap allowed since the start, though less was of use: the first window is
/// sent at once, and if it is lost, even its repetition waits.
fn is_used_up(view: &View) -> Result<bool, Missing> {
    let used_up = |connection: &Vec<Moment>| {
        let [first, .., last] = connection[..] else { return false };
        is_paced_out(last.tcp, last.at_s - first.at_s)
    };
    Ok(view.sender.connections()?.iter().all(used_up))
}

fn last<'a>(connection: &[Moment<'a>]) -> &'a TcpInfo {
    connection[connection.len() - 1].tcp
}

fn change(view: &View) -> Option<Change> {
    let asked = view.plan().socket.max_pacing_bits_per_s?;
    let why = "without a cap congestion control sets the rate";
    Some(of_plan("socket.max_pacing", Some(rate_argument(asked.0)), "default", why))
}

/// Goodput as a percentage of the cap; 0 without one.
fn witness(view: &View) -> Result<f64, Missing> {
    view.needs_tcp()?;
    cap(view)?.map_or(Ok(0.0), |cap| Ok(view.goodput()? / cap * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::BitRate;

    /// 50 Mbit/s, as measured.
    fn capped() -> Case {
        let case = Case::path_rate().without_links().goodput(49.5e6).tcp(|tcp, _| {
            tcp.max_pacing_rate_bytes_per_s = Some(6_250_000);
            tcp.pacing_rate_bytes_per_s = Some(6_250_000);
            tcp.rtt_us = Some(20_100);
        });
        case.plan(|plan| plan.socket.max_pacing_bits_per_s = Some(BitRate(5e7)))
    }

    #[test]
    fn the_cap_is_named_with_the_way_to_drop_it() {
        let finding = fires(&RULE, capped());
        assert_eq!(finding.changes[0].as_argument(), "socket.max_pacing=50mbit,default");
        let found = diagnose(&capped().evidence()).findings;
        assert_eq!(found.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(), ["pacing-cap"]);
    }

    #[test]
    fn a_cap_that_a_lost_first_window_uses_up_is_named() {
        let sent = |bytes| {
            let case = capped().goodput(20e6).tcp(move |tcp, _| tcp.sent_bytes = Some(bytes));
            case.plan(|plan| plan.socket.max_pacing_bits_per_s = None)
        };
        fires(&RULE, sent(30_000_000));
        quiet(&RULE, sent(10_000_000));
    }

    #[test]
    fn a_cap_that_someone_else_set_is_looked_for() {
        let finding = fires(&RULE, capped().plan(|plan| plan.socket.max_pacing_bits_per_s = None));
        assert!(finding.changes.is_empty() && finding.advice[0].contains("BPF"));
    }

    #[test]
    fn no_cap_one_out_of_reach_and_our_own_rate_are_quiet() {
        quiet(&RULE, Case::healthy());
        quiet(&RULE, capped().goodput(30e6).tcp(|tcp, _| tcp.sent_bytes = Some(1)));
        quiet(&RULE, capped().tcp(|tcp, _| tcp.max_pacing_rate_bytes_per_s = None));
        quiet(&RULE, capped().plan(|plan| plan.rate_bits_per_s = Some(BitRate(5e7))));
    }

    #[test]
    fn cannot_tell_for_datagrams_and_on_old_kernels() {
        cannot_tell(&RULE, Case::healthy_udp());
        let old_kernel = capped().tcp(|tcp, _| {
            (tcp.length_bytes, tcp.max_pacing_rate_bytes_per_s) = (104, None);
        });
        cannot_tell(&RULE, old_kernel);
    }
}
