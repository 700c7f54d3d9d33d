//! # What it means
//! The bucket of the sender's shaper is too small for its rate, so the shaper gives less than its
//! configured rate.
//!
//! # Why it limits
//! A packet that finds too few tokens waits for a timer. The timer is late by microseconds, and the
//! bucket keeps the tokens earned meanwhile only if it is that much larger than a frame. Tokens
//! that don't fit are lost. A bucket smaller than a frame drops every full frame.
//!
//! # How it is seen
//! Goodput is below 95 % of what the shaper's rate allows, and packets waited for tokens
//! (overlimits). The burst is below 70 kB or below 1 ms of the rate. The path holds the sender, not
//! a window, the application or the reader. A window that only the wait in the shaper fills counts
//! as the shaper's, and so does CPU time while the bucket is empty: each bucketful costs a timer.
//!
//! # What to try
//! A burst of 1 ms of the rate, at least 70 kB. This also keeps the batches of segmentation offload
//! whole and saves CPU.
//!
//! # When it is wrong
//! A queue too short for the bandwidth-delay product loses goodput in the same way. Then the queue
//! drops packets, or loss explains the rate, or the timer would have to be over 100 µs later than
//! the bucket bridges. With one of these the finding is only possible, unless a usual timer delay
//! alone explains the rate; with two it is not made.
//!
//! # Source
//! net/sched/sch_tbf.c (`tbf_enqueue`, `tbf_dequeue`); tc-tbf(8); the 1 ms is also what sqm-scripts
//! gives its shapers (`get_burst` in functions.sh).

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::account::path_share;
use crate::bounds::next_with_cpu_room;
use crate::change::of_host;
use crate::finding::{Draft, bytes, percent, rate, time};
use crate::names::{QDISC_BURST, QDISC_PACKETS};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::shaper::{Shaper, overlimits_per_packet};
use crate::small_bucket::SmallBucket;
use crate::view::{CpuTaker, View, positive};

