//! # What it means
//! The receiver handles every arriving segment separately, because generic receive offload is off.
//!
//! # Why it limits
//! The work per packet is the same for 1.4 or 64 KB, and the receiver's CPU is full at a fraction
//! of the rate.
//!
//! # How it is seen
//! GRO is off at the receiver's device. The packets that arrive carry one full segment each. Those of
//! this test take at least 5 % of a CPU: less is not worth a change. As much is taken to be theirs of
//! the time in softirqs as of the packets, and at most 30 µs for each.
//! The receiver's CPU is full, from its reader or from softirqs. Between
//! virtual devices of one machine, where GRO is off by default, packets arrive as long as they were
//! sent, so there is nothing to join.
//!
//! # What to try
//! Switch it on.
//!
//! # When it is wrong
//! On a device that joins segments in hardware (LRO) the counted packets are the joined ones, and
//! the rule stays quiet.
//!
//! # Source
//! Documentation/networking/segmentation-offloads.rst (generic receive offload); net/core/gro.c;
//! drivers/net/veth.c (GRO off by default); ethtool(8).

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::bounds::next_with_cpu_room;
use crate::change::of_host;
use crate::cpu_bound::{cpu_bound, describe, saw_room};
use crate::finding::Draft;
use crate::names::{LINK_DEVICE, LINK_KIND, LINK_RX_PACKETS, OFFLOAD_GRO, OFFLOAD_TSO};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MIN_COSTLY_SHARE, MIN_CPU_SHARE_OF_WALL_TIME};
use crate::view::{CpuTaker, Side, View, positive};

/// The rule.
pub const RULE: Rule = Rule {
    id: "gro-off",
    title: "Receive offload is off",
    refines: &[parts::RECEIVING_HOST],
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "arrived_packets_per_mb",
    witness_words: ("packets that arrived per MB", ""),
    source: include_str!("gro_off.rs"),
};

/// What a packet that is not joined costs at most, seconds of a CPU: 3 us, as measured at a server, and ten times as much at a
/// slow one. Softirqs also handle what others receive, and disks.
const MAX_PACKET_COST_S: f64 = 30e-6;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    if !view.is_tcp() || side.text(OFFLOAD_GRO)? == "on" || cut_by_the_sender(view) {
        return Ok(None);
    }
    let length = side.arrived_packet_bytes()?;
    let rate = view.goodput()? / 8.0 / length;
    let full = Side::are_full(length, view.sender.mss_bytes()?);
    if !side.are_single(length)? || !full || cost_share(side, rate)? < MIN_COSTLY_SHARE {
        return Ok(None);
    }
    match fullness(side)? {
        Some((share, confidence)) => found(view, (share, confidence), length, rate),
        None => Ok(None),
    }
}

/// Share of a CPU that softirqs take for so many packets a second, the flow's own. What packets cost differs much between
/// machines, so it is this host's own time that counts.
fn cost_share(side: &Side, rate: f64) -> Result<f64, Missing> {
    let all = side.grown(LINK_RX_PACKETS)? as f64 / positive(side.span_s()?, "the CPUs' time")?;
    let own = (rate / all).min(1.0);
    Ok((own * side.softirq_share()?).min(MAX_PACKET_COST_S * rate))
}

/// Whether the sender cut the segments that a virtual device only handed on; that is the cause then.
fn cut_by_the_sender(view: &View) -> bool {
    let virtual_device = view.sender.words(LINK_KIND).is_some_and(|kind| kind == "veth");
    virtual_device && view.sender.text(OFFLOAD_TSO) == Ok("off")
}

fn fullness(side: &Side) -> Result<Option<(f64, Confidence)>, Missing> {
    let softirqs = side.softirq_share().ok().filter(|share| *share >= MIN_CPU_SHARE_OF_WALL_TIME);
    let bound = cpu_bound(side)?.map(|bound| (bound.turn, bound.confidence()));
    let softirqs = softirqs.map(|share| (share, Confidence::Likely));
    Ok(softirqs.or(bound))
}

