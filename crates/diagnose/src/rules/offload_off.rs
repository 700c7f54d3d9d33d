//! # What it means
//! The sender's device may not cut segments, so the CPU cuts them.
//!
//! # Why it limits
//! Every segment passes the whole stack alone instead of with up to 43 others, and the CPU is full
//! at a fraction of the rate. Through a virtual device the receiver also gets them one at a time.
//!
//! # How it is seen
//! TSO is off at the sender's device, either directly or because scatter-gather or checksums, which
//! it needs, are off. The packets carry one full segment each, and a CPU is full: the sender's, or
//! the receiver's if a virtual device hands the packets on unchanged.
//!
//! # What to try
//! Switch TSO on again; first switch on what it depends on.
//!
//! # When it is wrong
//! A driver may not support TSO, or support it badly. On a link with a small token bucket, long
//! bursts would overflow the bucket. TUN and TAP devices, where a program decides, are not judged.
//!
//! # Source
//! Documentation/networking/segmentation-offloads.rst; net/core/dev.c (`netdev_fix_features`: no SG
//! without checksums, no TSO and GSO without SG); ethtool(8).

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::account::path_share;
use crate::bounds::next_with_cpu_room;
use crate::change::of_host;
use crate::cpu_bound::{cpu_bound, describe, saw_room};
use crate::elimination::is_local;
use crate::finding::{Draft, percent};
use crate::names::{
    LINK_DEVICE, LINK_KIND, OFFLOAD_GSO, OFFLOAD_SG, OFFLOAD_TSO, OFFLOAD_TX_CHECKSUM,
    PROGRAM_DECIDES,
};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{LONG_PATH_S, MIN_CPU_SHARE_OF_WALL_TIME, MIN_LIMITING_TIME_SHARE};
use crate::view::{CpuTaker, Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "offload-off",
    title: "Segmentation offload is off",
    refines: parts::HOSTS,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "sent_packets_per_mb",
    witness_words: ("packets sent per MB", ""),
    source: include_str!("offload_off.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    if !view.is_tcp() || !is_off(&view.sender)? {
        return Ok(None);
    }
    let length = view.sender.sent_packet_bytes();
    let mss = view.sender.mss_bytes()?;
    let other =
        |bytes: f64| view.sender.are_single(bytes) == Ok(false) || !Side::are_full(bytes, mss);
    if length.as_ref().is_ok_and(|bytes| other(*bytes)) {
        return Ok(None);
    }
    let Some((share, confidence)) = fullest(view)? else { return Ok(None) };
    found(view, share, confidence, length)
}

/// Whether the sender's device could segment, but has it switched off.
fn is_off(side: &Side) -> Result<bool, Missing> {
    let kind = side.words(LINK_KIND).unwrap_or_default();
    Ok(side.text(OFFLOAD_TSO)? == "off" && !PROGRAM_DECIDES.contains(&kind.as_str()))
}

/// Share of the time that a full CPU took, and how sure that is: of the sender, or of the receiver
/// if it gets the packets as they were sent.
fn fullest(view: &View) -> Result<Option<(f64, Confidence)>, Missing> {
    let own = cpu_bound(&view.sender)?.map(|bound| (bound.turn, bound.confidence()));
    let softirqs = |side: &Side| {
        let share = side.softirq_share().ok()?;
        // A CPU that has softirqs for the most part is full of them when nothing is left of it.
        let full = share >= MIN_CPU_SHARE_OF_WALL_TIME
            || share >= MIN_LIMITING_TIME_SHARE
                && side
                    .softirq_cpu_busy_share()
                    .is_ok_and(|busy| busy >= MIN_CPU_SHARE_OF_WALL_TIME);
        full.then_some((share, Confidence::Likely))
    };
    let far = cpu_bound(&view.receiver).ok().flatten();
    let far = far.map(|bound| (bound.turn, bound.confidence()));
    let far = far.or_else(|| softirqs(&view.receiver)).filter(|_| handed_on(view));
    let all = [own.or_else(|| softirqs(&view.sender)), far, scattered(view)];
    Ok(all.into_iter().flatten().max_by(|a, b| a.1.cmp(&b.1).then(a.0.total_cmp(&b.0))))
}

/// The sender's thread and the softirqs together as a share of one CPU, if they fill it in turns: on
/// a path without delay each waits for the other, so that none of them is ever full.
fn scattered(view: &View) -> Option<(f64, Confidence)> {
    let side = &view.sender;
    let softirqs: f64 = side.interrupt_shares().ok()?.iter().map(|(_, share)| share).sum();
    let share = side.thread_cpu_share().ok()? + softirqs;
    let nearby = side.rtt_s().is_ok_and(|rtt| rtt < LONG_PATH_S);
    let path = path_share(view).is_ok_and(|share| share >= MIN_LIMITING_TIME_SHARE);
    let free = nearby && path && !is_local(view).unwrap_or(true);
    (free && share >= MIN_CPU_SHARE_OF_WALL_TIME).then_some((share, Confidence::Possible))
}

/// Whether the receiver's device is a virtual one, which hands packets on as they were sent.
fn handed_on(view: &View) -> bool {
    view.receiver.words(LINK_KIND).is_some_and(|kind| kind == "veth")
}