/// The rule.
pub const RULE: Rule = Rule {
    id: "shaper-burst",
    title: "The local shaper's bucket is too small for its rate",
    refines: &[
        parts::CUT_WINDOW,
        parts::RECOVERY,
        parts::PATH_RATE,
        parts::RECEIVE_WINDOW,
        parts::SEND_BUFFER,
        parts::SENDING_HOST,
        parts::RECEIVING_HOST,
    ],
    depth: Depth::Beside,
    is_of_discipline: true,
    check,
    witness,
    witness_name: "waits_and_drops_per_100_packets",
    witness_words: ("waits and drops per 100 packets", ""),
    source: include_str!("shaper_burst.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(bucket) = SmallBucket::of(view)? else { return Ok(None) };
    let draft = draft(view, &bucket.shaper, bucket.burst, bucket.confidence)?;
    match bucket.share {
        Some(share) => draft.share(share).found(),
        None => draft.found(),
    }
}

fn draft(
    view: &View,
    shaper: &Shaper,
    burst: f64,
    confidence: Confidence,
) -> Result<Draft, Missing> {
    let (place, goodput) = (view.sender.place(), view.goodput_or_zero());
    let (needed, kind, device) = (shaper.needed_burst(), shaper.kind, shaper.device);
    let summary = format!(
        "the burst of the {kind} shaper on {device}, {} for {}",
        bytes(burst),
        rate(shaper.rate)
    );
    let gives = format!(
        "{} of the {} that its rate leaves for payload",
        percent(goodput / shaper.ceiling),
        rate(shaper.ceiling)
    );
    let draft = Draft::new(RULE.id, place, confidence, summary)
        .saw(place, "goodput_of_shaper_percent", goodput / shaper.ceiling * 100.0, gives)
        .saw(place, QDISC_BURST, burst, against_need(shaper, burst))
        .saw_if(place, "lateness_us", lateness_us(view, shaper, burst), |late| {
            format!("the goodput is that of timers {} late on average", time(late / 1e6))
        })
        .saw_if(place, RULE.witness_name, witness(view), |value| {
            format!("the shaper held or dropped packets {value:.0} times per 100 packets (tc -s qdisc: overlimits, dropped)")
        })
        .saw_if(place, "qdisc.drops", view.sender.queue_drops(), |drops| {
            format!("{drops:.0} packets dropped by the shaper (tc -s qdisc: dropped)")
        })
        .saw_if(
            view.receiver.place(),
            "reader_blocked_percent",
            view.receiver.blocked_share(),
            |share| view.receiver.waits_text(share),
        )
        // A small bucket has each packet handled alone; with a larger one a byte costs the CPUs less
        // than now.
        .predicted(next_with_cpu_room(view, &view.sender, RULE.id, CpuTaker::SingleSegments))
        .changes(larger_burst(view, shaper, burst));
    Ok(match (kind, path_share(view)) {
        ("tbf", Ok(share)) => draft.share(share),
        ("tbf", Err(_)) => draft,
        ("htb", Ok(share)) if shaper.class.is_some() => draft.share(share),
        ("htb", Err(_)) if shaper.class.is_some() => draft,
        (_, _) => draft.advice(format!(
            "give the class of {kind} on {device} a burst of {needed:.0} bytes (tc class change)"
        )),
    })
}

fn against_need(shaper: &Shaper, burst: f64) -> String {
    let frame = shaper.frame;
    if burst < frame {
        return format!("a burst of {burst:.0} bytes is too small for a frame of {frame:.0} bytes");
    }
    format!(
        "a burst of {burst:.0} bytes covers a frame of {frame:.0} bytes plus {:.1} µs; {:.0} bytes {}",
        (burst - frame) * 8.0 / shaper.rate * 1e6,
        shaper.needed_burst(),
        shaper.what_needs()
    )
}

/// How late timers are, as far as the goodput shows it: nobody has measured them.
fn lateness_us(view: &View, shaper: &Shaper, burst: f64) -> Result<f64, Missing> {
    if burst < shaper.frame {
        return Err(Missing::because("no frame passes"));
    }
    shaper.implied_lateness_us(view.goodput()?)
}

fn larger_burst(view: &View, shaper: &Shaper, burst: f64) -> Option<Change> {
    let values = (Some(format!("{burst:.0}")), format!("{:.0}", shaper.needed_burst()));
    let why = "1 ms of the rate, at least one batch of segmentation offload";
    let scope = Some(shaper.device);
    if shaper.kind == "htb" {
        return larger_class(view, shaper, why);
    }
    (shaper.kind == "tbf").then(|| of_host(&view.sender, "qdisc.tbf.burst", scope, values, why))
}

/// Both buckets of the class, because the smaller one counts if no other class lends.
fn larger_class(view: &View, shaper: &Shaper, why: &str) -> Option<Change> {
    let (side, class) = (&view.sender, shaper.class?);
    let size = |what: &str| side.count(&format!("class.{class}.{what}")).ok();
    let (burst, cburst) = (size("burst_bytes")?, size("cburst_bytes")?);
    let from =
        if burst == cburst { format!("{burst:.0}") } else { format!("{burst:.0} {cburst:.0}") };
    // Neither of the two gets smaller.
    let needed = shaper.needed_burst().max(burst).max(cburst);
    let values = (Some(from), format!("{needed:.0}"));
    let scope = format!("{}:{class}", shaper.device);
    Some(of_host(side, "qdisc.htb.bursts", Some(&scope), values, why))
}

/// Times that the local shaper made a packet wait for tokens or dropped one, for 100 that it sent.
fn witness(view: &View) -> Result<f64, Missing> {
    let sent = positive(view.sender.grown(QDISC_PACKETS)? as f64, "the packets sent")?;
    Ok((overlimits_per_packet(view)? + view.sender.queue_drops()? / sent) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{OFFLOAD_GSO, OFFLOAD_TSO, QDISC_LIMIT};
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    #[test]
    fn fires_on_a_bucket_of_one_frame() {
        let finding = fires(&RULE, Case::shaper_burst());
        assert_eq!(finding.confidence, Confidence::Certain);
        assert_eq!(finding.changes[0].as_argument(), "qdisc.tbf.burst@eth0=1600,125000");
        let predicted = finding.predicted_bits_per_s.value().unwrap();
        assert_eq!(predicted.to_string(), "956.4 Mbit/s");
    }

    #[test]
    fn a_cpu_that_the_single_packets_keep_busy_is_not_the_next_limit() {
        let case = Case::shaper_burst().goodput(4e8).reader(0.24, 0.0, 0.62);
        let finding = fires(&RULE, case);
        assert_eq!(finding.predicted_bits_per_s.value().unwrap().to_string(), "956.4 Mbit/s");
    }

    #[test]
    fn fires_on_a_bucket_that_no_frame_fits_in() {
        let case = Case::healthy().tbf(1e8, 1500).goodput(1e3);
        let finding = fires(&RULE, case.grows(Near, "qdisc.drops", 50));
        assert_eq!(finding.confidence, Confidence::Certain);
    }

    #[test]
    fn fires_where_nothing_arrived_at_all() {
        let case = Case::healthy().tbf(1e8, 1500).goodput(0.0);
        let finding = fires(&RULE, case.grows(Near, "qdisc.drops", 50));
        assert_eq!(finding.changes[0].as_argument(), "qdisc.tbf.burst@eth0=1500,70000");
    }

    #[test]
    fn stays_quiet_at_the_rate_and_with_a_large_bucket() {
        quiet(&RULE, Case::shaper_burst().goodput(950e6));
        quiet(&RULE, Case::shaper_burst().tbf(1e9, 125_000).overlimits(0.98));
        quiet(&RULE, Case::shaper_burst().overlimits(0.01));
        // 20 kB are 31 ms at 4.7 Mbit/s, which a stalled machine did not use up.
        quiet(&RULE, Case::shaper_burst().tbf(4.7e6, 20_000).goodput(2.4e6));
    }

    #[test]
    fn a_window_that_sends_in_bursts_is_not_the_bucket() {
        quiet(&RULE, Case::receive_window().tbf(1e8, 1600).overlimits(0.98));
    }

    /// 2.8 Gbit/s, a bucket of two packets: 667 Mbit/s, and with a larger one 2.7 Gbit/s, as measured on busy CPUs.
    fn slow_timers() -> Case {
        let case = Case::shaper_burst().tbf(2.83e9, 3191).overlimits(0.48).goodput(667e6);
        case.tcp(|tcp, _| {
            (tcp.rtt_us, tcp.min_rtt_us) = (Some(900), Some(6));
            tcp.snd_wnd_bytes = Some(3_000_000);
        })
    }

    #[test]
    fn a_window_that_only_the_wait_in_the_shaper_fills_is_its_effect() {
        let full = || slow_timers().shares(1.0, 0.99, 0.0);
        assert_eq!(fires(&RULE, full()).confidence, Confidence::Likely);
        // At 20 ms the window would not carry the rate either.
        quiet(
            &RULE,
            full().tcp(|tcp, _| (tcp.rtt_us, tcp.min_rtt_us) = (Some(36_000), Some(35_500))),
        );
    }

    /// As measured between two namespaces: the reader is on its CPU, or waits for it, all the time.
    #[test]
    fn a_reader_whose_cpu_handles_what_the_shaper_cut_up_is_its_effect() {
        let behind = || {
            let case = slow_timers().reader(0.0, 0.0, 0.48).waiting(0.0, 0.52);
            let case = [Near, Far].into_iter().fold(case, |case, end| {
                case.fact(end, "link.kind", "veth").fact(end, OFFLOAD_TSO, "on")
            });
            case.grows(Far, "link.rx_bytes", 346_000_000).grows(Far, "link.rx_packets", 230_000)
        };
        assert_eq!(fires(&RULE, behind()).confidence, Confidence::Likely);
        quiet(&RULE, behind().grows(Far, "link.rx_packets", 10_000));
        quiet(&RULE, behind().fact(Far, "link.kind", "hardware"));
        quiet(&RULE, behind().fact(Near, OFFLOAD_TSO, "off").fact(Near, OFFLOAD_GSO, "off"));
        quiet(&RULE, behind().reader(0.0, 0.0, 0.1).waiting(0.0, 0.0));
    }

    #[test]
    fn drops_of_a_queue_that_never_runs_empty_cost_nothing() {
        let case = |limit: u64| {
            let case = Case::shaper_burst().goodput(4e8).grows(Near, "qdisc.drops", 20_000);
            case.tcp(|tcp, _| tcp.min_rtt_us = Some(6)).fact(Near, QDISC_LIMIT, limit)
        };
        assert_eq!(fires(&RULE, case(1_000_000)).confidence, Confidence::Certain);
        assert_eq!(fires(&RULE, case(15_000)).confidence, Confidence::Possible);
    }

    #[test]
    fn a_cpu_that_works_while_the_bucket_is_empty_is_its_effect() {
        // What the writer sends at once is delivered at once.
        let at_once = |tcp: &mut goodput_model::TcpInfo, _| {
            (tcp.delivery_rate_bytes_per_s, tcp.unacked_segments) = (Some(330_000_000), Some(100));
        };
        let busy = || slow_timers().app_limited(1.0).writer(0.02, 0.0, 0.95).tcp(at_once);
        assert_eq!(fires(&RULE, busy()).confidence, Confidence::Likely);
        quiet(&RULE, busy().overlimits(0.15));
        // A program that waits for its own clock does not work.
        quiet(&RULE, slow_timers().app_limited(1.0).writer(0.02, 0.93, 0.05).tcp(at_once));
    }

    #[test]
    fn the_time_in_which_a_quota_stops_the_sender_is_not_held_against_it() {
        let idle = || Case::shaper_burst().shares(0.45, 0.0, 0.0).writer(0.2, 0.0, 0.05);
        fires(&RULE, idle().grows(Near, "cgroup.throttled_us", 2_500_000));
        quiet(&RULE, idle());
    }

    #[test]
    fn a_short_queue_is_not_the_bucket() {
        // 15 kB of queue at 100 Mbit/s and 20 ms: CUBIC gets 40.7 Mbit/s, as measured.
        let case = Case::path_loss().goodput(40.7e6).retransmitted(3e-4).tbf(1e8, 1600);
        quiet(&RULE, case.overlimits(0.9));
    }

    #[test]
    fn a_queue_shorter_than_a_batch_is_not_the_bucket() {
        // As measured with 15 kB of queue and BBR: 100 Mbit/s gives 77 and 74, 1 Gbit/s 277.
        let short = |rate, burst| {
            let case = Case::shaper_burst().tbf(rate, burst).overlimits(2.0);
            case.grows(Near, "qdisc.drops", 53_000)
        };
        quiet(&RULE, short(1e8, 12_500).goodput(73.9e6));
        for case in [short(1e8, 1600).goodput(77.3e6), short(1e9, 1600).goodput(277e6)] {
            assert_eq!(fires(&RULE, case).confidence, Confidence::Possible);
        }
    }

    #[test]
    fn drops_do_not_hide_a_bucket_that_explains_the_rate_alone() {
        // 100 kB of queue, CUBIC: 751 Mbit/s with 1.15 % dropped, as measured.
        let case = Case::shaper_burst().goodput(751e6).grows(Near, "qdisc.drops", 1150);
        let case = case.congestion("cubic").retransmitted(0.0115);
        assert_eq!(fires(&RULE, case).confidence, Confidence::Certain);
    }

    #[test]
    fn both_bursts_of_a_class_of_htb_are_raised() {
        let mut case = Case::shaper_burst().fact(Near, "qdisc.kind", "htb");
        for (what, number) in [
            ("level", 0u64),
            ("rate_bits_per_s", 1_000_000_000),
            ("ceil_bits_per_s", 1_000_000_000),
            ("burst_bytes", 1600),
            ("cburst_bytes", 1500),
        ] {
            case = case.fact(Near, &format!("class.1:10.{what}"), number);
        }
        let case = case.grows(Near, "class.1:10.sent_bytes", 400_000_000);
        let argument = fires(&RULE, case).changes[0].as_argument();
        assert_eq!(argument, "qdisc.htb.bursts@eth0:1:10=1600 1500,125000");
    }

    #[test]
    fn another_shaper_gets_advice_instead_of_a_setting() {
        let finding = fires(&RULE, Case::shaper_burst().fact(Near, "qdisc.kind", "hfsc"));
        assert!(finding.changes.is_empty());
        assert!(finding.advice[0].contains("hfsc on eth0 a burst of"), "{finding:?}");
    }

    #[test]
    fn cannot_tell_without_the_qdisc() {
        cannot_tell(&RULE, Case::shaper_burst().without(Near, "qdisc"));
    }
}
