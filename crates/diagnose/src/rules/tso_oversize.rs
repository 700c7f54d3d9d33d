//! # What it means
//! Something on the path treats the super-packets of segmentation offload as packets that are too
//! long, and drops them. It may be a filter by length, a policer or queue that doesn't expect
//! super-packets, or an old shaper.
//!
//! # Why it limits
//! With segmentation offload TCP hands over up to 64 KiB as one packet. If an element checks its
//! length before it is cut up, only what TCP sends one segment at a time gets through. That is
//! little more than one segment in each retransmission time-out of 200 ms.
//!
//! # How it is seen
//! Segmentation offload is on at the sender. Slow start lost nearly all of its first window, and
//! each flow had a retransmission time-out then, from which it may never have recovered. Each flow
//! continues in windows of a few segments, by time-outs or one segment at a time, yet full-sized
//! segments arrive: hardly any time-out follows another before something has passed. No host counted
//! the drops.
//!
//! # What to try
//! Switch segmentation offload off at the sending device, or replace the element with one that
//! handles super-packets.
//!
//! # When it is wrong
//! Random loss takes as much of single segments as of batches, so it almost never takes most of a
//! first window. A path MTU that is too large for a hop lets no full-sized segment through at all.
//! A policer with a bucket of one or two packets looks the same, and still does so with offload
//! off.
//!
//! # Source
//! net/core/gso.c (`skb_gso_segment`); net/ipv4/tcp_output.c (`tcp_tso_autosize`); net/sched/sch_tbf.c
//! (drops what exceeds its bucket before Linux 3.11, e43ac79a4bc6).

use goodput_model::{Change, Confidence, Finding, Missing, Place};

use crate::account::path_share;
use crate::bounds::next_after;
use crate::change::of_host;
use crate::finding::{Draft, bytes, percent, rate, time};
use crate::lost_elsewhere::lost_elsewhere;
use crate::names::{LINK_GSO_MAX_BYTES, LINK_GSO_MAX_SEGMENTS, OFFLOAD_GSO, OFFLOAD_TSO};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{LossStep, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "tso-oversize",
    title: "Something drops the super-packets of segmentation offload",
    refines: parts::DROPPING_LIMIT,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "startup_lost_percent",
    witness_words: ("bytes lost at the start", " %"),
    source: include_str!("tso_oversize.rs"),
};

