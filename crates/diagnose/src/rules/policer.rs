//! # What it means
//! Something on the path drops packets above a rate instead of queueing them: a policer, or a queue
//! of a few packets.
//!
//! # Why it limits
//! A policer lets through a burst no larger than its bucket. A sender without pacing sends whole
//! windows at once. If the bucket is smaller than a window, packets are lost at any rate, and a
//! congestion control that backs off for each loss stays far below the policed rate. BBR finds the
//! rate, but loses what exceeds it.
//!
//! # How it is seen
//! Packets are lost while the round-trip time stays as short as on the idle path, neither host
//! dropped them, and the loss is not random. One of these shows it. The rate that passes is
//! constant, and whatever is sent above it is lost. Slow start lost a large part of its last window
//! at once, and the window has met the same level again and again since. Losses come in clusters at
//! a constant rate, or more evenly than chance allows. The flow goes from time-out to time-out, and
//! the same amount passes in each burst between them. Or a limit of what is in flight explains the
//! losses clearly better than chance, or, of several flows together, what passes is steadier than
//! random loss would leave it. A deep bucket shows itself by more than losses: what it had
//! saved up passed faster, then only its rate did, and all that was beyond it was lost. A faster
//! link before it may have a queue.
//!
//! # What to try
//! At the hosts: a congestion control that paces (BBR). At the policer: a bucket of the rate × the
//! round-trip time, or a shaper instead.
//!
//! # When it is wrong
//! Random loss leaves none of these traces: it takes the same share of whatever is sent, and
//! windows meet it at any level. A queue shows in the round-trip time, unless it holds only a few
//! packets and so acts as a policer. Datagrams show only the rate, not whether the excess was
//! queued first, so with UDP the finding is only possible.
//!
//! # Source
//! Flach, Papageorge, Terzis, Pedrosa, Cheng, Karim, Katz-Bassett, Govindan: An Internet-Wide
//! Analysis of Traffic Policing, SIGCOMM 2016; net/netfilter/nft_limit.c.

use goodput_model::{Confidence, Finding, Missing, Place};

use crate::account::path_share;
use crate::bounds::next_after;
use crate::change::to_bbr;
use crate::elimination::is_local;
use crate::finding::{Draft, bytes, percent, rate, rate_argument, time};
use crate::lost_elsewhere::datagrams_lost_elsewhere;
use crate::parts;
use crate::policing::{Marks, Policing};
use crate::remedy::Again;
use crate::round_rate::round_rate;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MAX_PLATEAU_SPREAD_RATIO, MIN_HEAVY_LOSS_SHARE};
use crate::view::{Losses, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "policer",
    title: "Something on the path drops packets above a rate",
    refines: parts::DROPPING_LIMIT,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "retransmitted_percent",
    witness_words: ("bytes sent again", " %"),
    source: include_str!("policer.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    if !view.is_tcp() {
        return datagrams(view);
    }
    match Policing::of(view)? {
        Some(seen) => draft(view, &seen.marks, seen.confidence)?.found(),
        None => Ok(None),
    }
}

