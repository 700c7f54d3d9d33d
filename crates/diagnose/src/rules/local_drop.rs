//! # What it means
//! The sender's own device or its queue drops packets, although no shaper is configured there.
//!
//! # Why it limits
//! Each packet dropped locally has to be sent again. Congestion control reads the drop as
//! congestion on the path and slows down.
//!
//! # How it is seen
//! The sender's queue or device dropped at least half as many packets as segments had to be sent
//! again, without a shaper, and the path holds the sender. The drops are at least 0.5 % of the
//! packets, or fewer that keep cutting the window.
//!
//! # What to try
//! A longer device queue (txqueuelen), or a queue that holds a flow back instead of dropping (fq,
//! fq_codel).
//!
//! # When it is wrong
//! Drops in a shaper's queue are left to queue-too-short or shaper-burst. Drops of other flows
//! through the same device count here too, so they are compared with what this flow sent again.
//!
//! # Source
//! net/sched/sch_generic.c (`pfifo_fast_enqueue`); ip-link(8) (`txqueuelen`); drivers/net/tun.c
//! (`tun_net_xmit`).

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::account::{self, path_share};
use crate::bounds::next_after;
use crate::change::of_host;
use crate::finding::{Draft, percent};
use crate::names::LINK_TX_QUEUE_LEN;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::shaper::Shaper;
use crate::thresholds::{MIN_HEAVY_LOSS_SHARE, MIN_LIMITING_TIME_SHARE};
use crate::view::{View, positive};

/// The rule.
pub const RULE: Rule = Rule {
    id: "local-drop",
    title: "The sender's own device drops packets",
    refines: parts::LOSSES,
    depth: Depth::Root,
    is_of_discipline: true,
    check,
    witness,
    witness_name: "local_drop_percent",
    witness_words: ("packets dropped on this host", " %"),
    source: include_str!("local_drop.rs"),
};

/// Packets that the queue of an Ethernet device holds by default (`DEFAULT_TX_QUEUE_LEN`, include/net/pkt_sched.h).
const USUAL_QUEUE_PACKETS: u64 = 1000;
/// Local drops over segments sent again from which they are the reason.
const MIN_DROPPED_LOCALLY_SHARE: f64 = 0.5;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    let (queue, device) = (view.sender.queue_drops()?, view.sender.departure_drops());
    let (drops, again) = (queue + device, view.sender.retransmitted_segments_in_all()?);
    let share = witness(view)? / 100.0;
    if drops == 0.0 || drops < MIN_DROPPED_LOCALLY_SHARE * again || Shaper::of(view)?.is_some() {
        return Ok(None);
    }
    let held = path_share(view)?;
    let losses_hold = account::held(view, RULE.refines)?.is_most();
    if held < MIN_LIMITING_TIME_SHARE || share < MIN_HEAVY_LOSS_SHARE && !losses_hold {
        return Ok(None);
    }
    let (place, name) = (view.sender.place(), view.sender.device()?);
    let dropped = format!(
        "{name} dropped {queue:.0} packets in its queue and {device:.0} in the device: {} of its packets (ip -s link, tc -s qdisc)",
        percent(share)
    );
    let text = format!("{again:.0} segments had to be sent again (tcp_info total_retrans)");
    Draft::new(RULE.id, place, Confidence::Likely, format!("drops at the sender's own {name}"))
        .share(held)
        .saw(place, RULE.witness_name, share * 100.0, dropped)
        .saw(place, "total_retrans_segments", again, text)
        .predicted(next_after(view, &[RULE.id]))
        .changes(longer_queue(view, name))
        .advice("a queue that holds a flow back instead of dropping: fq or fq_codel")
        .found()
}

/// A queue of the usual length, if the device's is shorter.
fn longer_queue(view: &View, device: &str) -> Option<Change> {
    let now = view.sender.count(LINK_TX_QUEUE_LEN).ok()? as u64;
    let values = (Some(now.to_string()), USUAL_QUEUE_PACKETS.to_string());
    let why = "a queue that holds a burst of the sender drops nothing";
    let change = || of_host(&view.sender, "link.txqueuelen", Some(device), values, why);
    (now < USUAL_QUEUE_PACKETS).then(change)
}

/// Packets that the sender's queue and device dropped, of those handed to them, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let drops = view.sender.queue_drops()? + view.sender.departure_drops();
    if drops == 0.0 {
        return Ok(0.0);
    }
    Ok(drops / positive(view.sender.departures()?, "the packets handed to the device")? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{LINK_TX_DROPPED, QDISC_PACKETS};
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;
    use goodput_model::{Place, TcpInfo};

    fn dropping() -> Case {
        let case = Case::path_loss().retransmitted(0.02);
        case.grows(Near, LINK_TX_DROPPED, 2000).grows(Near, QDISC_PACKETS, 100_000)
    }

    #[test]
    fn fires_where_the_device_dropped_what_was_sent_again() {
        let finding = fires(&RULE, dropping());
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Likely));
        assert!(finding.changes.is_empty(), "its length is unknown");
        let change = |packets: u64| {
            let finding = fires(&RULE, dropping().fact(Near, LINK_TX_QUEUE_LEN, packets));
            finding.changes.first().map(goodput_model::Change::as_argument)
        };
        assert_eq!(change(7).as_deref(), Some("link.txqueuelen@eth0=7,1000"));
        assert_eq!(change(1000), None, "it is long enough");
    }

    #[test]
    fn few_drops_count_where_they_keep_cutting_the_window() {
        let few =
            |case: Case| case.grows(Near, LINK_TX_DROPPED, 300).grows(Near, QDISC_PACKETS, 100_000);
        fires(&RULE, few(Case::path_loss()));
        quiet(&RULE, few(Case::path_rate()));
        // One drop in slow start: 22 Mbit/s of 1000 for 4 s, as measured.
        let once = Case::path_loss().retransmitted(0.0).goodput(22e6).tcp(|tcp, number| {
            tcp.total_retrans_segments = Some(number.min(1));
            tcp.snd_ssthresh_segments =
                Some(if number < 1 { TcpInfo::INFINITE_SSTHRESH } else { 11 });
            tcp.snd_cwnd_segments = Some(11 + 2 * number);
            tcp.unacked_segments = tcp.snd_cwnd_segments;
        });
        fires(&RULE, once.grows(Near, LINK_TX_DROPPED, 1));
    }

    #[test]
    fn stays_quiet_at_loss_of_the_path_and_with_a_shaper() {
        quiet(&RULE, Case::path_loss());
        quiet(&RULE, dropping().tbf(1e8, 125_000));
        quiet(&RULE, dropping().grows(Near, LINK_TX_DROPPED, 20));
    }

    #[test]
    fn cannot_tell_without_the_queue() {
        cannot_tell(&RULE, dropping().without(Near, "qdisc"));
    }
}