/// Time in which slow start has sent its first windows, seconds.
const STARTUP_S: f64 = 0.65;
/// Round trips in which the initial window is sent, a probe follows (after 2), and the time-out (after 3 more; RFC 6298,
/// RFC 8985 section 7.2).
const STARTUP_ROUND_TRIPS: f64 = 6.0;
/// Lost share of that from which batches are what gets lost. Measured: 0.4 to 0.8.
const MIN_STARTUP_LOSS_SHARE: f64 = 0.35;
/// Less of the start is enough if much is lost all the time, and the initial window was the last that
/// slow start saw whole: what a policer's bucket or chance let through is more. Measured: 0.22 to 0.32, and
/// 0.22 to 0.28 of the whole run.
const MIN_STARTUP_LOSS_SHARE_IF_CONSTANT: f64 = 0.2;
const MIN_CONSTANT_LOSS_SHARE: f64 = 0.15;
/// Slow-start threshold that a loss within the initial window of 10 segments leaves (RFC 6928; CUBIC
/// keeps 0.7).
const INITIAL_WINDOW_SSTHRESH_SEGMENTS: f64 = 7.0;
/// Fewer lost packets than this are no window.
const MIN_LOST_PACKETS: f64 = 5.0;
/// Congestion window that such a flow does not outgrow, segments. Measured: 2 to 6.
const MAX_CWND_SEGMENTS: f64 = 8.0;
/// Share of the samples that find a flow after two time-outs in a row, from which it is no accident. Chosen, and tried with one
/// path only: 64 flows through a short queue.
const MIN_REPEATED_TIME_OUTS_SHARE: f64 = 0.1;
/// Goodput of a flow that is never reached one segment at a time and with time-outs, bits per second. Measured: at
/// most 2 Mbit/s; nearby up to 0.6 segments a round trip.
const MAX_CRAWL_BITS_PER_S: f64 = 5e6;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    view.needs_start()?;
    let startup = view.sender.episodes()?.first_losses()?;
    let (_, window, _) = view.sender.congestion_window_deciles()?;
    let most = starts_with_time_outs(view, &startup)?
        && (startup.share() >= MIN_STARTUP_LOSS_SHARE || loses_all_the_time(view)?);
    let batches = most && startup.lost >= MIN_LOST_PACKETS && window <= MAX_CWND_SEGMENTS;
    let goodput = view.goodput_or_zero();
    let one_by_one = view.sender.mss_bytes()? * 8.0 / view.sender.rtt_s()?;
    let each = goodput / view.sender.flow_count()?;
    // What passed at first shows that it is not full-sized packets that vanish.
    let passes = goodput > 0.0 || view.sender.acknowledged_in_all()? > 0.0;
    let crawls = passes && each < MAX_CRAWL_BITS_PER_S.max(one_by_one);
    if !batches
        || !crawls
        || !sends_super_packets(view)?
        || dropped_at_hosts(view)?
        || loses_single_segments(view)
    {
        return Ok(None);
    }
    let place = view.sender.place();
    let stuck = view.sender.episodes()?.stuck_flows();
    let text = lost(&startup, stuck, view.sender.flow_count()? as usize);
    let window_text =
        format!("the congestion window never grew: {window:.0} segments (tcp_info snd_cwnd)");
    let device = view.sender.device()?;
    let largest = match view.sender.number(LINK_GSO_MAX_BYTES) {
        Ok(most) => format!(" of up to {}", bytes(most)),
        Err(_) => String::new(),
    };
    let on = format!("{device} sends super-packets{largest} (ethtool -k)");
    let draft = Draft::new(
        RULE.id,
        Place::Path,
        Confidence::Likely,
        "something on the path drops the super-packets of segmentation offload",
    )
    .saw(place, RULE.witness_name, startup.share() * 100.0, text)
    .saw(place, "congestion_window_segments", window, window_text)
    .saw(place, OFFLOAD_TSO, 1.0, on)
    .saw_if(place, "timeouts", view.sender.timeouts(), |count| time_outs(view, count))
    .saw(
        view.receiver.place(),
        "goodput",
        goodput,
        format!("{} got through, one segment at a time", rate(goodput)),
    )
    .saw_if(place, "retransmitted_percent", view.sender.retransmitted_share(), |share| {
        format!("{} of the bytes were sent again (tcp_info bytes_retrans)", percent(share))
    })
    .predicted(next_after(view, &[RULE.id]))
    .changes(without_offload(view, device));
    match path_share(view) {
        Ok(share) => draft.share(share).found(),
        Err(_) => draft.found(),
    }
}

/// What the flows lost until their first losses were repaired, of which this many never were.
fn lost(first: &LossStep, stuck: usize, flows: usize) -> String {
    match stuck {
        0 => format!(
            "slow start lost {:.0} of the first {:.0} packets: whole batches",
            first.lost, first.sent
        ),
        _ if stuck >= flows => format!(
            "{:.0} of all {:.0} packets were lost: whole batches, of which the first were never repaired",
            first.lost, first.sent
        ),
        _ => format!(
            "{:.0} of {:.0} packets were lost until the first losses were repaired: whole batches; {stuck} of {flows} flows \
             never repaired theirs",
            first.lost, first.sent
        ),
    }
}

/// Each time-out sends one segment that passes, so their rhythm is that of the bursts which arrive (RTO_MIN is 200 ms).
fn time_outs(view: &View, count: f64) -> String {
    let each = || Ok::<_, Missing>(view.sender.elapsed_s()? * view.sender.flow_count()? / count);
    let rhythm = match each() {
        Ok(seconds) if count > 0.0 => format!(": a burst each {}", time(seconds)),
        _ => String::new(),
    };
    format!("{count:.0} retransmission time-outs (tcp_info total_rto){rhythm}")
}