fn found(
    view: &View,
    (share, confidence): (f64, Confidence),
    length: f64,
    rate: f64,
) -> Result<Option<Finding>, Missing> {
    let (side, place) = (&view.receiver, view.receiver.place());
    let device = side.text(LINK_DEVICE).unwrap_or("the device");
    let summary = format!("segments handled one by one: GRO is off on {device}");
    let draft = Draft::new(RULE.id, place, confidence.min(Confidence::Likely), summary)
        .share(share.min(1.0))
        .saw(
            place,
            "arrived_packet_bytes",
            length,
            format!("{rate:.0} packets a second arrived, of {length:.0} bytes on average"),
        )
        .saw_thread_cpu(side);
    let taker = CpuTaker::SingleSegments;
    saw_room(describe(draft, side), view, side, taker)
        .predicted(next_with_cpu_room(view, side, RULE.id, taker))
        .changes(switch_on(side))
        .found()
}

fn switch_on(side: &Side) -> Option<Change> {
    let why = "the stack handles up to 44 segments at once";
    let values = (Some("off".into()), "on".into());
    Some(of_host(side, OFFLOAD_GRO, Some(side.device().ok()?), values, why))
}

/// Packets that came out of the receiver's device for each 10^6 bytes; if GRO is on it joins them
/// afterwards, and none counts.
fn witness(view: &View) -> Result<f64, Missing> {
    if view.receiver.text(OFFLOAD_GRO)? == "on" {
        view.receiver.grown(LINK_RX_PACKETS)?;
        return Ok(0.0);
    }
    Ok(1e6 / view.receiver.arrived_packet_bytes()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::LINK_RX_BYTES;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    fn arrives(bytes: u64, packets: u64) -> Case {
        let case = Case::healthy().reader(0.01, 0.0, 0.97).fact(Far, OFFLOAD_GRO, "off");
        let case = case.cpu(Far, 0.2, 0.98);
        case.grows(Far, LINK_RX_BYTES, bytes).grows(Far, LINK_RX_PACKETS, packets)
    }

    #[test]
    fn fires_on_a_full_cpu_and_short_packets() {
        let finding = fires(&RULE, arrives(400_000_000, 266_000));
        assert_eq!(finding.confidence, Confidence::Likely);
        assert_eq!(finding.changes[0].as_argument(), "far:offload.gro@eth0=off,on");
    }

    #[test]
    fn harmless_where_packets_are_long_or_the_cpu_has_time() {
        quiet(&RULE, arrives(400_000_000, 8_000));
        quiet(&RULE, arrives(400_000_000, 266_000).reader(0.5, 0.0, 0.5).cpu(Far, 0.2, 0.6));
        quiet(&RULE, arrives(400_000_000, 266_000).fact(Far, OFFLOAD_GRO, "on"));
        quiet(&RULE, arrives(4_000_000, 2_660).goodput(8e6).cpu(Far, 0.02, 0.98));
    }

    #[test]
    fn a_slow_cpu_is_full_of_fewer_packets() {
        fires(&RULE, arrives(40_000_000, 26_600).goodput(80e6).cpu(Far, 0.3, 0.98));
    }

    #[test]
    fn softirqs_for_others_are_not_this_tests() {
        // A disk's beside 8 Mbit/s.
        quiet(&RULE, arrives(4_000_000, 2_660).goodput(8e6).cpu(Far, 0.3, 0.98));
        // Other traffic: a hundredth of the packets are the test's.
        quiet(&RULE, arrives(4_000_000_000, 2_660_000).goodput(80e6).cpu(Far, 0.4, 0.98));
    }

    #[test]
    fn small_writes_are_not_joined_by_it() {
        quiet(&RULE, arrives(40_000_000, 266_000));
    }

    #[test]
    fn what_the_sender_cut_is_the_senders() {
        let case = arrives(400_000_000, 266_000).without_links();
        fires(&RULE, case);
        let case = arrives(400_000_000, 266_000).without_links().fact(Near, OFFLOAD_TSO, "off");
        quiet(&RULE, case);
    }

    #[test]
    fn cannot_tell_without_the_count_of_packets() {
        cannot_tell(&RULE, Case::healthy().fact(Far, OFFLOAD_GRO, "off"));
    }
}