fn found(
    view: &View,
    share: f64,
    confidence: Confidence,
    length: Result<f64, Missing>,
) -> Result<Option<Finding>, Missing> {
    let (side, place) = (&view.sender, view.sender.place());
    let device = side.text(LINK_DEVICE).unwrap_or("the device");
    let (name, word) = culprit(side);
    let summary = format!("segmentation in software: {word} is off on {device}");
    // That a CPU is full is certain sooner than that it is for this.
    let confidence = confidence.min(Confidence::Likely);
    let text = match confidence {
        Confidence::Possible => {
            format!("the writer and the softirqs took {} of a CPU together", percent(share))
        }
        _ => format!("a CPU held the flow {} of the time", percent(share)),
    };
    let draft = Draft::new(RULE.id, place, confidence, summary)
        .share(share.min(1.0))
        .saw(place, "cpu_bound_share", share, text)
        .saw_if(place, "sent_packet_bytes", length, |bytes| {
            format!("packets handed to {device} had {bytes:.0} bytes on average")
        })
        .saw_thread_cpu(side);
    let taker = CpuTaker::SingleSegments;
    saw_room(describe(draft, side), view, side, taker)
        .predicted(next_with_cpu_room(view, side, RULE.id, taker))
        .changes(switch_on(side, name))
        .changes((name != OFFLOAD_TSO).then(|| switch_on(side, OFFLOAD_TSO)).flatten())
        .found()
}

/// What to switch on first, as a fact and in words: what the others depend on.
fn culprit(side: &Side) -> (&'static str, &'static str) {
    let needed = [(OFFLOAD_TX_CHECKSUM, "checksum offload"), (OFFLOAD_SG, "scatter-gather")];
    let off = needed.into_iter().find(|(name, _)| side.text(name) == Ok("off"));
    off.unwrap_or((OFFLOAD_TSO, "TSO"))
}

fn switch_on(side: &Side, name: &'static str) -> Option<Change> {
    let values = (Some("off".into()), "on".into());
    let both = side.text(OFFLOAD_GSO) == Ok("off");
    let why = match both {
        true => {
            "the device cuts the segments instead of the CPU, and the stack handles many at once"
        }
        false => "the device cuts segments, not the CPU",
    };
    Some(of_host(side, name, Some(side.device().ok()?), values, why))
}

/// Packets that the sender's device was handed for 10^6 payload bytes.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(1e6 / view.sender.sent_packet_bytes()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{LINK_TX_BYTES, LINK_TX_PACKETS};
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    fn full() -> Case {
        Case::healthy().writer(0.01, 0.0, 0.97).fact(Near, OFFLOAD_TSO, "off")
    }

    #[test]
    fn work_that_no_cpu_has_alone_is_possibly_the_cause() {
        let case = |rtt: u64| {
            let case = Case::healthy().without_links().fact(Near, OFFLOAD_TSO, "off").goodput(16e9);
            let case = case.tcp(move |tcp, _| tcp.rtt_us = Some(rtt)).cpu(Near, 0.47, 0.6);
            case.writer(0.26, 0.0, 0.61)
        };
        assert_eq!(fires(&RULE, case(71)).confidence, Confidence::Possible);
        quiet(&RULE, case(20_000));
    }

    #[test]
    fn fires_where_the_cpu_is_full_and_switches_it_on() {
        let finding = fires(&RULE, full());
        assert_eq!(finding.confidence, Confidence::Likely);
        assert_eq!(finding.changes[0].as_argument(), "offload.tso@eth0=off,on");
        assert_eq!(finding.changes.len(), 1);
    }

    #[test]
    fn what_it_depends_on_comes_first() {
        let finding = fires(&RULE, full().fact(Near, OFFLOAD_SG, "off"));
        assert_eq!(finding.changes[0].as_argument(), "offload.sg@eth0=off,on");
        assert_eq!(finding.changes[1].as_argument(), "offload.tso@eth0=off,on");
    }

    #[test]
    fn a_receiver_that_gets_each_segment_by_itself_counts_on_virtual_devices_only() {
        let far = || full().writer(0.6, 0.0, 0.4).reader(0.02, 0.0, 0.95);
        quiet(&RULE, far());
        fires(&RULE, far().without_links());
        assert!(!far().without_links().evidence().plan.mover.is_empty());
    }

    #[test]
    fn harmless_where_there_is_cpu_or_packets_are_long_all_the_same() {
        quiet(&RULE, full().writer(0.6, 0.0, 0.4));
        quiet(&RULE, full().fact(Near, OFFLOAD_TSO, "on"));
        quiet(&RULE, full().fact(Near, LINK_KIND, "tun"));
        let long = full().grows(Near, LINK_TX_BYTES, 60_000_000).grows(Near, LINK_TX_PACKETS, 1000);
        quiet(&RULE, long);
        let small = full().grows(Near, LINK_TX_BYTES, 150_000).grows(Near, LINK_TX_PACKETS, 1000);
        quiet(&RULE, small);
        let short = full().grows(Near, LINK_TX_BYTES, 1_500_000).grows(Near, LINK_TX_PACKETS, 1000);
        fires(&RULE, short);
    }

    #[test]
    fn cannot_tell_without_offloads() {
        cannot_tell(&RULE, full().without(Near, "offload").without(Far, "offload"));
    }
}