/// Whether each flow began with a time-out: of an initial window that vanishes whole nothing arrives that could report it,
/// and what is sent again is a batch, too. A queue lets something of one flow pass. Linux before 6.7 counts no time-outs;
/// there, much of the start must be lost.
fn starts_with_time_outs(view: &View, startup: &LossStep) -> Result<bool, Missing> {
    let until_s = STARTUP_S.max(STARTUP_ROUND_TRIPS * view.sender.min_rtt_s()?);
    let mut all = true;
    for connection in view.sender.connections()? {
        let start = connection.iter().take_while(|moment| moment.at_s <= until_s);
        match start.last().and_then(|moment| moment.tcp.total_rto) {
            Some(count) => all &= count > 0,
            None => return Ok(startup.share() >= MIN_STARTUP_LOSS_SHARE_IF_CONSTANT),
        }
    }
    Ok(all)
}

/// Whether batches are lost from the initial window on, to the end.
fn loses_all_the_time(view: &View) -> Result<bool, Missing> {
    let at_once = view
        .sender
        .episodes()?
        .cuts_segments()?
        .first()
        .is_some_and(|left| *left <= INITIAL_WINDOW_SSTHRESH_SEGMENTS);
    let since = view.sender.episodes()?.since()?;
    Ok(since.share() >= MIN_CONSTANT_LOSS_SHARE && at_once)
}

/// Whether a host dropped what had to be sent again; since slow start that may be nothing at all.
fn dropped_at_hosts(view: &View) -> Result<bool, Missing> {
    Ok(view.sender.retransmitted_segments()? > 0.0 && lost_elsewhere(view)?)
}

/// Whether single segments get lost, too: what drops batches lets those pass that a time-out sends again.
fn loses_single_segments(view: &View) -> bool {
    let share = view.sender.repeated_timeouts_share();
    share.is_ok_and(|share| share >= MIN_REPEATED_TIME_OUTS_SHARE)
}

/// Whether super-packets leave the sender's device whole, or reach its queue so. A device may be set to take none of more than a
/// segment, whatever its offloads are.
fn sends_super_packets(view: &View) -> Result<bool, Missing> {
    if view.sender.number(LINK_GSO_MAX_SEGMENTS).is_ok_and(|segments| segments < 2.0) {
        return Ok(false);
    }
    let is_on = |name| view.sender.text(name).map(|state| state == "on");
    Ok(is_on(OFFLOAD_TSO)? || is_on(OFFLOAD_GSO).unwrap_or(false))
}

fn without_offload(view: &View, device: &str) -> Vec<Change> {
    let off = |name: &str, why: &str| {
        let values = (Some("on".into()), "off".into());
        of_host(&view.sender, name, Some(device), values, why)
    };
    let offloads = [
        (OFFLOAD_TSO, "each packet that leaves the device is then one segment"),
        (OFFLOAD_GSO, "the device's own queue then sees one segment per packet, too"),
    ];
    let on = offloads.into_iter().filter(|(name, _)| view.sender.text(name) == Ok("on"));
    on.map(|(name, why)| off(name, why)).collect()
}