fn draft(view: &View, marks: &Marks, confidence: Confidence) -> Result<Draft, Missing> {
    let (side, place, goodput) = (&view.sender, view.sender.place(), view.goodput()?);
    let stands =
        view.receiver.plateau().ok().filter(|plateau| plateau.spread < MAX_PLATEAU_SPREAD_RATIO);
    let summary = summary(stands.as_ref().map(|plateau| plateau.rate), marks);
    let share = side.retransmitted_share()?;
    let lost = format!("{} of the bytes were sent again (tcp_info bytes_retrans)", percent(share));
    let queue = if marks.bucket.is_some() { "round trips" } else { "no queue: round trips" };
    let flat = format!(
        "{queue} took {} under load, {} at best (tcp_info rtt, min_rtt)",
        time(side.rtt_s()?),
        time(side.min_rtt_s()?)
    );
    let mut draft = Draft::new(RULE.id, Place::Path, confidence, summary)
        .share(path_share(view)?)
        .saw(place, RULE.witness_name, share * 100.0, lost)
        .saw(place, "rtt_inflation", side.rtt_inflation()?, flat);
    if marks.overshot {
        let text = format!(
            "slow start lost {:.0} of {:.0} packets at once",
            marks.startup.lost, marks.startup.sent
        );
        draft = draft.saw(place, "startup_lost_percent", marks.startup.share() * 100.0, text);
    }
    if marks.regular || marks.level {
        let (low, _, high) = side.congestion_window_deciles()?;
        let text = format!(
            "the congestion window stayed between {low:.0} and {high:.0} segments, and met loss there repeatedly"
        );
        draft = draft.saw(place, "congestion_window_ratio", high / low, text);
    }
    if let Some(bucket) = &marks.bucket {
        draft = draft.saw(place, "chance_behind", bucket.chance_behind, bucket.text());
    } else if let Some(limit) = &marks.fitted {
        draft = draft.saw(place, "chance_behind", limit.chance_behind, limit.text());
    } else if let Some(drops) = marks.drops {
        draft = draft.saw(place, "chance_behind", drops.chance_behind, drops.text());
    }
    if let Some(bursts) = &marks.metered {
        let text = format!(
            "{} passed in each of {} bursts, ± {}, one every {}, with a time-out before each",
            bytes(bursts.bytes),
            bursts.count,
            percent(bursts.spread),
            time(bursts.period_s)
        );
        draft =
            draft.saw(view.receiver.place(), "burst_spread_percent", bursts.spread * 100.0, text);
    }
    if let Some(losses) = &marks.losses {
        draft = of_spread(draft, place, losses, marks);
    }
    if let Some(plateau) = stands.filter(|_| marks.elastic || marks.clustered)
        && let Some(round) = round_rate(view, plateau.rate)?
    {
        draft =
            draft.saw(Place::Path, "round_rate_bits_per_s", round.rate, round.text(plateau.rate));
    }
    let paced = rate_argument(goodput);
    let draft = draft
        .predicted(next_after(view, &[RULE.id]))
        .changes(to_bbr(view, "BBR paces, so its bursts fit a smaller bucket"));
    Ok(match marks.elastic || marks.clustered {
        true => draft
            .again(&Again::With(&format!("--rate {paced}")), "paces below the policed rate")
            .advice("have the path shape instead of police"),
        false => draft.advice(
            "give the path's policer a bucket of its rate × the round-trip time, or shape instead",
        ),
    })
}

/// What it is, at the constant rate that passes if there is one, with the bucket as far as bursts showed it.
fn summary(constant_rate: Option<f64>, marks: &Marks) -> String {
    if let Some(found) = &marks.bucket {
        return format!("a policer on the path, at {}", rate(found.rate.1));
    }
    let bucket =
        marks.metered.as_ref().map(|bursts| format!("about {} at once", bytes(bursts.bytes)));
    match (constant_rate.filter(|_| marks.elastic || marks.clustered), bucket) {
        (Some(passes), None) => format!("a policer on the path, at {}", rate(passes)),
        (Some(passes), Some(bucket)) => {
            format!("a policer on the path, at {}, which lets {bucket} pass", rate(passes))
        }
        (None, Some(bucket)) => format!("a policer on the path, which lets {bucket} pass"),
        (None, None) => {
            "a policer or a queue of a few packets on the path, which drops bursts".into()
        }
    }
}

fn of_spread(draft: Draft, place: Place, losses: &Losses, marks: &Marks) -> Draft {
    let draft = match losses.elasticity() {
        Some((slope, correlation)) if marks.elastic => {
            let text = format!(
                "of each extra packet sent, {slope:.2} were lost (correlation {correlation:.2}); random loss would take {:.2}",
                losses.share
            );
            draft.saw(place, "lost_per_packet_more", slope, text)
        }
        _ => draft,
    };
    let clustering = losses.clustering();
    if marks.even {
        let text = format!("losses came evenly: {clustering:.2} × the variance of random loss");
        return draft.saw(place, "loss_dispersion", clustering, text);
    }
    if !marks.clustered && !marks.severe && !marks.level {
        return draft;
    }
    let text = format!("losses came in clusters: {clustering:.1} × the variance of random loss");
    draft.saw(place, "loss_dispersion", clustering, text)
}

/// Whether what is beyond the rate was dropped at once or waited first, datagrams do not report.
fn datagrams(view: &View) -> Result<Option<Finding>, Missing> {
    let losses = view.receiver.datagram_losses();
    if datagrams_lost_elsewhere(view)? || view.receiver.lost_share()? < MIN_HEAVY_LOSS_SHARE {
        return Ok(None);
    }
    let losses = losses?;
    let variance = losses.passed_variance();
    if losses.by_limit() != Some(true) || is_local(view)? {
        return Ok(None);
    }
    let stands = view.receiver.plateau()?.rate;
    let place = view.receiver.place();
    let summary = format!("a policer on the path, at {}", rate(stands));
    let text = format!("what arrived varied {variance:.2} × as much as after random loss");
    let lost = format!("{} of the datagrams never arrived", percent(losses.share));
    Draft::new(RULE.id, Place::Path, Confidence::Possible, summary)
        .saw(place, "lost_percent", losses.share * 100.0, lost)
        .saw(place, "passed_variance", variance, text)
        .predicted(next_after(view, &[RULE.id]))
        .again(
            &Again::With(&format!("--rate {}", rate_argument(stands))),
            "no faster than the policed rate",
        )
        .found()
}

