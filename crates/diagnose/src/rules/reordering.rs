//! # What it means
//! Packets arrive out of order, and TCP declares some of the late ones lost.
//!
//! # Why it limits
//! A late packet that TCP declares lost is sent again needlessly, and a congestion control that
//! backs off at loss cuts its window. A packet that overtakes also makes the path look shorter, and
//! BBR uses that to decide how much it may send.
//!
//! # How it is seen
//! TCP notices late arrivals of segments that it had sent only once (`reord_seen`): at least ten,
//! and one in a thousand of the segments. The receiver reports at least four in ten retransmissions
//! as needless (DSACK). Either of two other signs is enough. One segment in a hundred overtakes so
//! far that round trips no longer show it. Or packets arrive so late that only the receiver's
//! report shows it, for eight in ten retransmissions. The path holds the sender, and no queue
//! stands on it.
//!
//! # What to try
//! Find where the order is lost: packets of one flow over several links (round-robin bonding, ECMP
//! by packet), or over several queues of a device.
//!
//! # When it is wrong
//! Busy hosts also delay packets: if either host is short of CPU, or round trips take less than 1
//! ms, this rule stays quiet. If loss and reordering come together, loss may cost more; then
//! path-loss is reported too. On short paths TCP learns to wait and loses almost nothing.
//!
//! # Source
//! RFC 2883 (DSACK); RFC 8985 (RACK); RFC 4737 (reordering); net/ipv4/tcp_input.c
//! `tcp_check_sack_reordering`.

use goodput_model::{Change, Confidence, Finding, Missing, Place};

use crate::account::path_share;
use crate::bounds::next_after;
use crate::change::{of_host, to_bbr};
use crate::elimination::host_is_short;
use crate::finding::{Draft, percent, time};
use crate::names::TCP_REORDERING;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{LONG_PATH_S, MIN_LIMITING_TIME_SHARE};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "reordering",
    title: "The path changes the order of packets",
    refines: parts::LOSSES,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "reordered_percent",
    witness_words: ("packets out of order", " %"),
    source: include_str!("reordering.rs"),
};

/// Fewer late arrivals prove nothing.
const MIN_LATE_SEGMENTS: f64 = 10.0;
/// Share of the segments seen late from which it matters. Measured: packets held back by 1 % show
/// as 1 to 20 %, because each of them is seen by all that overtook it.
const MIN_LATE_SHARE: f64 = 0.001;
/// Share of the retransmissions that were needless. Of those after loss nearly none are.
const MIN_NEEDLESS_SHARE: f64 = 0.4;
/// The same if more segments were seen late than were sent again: most of them were not lost, because nobody
/// had to send them again. Measured: 0.36 to 0.9 of the retransmissions, and 7 times as many late.
const MIN_NEEDLESS_SHARE_IF_LATE: f64 = 0.2;
/// Segments seen late for each retransmission from which that holds.
const MIN_LATE_PER_RETRANSMISSION: f64 = 2.0;
/// Round-trip time over the smallest one that no queue explains.
const MIN_OVERTAKING_RTT_RATIO: f64 = 10.0;
/// Share of the segments seen late from which the order is lost as a rule.
const MIN_UNORDERED_SHARE: f64 = 0.01;
/// The same if nothing else shows that packets came late.
const MIN_NEEDLESS_SHARE_ALONE: f64 = 0.8;
/// Fewer retransmissions than this have not cut the window often.
const MIN_RETRANSMISSIONS: f64 = 3.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    let seen = view.sender.reorderings()?;
    let share = seen / view.sender.delivered_segments()?.max(1.0);
    let (again, needless) =
        (view.sender.retransmitted_segments()?, view.sender.needless_retransmits()?);
    let held = path_share(view)?;
    let least = if seen >= MIN_LATE_PER_RETRANSMISSION * again {
        MIN_NEEDLESS_SHARE_IF_LATE
    } else {
        MIN_NEEDLESS_SHARE
    };
    let cuts = again >= MIN_RETRANSMISSIONS && needless >= least * again;
    let noticed = seen >= MIN_LATE_SEGMENTS && share >= MIN_LATE_SHARE;
    // Later than a round trip, a packet comes when the one sent for it is on its way too: TCP then
    // learns of it only by the report.
    let reported = needless >= MIN_NEEDLESS_SHARE_ALONE * again
        && needless >= MIN_LATE_SHARE * view.sender.delivered_segments()?;
    let by_hosts = view.sender.rtt_s()? < LONG_PATH_S || host_is_short(view) || may_be_far(view)?;
    let misleads = noticed && overtakes(view, share)?;
    if !((noticed || reported) && cuts || misleads)
        || held < MIN_LIMITING_TIME_SHARE
        || by_hosts
        || path_is_full(view)?
    {
        return Ok(None);
    }
    let place = view.sender.place();
    Draft::new(RULE.id, Place::Path, confidence(view), "packets that overtake each other")
        .share(held)
        .saw(place, "tcp_info.reord_seen", seen, format!("{seen:.0} segments arrived late, not lost (tcp_info reord_seen)"))
        .saw_if(place, "needless_percent", Ok(needless / again * 100.0), |needless| {
            format!("{} of the {again:.0} retransmissions were needless (tcp_info dsack_dups)", percent(needless / 100.0))
        })
        .saw_if(place, "tcp_info.rtt_us", view.sender.rtt_s().map(|rtt| rtt * 1e6), |rtt| {
            let least = view.sender.min_rtt_s().map(time).unwrap_or_default();
            format!("round trips took {}, the shortest {least}", time(rtt / 1e6))
        })
        .predicted(next_after(view, &[RULE.id]))
        .changes(changes(view))
        .advice("find what sends packets of one flow over several links: bonding in mode balance-rr, ECMP by packet, a device that spreads one flow over its queues")
        .found()
}