/// Lost share of what slow start sent first, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    view.needs_tcp()?;
    let startup = view.sender.episodes()?.first_losses()?;
    Ok(startup.share() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;
    use goodput_model::TcpInfo;

    /// `nft meta length > 1500 drop` in a router, CUBIC, as measured: 6 of 33 packets sent again in
    /// each time-out.
    fn crawling() -> Case {
        Case::path_loss().without_links().goodput(1.5e6).tcp(|tcp, number| {
            tcp.snd_cwnd_segments = Some(2);
            tcp.total_rto = Some(number / 2);
            let again = if number == 0 { 0 } else { 12 + number * 3 };
            tcp.total_retrans_segments = Some(again);
            tcp.retrans_bytes = Some(again * 1448);
            tcp.data_segs_out = Some(number * 13 + again);
        })
    }

    #[test]
    fn fires_where_the_first_window_is_lost_whole_and_switches_offload_off() {
        let finding = fires(&RULE, crawling());
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        assert_eq!(finding.changes[0].as_argument(), "offload.tso@eth0=on,off");
    }

    /// What was lost first is sent again as a batch, and lost again: the flow comes to its recovery point in no run, or late.
    #[test]
    fn a_first_recovery_that_never_ends_is_no_start_that_excuses_it() {
        let recovers = |after: u64| {
            crawling().tcp(move |tcp, number| {
                tcp.ca_state = Some(if (1..after).contains(&number) { 4 } else { 0 });
                tcp.acked_bytes = Some(1448 * number.min(9));
                tcp.sent_bytes = tcp.data_segs_out.map(|segments| segments * 1448);
                tcp.snd_ssthresh_segments =
                    Some(if number == 0 { TcpInfo::INFINITE_SSTHRESH } else { 7 });
            })
        };
        for after in [2, 30, 100] {
            let finding = fires(&RULE, recovers(after));
            assert!(finding.evidence[0].value > 15.0, "{finding:?}");
            // The text calls it a start only if it ended.
            let text = &finding.evidence[0].text;
            let says = if after > 40 { "were never repaired" } else { "slow start lost" };
            assert!(text.contains(says), "{after}: {text}");
        }
    }

    #[test]
    fn flows_that_never_repaired_their_first_losses_are_counted() {
        let first = LossStep { seconds: 4.0, sent: 300.0, lost: 120.0 };
        assert!(lost(&first, 2, 8).ends_with("2 of 8 flows never repaired theirs"));
        assert!(lost(&first, 8, 8).starts_with("120 of all 300 packets were lost"));
        assert!(lost(&first, 0, 8).starts_with("slow start lost 120 of the first 300"));
    }

    #[test]
    fn a_window_in_which_nothing_passes_is_no_black_hole_if_something_passed_before() {
        let stuck = |acknowledged: u64| {
            crawling()
                .goodput(0.0)
                .tcp(move |tcp, n| tcp.acked_bytes = Some(acknowledged * n.min(1)))
        };
        fires(&RULE, stuck(49_232));
        quiet(&RULE, stuck(0));
    }

    #[test]
    fn stays_quiet_without_offload_and_where_the_flow_gets_going() {
        quiet(&RULE, crawling().fact(Near, OFFLOAD_TSO, "off"));
        quiet(&RULE, crawling().goodput(50e6));
        // `ip link set eth0 gso_max_segs 1`
        quiet(&RULE, crawling().fact(Near, LINK_GSO_MAX_SEGMENTS, 1u64));
        fires(&RULE, crawling().fact(Near, LINK_GSO_MAX_SEGMENTS, 2u64));
        quiet(&RULE, crawling().tcp(|tcp, _| tcp.snd_cwnd_segments = Some(30)));
    }

    #[test]
    fn a_queue_of_two_packets_lets_something_pass_and_needs_no_time_out() {
        quiet(&RULE, crawling().tcp(|tcp, _| tcp.total_rto = Some(0)));
        // Linux before 6.7 does not count them.
        fires(&RULE, crawling().tcp(|tcp, _| tcp.total_rto = None));
    }

    #[test]
    fn heavy_loss_by_chance_is_not_it() {
        let chance = crawling().tcp(|tcp, number| {
            tcp.total_retrans_segments = Some(number * 4);
            tcp.data_segs_out = Some(number * 17);
        });
        quiet(&RULE, chance);
        quiet(&RULE, Case::path_loss());
    }

    #[test]
    fn what_the_own_queue_dropped_is_its_own() {
        quiet(&RULE, crawling().grows(Near, "qdisc.drops", 500));
    }

    /// 64 flows that a short queue drops, as measured: time-outs of 0.8 s, because what is sent again is lost, too.
    #[test]
    fn what_drops_single_segments_is_no_filter_of_batches() {
        let waits = |rto_us| crawling().tcp(move |tcp, _| tcp.rto_us = Some(rto_us));
        fires(&RULE, waits(204_000));
        quiet(&RULE, waits(832_000));
    }

    #[test]
    fn cannot_tell_without_offloads() {
        cannot_tell(&RULE, crawling().without(Near, "offload"));
    }
}