/// Retransmitted share of the bytes, percent; of datagrams the share lost.
fn witness(view: &View) -> Result<f64, Missing> {
    if !view.is_tcp() {
        return Ok(view.receiver.lost_share()? * 100.0);
    }
    Ok(view.sender.retransmitted_share()? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use crate::token_bucket::TokenBucket;
    use goodput_model::EndName::Near;
    use goodput_model::TcpInfo;

    /// Lets each sample number be a tenth of a second of `passed` packets a second beside lost ones.
    fn counted(case: Case, passed: u64, lost: impl Fn(u64) -> u64 + 'static) -> Case {
        case.tcp(move |tcp, number| {
            let again: u64 = (0..number).map(&lost).sum();
            tcp.total_retrans_segments = Some(again);
            tcp.retrans_bytes = Some(again * 1448);
            tcp.data_segs_out = Some(number * passed / 10 + again);
            tcp.sent_bytes = Some((number * passed / 10 + again) * 1448);
        })
    }

    fn flat(tcp: &mut TcpInfo, _: u64) {
        (tcp.rtt_us, tcp.min_rtt_us) = (Some(20_300), Some(20_000));
    }

    /// BBR at 100 Mbit/s with a bucket of 20 packets, 20 ms: 50 to 150 of 850 packets lost.
    fn bbr() -> Case {
        let case = Case::path_rate().without_links().tcp(flat);
        counted(case, 8000, |number| 30 + 40 * (number % 3))
    }

    /// CUBIC at the same policer, as measured: 50 of 285 packets lost at once, then one or two at a time
    /// at a window of 20 segments.
    fn cubic() -> Case {
        let case = Case::path_loss().without_links().goodput(10.6e6).wobble(0.0).tcp(flat);
        let case = case.tcp(|tcp, number| {
            tcp.snd_cwnd_segments = Some(17 + number % 6);
            tcp.snd_ssthresh_segments =
                Some(if number == 0 { TcpInfo::INFINITE_SSTHRESH } else { 20 });
        });
        counted(case, 900, |number| if number < 2 { 25 } else { number % 2 })
    }

    #[test]
    fn with_bbr_what_is_sent_more_is_lost() {
        let finding = fires(&RULE, bbr());
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        assert!(finding.summary.contains("95.6 Mbit/s"), "{}", finding.summary);
        assert!(finding.changes.is_empty());
    }

    #[test]
    fn with_cubic_slow_start_overshoots_and_the_window_meets_one_level() {
        let finding = fires(&RULE, cubic());
        assert_eq!(finding.confidence, Confidence::Likely);
        assert_eq!(finding.changes[0].as_argument(), "socket.congestion=cubic,bbr");
    }

    #[test]
    fn loss_by_chance_is_not_a_policer() {
        quiet(&RULE, Case::path_loss());
        let odd = |number: u64| [0, 3, 1, 0, 0, 2, 5, 1, 2, 0, 1][number as usize % 11];
        let case = counted(Case::path_loss().tcp(flat), 1900, odd);
        quiet(&RULE, case.tcp(|tcp, number| tcp.snd_cwnd_segments = Some(15 + 7 * (number % 5))));
    }

    #[test]
    fn as_much_in_each_burst_between_time_outs_is_a_policers_bucket() {
        // `nft limit rate over 7 mbytes/second`: 7 % lost, a time-out for each burst, as measured.
        let odd = |number: u64| 23 + [0, 8, 3, 12, 5, 1, 10, 6, 2, 9, 4][number as usize % 11];
        let bursts = |uneven: f64, timeouts: u64| {
            let case = counted(Case::path_loss().without_links(), 4000, odd);
            case.goodput(6e7).wobble(0.0).in_bursts(uneven).tcp(move |tcp, number| {
                tcp.total_rto = Some(number * timeouts / 40);
                tcp.snd_cwnd_segments = Some(15 + 7 * (number % 5));
                (tcp.rtt_us, tcp.min_rtt_us) = (Some(480), Some(1));
            })
        };
        let finding = fires(&RULE, bursts(0.0, 20));
        assert_eq!(finding.confidence, Confidence::Likely);
        assert!(finding.evidence.iter().any(|seen| seen.name == "burst_spread_percent"));
        assert!(finding.summary.contains("at once"), "{}", finding.summary);
        quiet(&RULE, bursts(0.9, 20));
        quiet(&RULE, bursts(0.0, 5));
    }

    #[test]
    fn a_queue_is_not_a_policer() {
        quiet(&RULE, bbr().tcp(|tcp, _| tcp.rtt_us = Some(24_000)));
    }

    /// BBR through the queue of a 1 Mbit/s link, of which 8 segments pass in a tenth of a second. So many pass of each tenth,
    /// and so many are lost; the queue takes 180 ms, and this long after 0.7 s.
    fn behind_a_link(each: impl Fn(u64) -> (u64, u64) + 'static, later_us: u64) -> Case {
        let case = Case::path_rate().without_links().goodput(0.55e6).wobble(0.0);
        case.tcp(move |tcp, number| {
            let (passed, lost) =
                (0..number).map(&each).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            (tcp.unacked_segments, tcp.notsent_bytes) = (Some(20), Some(100_000));
            (tcp.sacked_segments, tcp.lost_segments) = (Some(0), Some(0));
            tcp.delivered_segments = Some(passed);
            tcp.data_segs_out = Some(passed + lost + 20);
            tcp.total_retrans_segments = Some(lost);
            tcp.retrans_bytes = Some(lost * 1448);
            tcp.sent_bytes = Some((passed + lost + 20) * 1448);
            tcp.delivery_rate_bytes_per_s = Some(passed * 14_480 / number.max(1));
            (tcp.min_rtt_us, tcp.rttvar_us) = (Some(4_000), Some(1_000));
            tcp.rtt_us = Some(if number < 7 { 184_000 } else { 4_000 + later_us });
        })
    }

    /// A policer at 0.5 Mbit/s behind that link, as measured: its savings pass first, then all that is more is lost, and the
    /// queue drains.
    #[test]
    fn savings_that_pass_first_show_a_policer_behind_a_queue() {
        let policed = |number| match number {
            0..=4 => (8, 0),
            5 => (7, 2),
            later => (4, 3 + later % 3),
        };
        let bucket = TokenBucket::of(&View::new(&behind_a_link(policed, 20_000).evidence()));
        let finding = fires(&RULE, behind_a_link(policed, 20_000));
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        assert!(finding.evidence.iter().any(|seen| seen.text.contains("a token bucket of")));
        let (rate, passed) = (bucket.unwrap().rate.1, 4.0 * 1448.0 * 8.0 / 0.1);
        assert!((rate / passed - 1.0).abs() < 0.05, "{rate} for {passed}");
    }

    /// The same link with a shaper behind it: its queue stays, and overflows now and then.
    #[test]
    fn savings_that_pass_first_show_no_policer_if_the_queue_stays() {
        let shaped = |number| match number {
            0..=4 => (8, 0),
            lossy if lossy % 4 == 1 => (4, 6),
            _ => (4, 0),
        };
        quiet(&RULE, behind_a_link(shaped, 180_000));
    }

    /// BBR finds 15 Mbit/s over 83 ms and overflows the queue twice, as measured. Later samples see neither queue nor loss.
    #[test]
    fn what_bbr_overshot_while_a_queue_stood_is_no_policers() {
        let overflows = |queue_us: u64| {
            let case = Case::path_rate().without_links().goodput(14.6e6).wobble(0.0);
            let lost = |number: u64| [0, 0, 0, 0, 0, 0, 117, 5, 0, 113, 11].get(number as usize);
            let case = counted(case, 1260, move |number| lost(number).copied().unwrap_or(0));
            case.tcp(move |tcp, number| {
                tcp.delivered_segments = Some(number * 126);
                (tcp.unacked_segments, tcp.sacked_segments) = (Some(100), Some(0));
                (tcp.min_rtt_us, tcp.rttvar_us) = (Some(83_000), Some(1_000));
                let waits_us = if (6..=12).contains(&number) { queue_us } else { 1_000 };
                tcp.rtt_us = Some(83_000 + waits_us);
            })
        };
        fires(&RULE, overflows(1_000));
        quiet(&RULE, overflows(68_000));
    }

    #[test]
    fn what_a_host_dropped_no_policer_did() {
        quiet(&RULE, bbr().grows(Near, "qdisc.drops", 5000));
    }

    #[test]
    fn slow_start_into_a_queue_is_not_a_policer() {
        let queue =
            |tcp: &mut TcpInfo, number| tcp.rtt_us = Some(if number < 4 { 40_000 } else { 20_300 });
        quiet(&RULE, cubic().goodput(60e6).tcp(queue));
    }

    #[test]
    fn datagrams_that_pass_as_steadily_as_no_chance_lets_them_are_possibly_policed() {
        let case = || Case::healthy_udp().without_links().wobble(0.0).goodput(73e6);
        assert_eq!(fires(&RULE, case().lost(0.09)).confidence, Confidence::Possible);
        quiet(&RULE, case().lost(0.001));
    }

    #[test]
    fn cannot_tell_without_counts() {
        cannot_tell(&RULE, bbr().tcp(|tcp, _| tcp.total_retrans_segments = None));
        cannot_tell(&RULE, bbr().tcp(|tcp, _| tcp.min_rtt_us = None));
    }
}