/// Whether enough segments overtake others, far enough, that round trips no longer show what is
/// on its way: slow start takes the late ones for a queue (net/ipv4/tcp_cubic.c, `hystart_update`).
fn overtakes(view: &View, share: f64) -> Result<bool, Missing> {
    Ok(share >= MIN_UNORDERED_SHARE && view.sender.rtt_inflation()? >= MIN_OVERTAKING_RTT_RATIO)
}

/// Whether a receiver that is not seen may be late: then a round trip that was short once is the path's
/// own.
fn may_be_far(view: &View) -> Result<bool, Missing> {
    Ok(!view.receiver.is_sampled() && view.sender.min_rtt_s()? < LONG_PATH_S)
}

/// Whether a queue stands, so that the path carries all it can. A packet that overtook the delay itself
/// makes the smallest round trip a small part of the others: that is no queue.
fn path_is_full(view: &View) -> Result<bool, Missing> {
    Ok(view.sender.queue_stands()? && view.sender.rtt_inflation()? < MIN_OVERTAKING_RTT_RATIO)
}

/// Sure if the window was cut for it and is what holds the sender.
fn confidence(view: &View) -> Confidence {
    let cut = view.sender.cut_window_share().is_ok_and(|share| share >= MIN_LIMITING_TIME_SHARE);
    if cut || view.backs_off_at_loss() == Ok(false) {
        Confidence::Likely
    } else {
        Confidence::Possible
    }
}

fn changes(view: &View) -> Vec<Change> {
    let waits = "TCP declares a packet lost only after this many later ones";
    let now =
        view.sender.words(TCP_REORDERING).filter(|now| now.parse().is_ok_and(|n: u32| n < 100));
    let patient = now
        .map(|now| of_host(&view.sender, TCP_REORDERING, None, (Some(now), "100".into()), waits));
    let other = to_bbr(view, "BBR does not read each loss as congestion");
    other.into_iter().chain(patient).collect()
}

/// Segments that arrived late, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(view.sender.reorderings()? / view.sender.delivered_segments()?.max(1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};

    #[test]
    fn fires_where_needless_retransmissions_cut_the_window() {
        let finding = fires(&RULE, Case::reordering());
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        assert_eq!(finding.changes[0].as_argument(), "socket.congestion=cubic,bbr");
    }

    #[test]
    fn an_overtaken_delay_is_no_queue() {
        // One packet in a hundred skips 10 ms of delay: 94 Mbit/s of 1400, as measured.
        let overtaken = || Case::reordering().tcp(|tcp, _| tcp.min_rtt_us = Some(72));
        fires(&RULE, overtaken());
        // 5 in 100 skip 38 ms, and almost no is sent again for it: 126 Mbit/s of 593, as measured.
        fires(&RULE, overtaken().tcp(|tcp, _| tcp.dsack_dups = Some(0)));
    }

    #[test]
    fn late_hosts_are_not_the_path() {
        // 100 Gbit/s between two namespaces: 1 % sent again, all of it for nothing, as measured.
        quiet(
            &RULE,
            Case::reordering().without_links().tcp(|tcp, _| {
                tcp.dsack_dups = tcp.total_retrans_segments;
                tcp.rtt_us = Some(118);
                tcp.min_rtt_us = Some(1);
            }),
        );
        quiet(&RULE, Case::reordering().reader(0.02, 0.0, 0.95));
    }

    #[test]
    fn a_receiver_that_is_not_seen_may_be_late() {
        let short_once = |tcp: &mut goodput_model::TcpInfo, _| tcp.min_rtt_us = Some(1);
        quiet(&RULE, Case::reordering().tcp(short_once).without_far());
        fires(&RULE, Case::reordering().without_far());
    }

    #[test]
    fn loss_is_not_reordering() {
        quiet(&RULE, Case::path_loss());
        quiet(&RULE, Case::reordering().tcp(|tcp, _| tcp.dsack_dups = Some(0)));
        quiet(&RULE, Case::reordering().tcp(|tcp, _| tcp.rtt_us = Some(57_000)));
        quiet(&RULE, Case::reordering().tcp(|tcp, _| tcp.reord_seen = Some(3)));
    }

    #[test]
    fn later_than_a_round_trip_only_the_report_shows_it() {
        fires(
            &RULE,
            Case::reordering().tcp(|tcp, _| {
                tcp.reord_seen = Some(0);
                tcp.dsack_dups = tcp.total_retrans_segments;
            }),
        );
    }

    #[test]
    fn cannot_tell_on_an_old_kernel() {
        cannot_tell(&RULE, Case::reordering().tcp(|tcp, _| tcp.reord_seen = None));
    }
}
