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
//! the same amount passes in each burst between them.
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

use goodput_model::{Change, Confidence, Finding, Missing, Place};

use super::path_loss::{datagrams_lost_elsewhere, lost_elsewhere};
use crate::bounds::next_after;
use crate::change::of_plan;
use crate::elimination::is_local;
use crate::finding::{Draft, bytes, percent, rate, rate_argument, time};
use crate::names::TCP_AVAILABLE;
use crate::parts;
use crate::round_rate::round_rate;
use crate::rule::{Rule, Stage};
use crate::split::split;
use crate::thresholds::{MAX_PLATEAU_SPREAD_RATIO, MIN_HEAVY_LOSS_SHARE, MIN_LIMITING_TIME_SHARE};
use crate::view::{Bursts, LossStep, Losses, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "policer",
    title: "Something on the path drops packets above a rate",
    stage: Stage::Path,
    refines: parts::DROPPING_LIMIT,
    explains: &["path-loss", "path-rate", "credit-bucket"],
    check,
    witness,
    witness_name: "retransmitted_percent",
    source: include_str!("policer.rs"),
};

/// Packets lost for each additional packet sent, from which a limit and not chance drops them, and the
/// correlation from which this is no accident. Measured: 0.97 with 0.87 for BBR at a policer, the lost share
/// itself by chance; if something else holds the rate, chance gives 1 too, but no clusters.
const MIN_LOST_PER_EXTRA_SENT: f64 = 0.5;
const MIN_LOSS_CORRELATION: f64 = 0.6;
/// Time from the start by which slow start has reached the limit, seconds; on a longer path this number of
/// round trips.
const STARTUP_S: f64 = 0.3;
const STARTUP_ROUND_TRIPS: f64 = 8.0;
/// Lost share of slow start from which it overshot a limit, with the least number of lost packets and the
/// least ratio to the share lost since. Measured: 11 to 33 % at a policer, at most 2 % at 1 % by chance.
const MIN_OVERSHOOT_SHARE: f64 = 0.05;
const MIN_OVERSHOOT_PACKETS: f64 = 10.0;
const MIN_OVERSHOOT_LOSS_RATIO: f64 = 2.0;
/// Lost share from which slow start alone shows the limit.
const MIN_CLEAR_OVERSHOOT_SHARE: f64 = 0.1;
/// A smaller lost share shows the limit too, with more lost packets and a larger ratio to the share lost since.
const MIN_FAINT_OVERSHOOT_SHARE: f64 = 0.02;
const MIN_FAINT_OVERSHOOT_PACKETS: f64 = 25.0;
const MIN_FAINT_OVERSHOOT_LOSS_RATIO: f64 = 20.0;
/// Congestion window since, over the level that slow start ended at, below which something else than
/// that limit holds it: chance on a path that slow start had filled.
const MIN_SAME_LEVEL_CWND_RATIO: f64 = 0.25;
/// Ninth over first decile of the congestion window below which the window reaches the same level again and
/// again. Measured: 1.2 to 1.5 at a policer, 1.7 to 3 by chance.
const MAX_CWND_DECILE_RATIO: f64 = 1.55;
/// The same if losses came in clusters, in at least the number of steps below. Chance then gives 2.1 and more,
/// and no clusters.
const MAX_CLUSTERED_CWND_DECILE_RATIO: f64 = 1.9;
const MIN_CLUSTERED_LOSS_STEPS: usize = 15;
/// Smaller windows are regular whatever limits them, segments.
const MIN_CWND_SEGMENTS: f64 = 8.0;
/// Losses in fewer steps show no level.
const MIN_LOSS_STEPS: usize = 5;
/// Index of dispersion from which losses come in clusters. Chance gives 1 ± 0.4.
const MIN_CLUSTERED_DISPERSION: f64 = 2.0;
/// Index of dispersion below which losses come too evenly for chance, and the least number of lost packets: a
/// bucket that fills at its rate drops packets at equal distances. Measured: 0.1 to 0.2, by chance 0.6 and more.
const MAX_EVEN_DISPERSION: f64 = 0.35;
const MIN_EVEN_LOST_PACKETS: f64 = 60.0;
/// Loss for each additional packet over the lost share, from which there is a limit, with the least correlation.
const MIN_EXCESS_LOSS_RATIO: f64 = 2.5;
const MIN_EXCESS_LOSS_CORRELATION: f64 = 0.25;
/// Correlation of lost with sent packets that chance does not reach. Measured: 0.92 for BBR at a
/// policer with a bucket of 12 packets.
const MIN_CLOSE_CORRELATION: f64 = 0.8;
/// Pairs of lost share and dispersion from which clusters of losses show a limit without a steady rate. Random
/// loss of whole batches of segmentation offload gives a dispersion of up to 45.
const SEVERE_SHARES_AND_DISPERSIONS: [(f64, f64); 2] = [(0.15, 10.0), (0.03, 100.0)];
/// Spread of the bytes that pass between time-outs, below which a bucket metered them, and time-outs per burst.
/// Measured: 0.02 to 0.1 and 1 at policers that save up tokens for a second, 0.5 and more by chance.
const MAX_METERED_BURST_SPREAD_RATIO: f64 = 0.15;
const MIN_TIMEOUTS_PER_BURST: f64 = 0.7;
/// Loss below which a limit costs nothing.
const MIN_LOSS_SHARE: f64 = 0.0005;
/// What may wait though no queue does: the pacing's own bursts, late scheduling and the wait for a
/// second segment to acknowledge. Bytes and seconds; either explains it, as does a share of the
/// smallest round-trip time. If that is shorter than the hosts take, they are more of it.
const UNQUEUED_BYTES: f64 = 12_000.0;
const UNQUEUED_S: f64 = 0.0004;
const UNQUEUED_NEARBY_S: f64 = 0.001;
const NEARBY_S: f64 = 0.0005;
const UNQUEUED_SHARE: f64 = 0.03;
/// How many times as much may wait while slow start overshoots and the smoothed round-trip time is new.
const STARTUP_UNQUEUED_RATIO: f64 = 3.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    if !view.is_tcp() {
        return datagrams(view);
    }
    if view.sender.retransmitted_segments_in_all()? < MIN_OVERSHOOT_PACKETS
        || lost_elsewhere(view)?
        || split(view)?.path_percent / 100.0 < MIN_LIMITING_TIME_SHARE
        || queue_shows(view)?
        || is_local(view)?
    {
        return Ok(None);
    }
    let marks = Marks::of(view)?;
    match marks.confidence() {
        Some(confidence) => draft(view, &marks, confidence)?.found(),
        None => Ok(None),
    }
}

/// Whether packets wait on the path longer than without any queue.
fn queue_shows(view: &View) -> Result<bool, Missing> {
    let base = view.sender.min_rtt_s()?;
    is_queue(view, view.sender.rtt_s()? - base)
}

/// Whether a wait of this many seconds is longer than waits without a queue.
fn is_queue(view: &View, waits_s: f64) -> Result<bool, Missing> {
    let bytes = waits_s * view.goodput()? / 8.0;
    let base = view.sender.min_rtt_s()?;
    let least = if base < NEARBY_S { UNQUEUED_NEARBY_S } else { UNQUEUED_S };
    Ok(bytes > UNQUEUED_BYTES && waits_s > least && waits_s > UNQUEUED_SHARE * base)
}

/// Whether packets waited on the path when slow start met the limit.
fn queue_showed(view: &View) -> Result<bool, Missing> {
    let waited = view.sender.rtt_at_first_loss_s()? - view.sender.min_rtt_s()?;
    is_queue(view, waited / STARTUP_UNQUEUED_RATIO)
}

/// What a limit without a queue leaves behind.
struct Marks {
    losses: Option<Losses>,
    startup: LossStep,
    elastic: bool,
    overshot: bool,
    overshot_by_far: bool,
    regular: bool,
    level: bool,
    even: bool,
    clustered: bool,
    severe: bool,
    ended: bool,
    metered: Option<Bursts>,
}

impl Marks {
    fn of(view: &View) -> Result<Self, Missing> {
        let losses = view.sender.losses().ok();
        let base = view.sender.min_rtt_s()?;
        let until_s = STARTUP_S.max(STARTUP_ROUND_TRIPS * base);
        let (startup, since) = view.sender.losses_until(until_s)?;
        let overshot = view.needs_start().is_ok()
            && overshoots(&startup, &since)
            && same_level(view, until_s)?
            && !queue_showed(view)?;
        let backs_off = view.backs_off_at_loss()?;
        let slope = losses.as_ref().and_then(Losses::elasticity);
        // What is lost follows what is sent too closely for chance, though a little less passes at times.
        let follows = slope.is_some_and(|(_, r)| r >= MIN_CLOSE_CORRELATION);
        let still = if follows { 2.0 * MAX_PLATEAU_SPREAD_RATIO } else { MAX_PLATEAU_SPREAD_RATIO };
        let steady = losses.as_ref().is_some_and(|l| l.passed_spread() < still);
        let share = losses.as_ref().map_or(0.0, |losses| losses.share);
        let clustering = losses.as_ref().map_or(0.0, Losses::clustering);
        Ok(Self {
            elastic: losses
                .as_ref()
                .is_some_and(|l| l.passed_spread() < 2.0 * MAX_PLATEAU_SPREAD_RATIO)
                && share >= MIN_HEAVY_LOSS_SHARE
                && clustering >= MIN_CLUSTERED_DISPERSION
                && slope.is_some_and(|(slope, r)| {
                    slope >= MIN_LOST_PER_EXTRA_SENT && r >= MIN_LOSS_CORRELATION
                }),
            clustered: steady
                && clustering >= MIN_CLUSTERED_DISPERSION
                && slope.is_some_and(|(slope, r)| {
                    slope >= MIN_EXCESS_LOSS_RATIO * share && r >= MIN_EXCESS_LOSS_CORRELATION
                }),
            severe: SEVERE_SHARES_AND_DISPERSIONS
                .iter()
                .any(|(least, apart)| share >= *least && clustering >= *apart),
            regular: backs_off
                && share >= MIN_LOSS_SHARE
                && losses.as_ref().is_some_and(|losses| losses.events() >= MIN_LOSS_STEPS)
                && is_regular(view, MAX_CWND_DECILE_RATIO)?,
            level: backs_off
                && share >= MIN_LOSS_SHARE
                && clustering >= MIN_CLUSTERED_DISPERSION
                && losses
                    .as_ref()
                    .is_some_and(|losses| losses.events() >= MIN_CLUSTERED_LOSS_STEPS)
                && is_regular(view, MAX_CLUSTERED_CWND_DECILE_RATIO)?,
            even: losses.as_ref().is_some_and(|l| l.lost() >= MIN_EVEN_LOST_PACKETS)
                && clustering < MAX_EVEN_DISPERSION,
            overshot_by_far: overshot
                && (startup.share() >= MIN_CLEAR_OVERSHOOT_SHARE || by_far(&startup, &since)),
            overshot,
            ended: since.lost == 0.0,
            metered: metered(view),
            startup,
            losses,
        })
    }

    /// One mark alone may be an accident, but for those that nothing else leaves.
    fn confidence(&self) -> Option<Confidence> {
        let marks = [self.overshot, self.regular];
        match marks.into_iter().filter(|mark| *mark).count() {
            // What is lost once and never again may be the end of a queue that has drained since.
            _ if self.ended => self.overshot.then_some(Confidence::Possible),
            _ if self.elastic || self.overshot_by_far || self.severe => Some(Confidence::Likely),
            _ if self.clustered || self.level || self.even => Some(Confidence::Likely),
            _ if self.metered.is_some() => Some(Confidence::Likely),
            2.. => Some(Confidence::Likely),
            _ if self.overshot => Some(Confidence::Possible),
            _ => None,
        }
    }
}

/// The bursts that time-outs keep apart, if as much passes in each: what a bucket has saved up meanwhile.
/// What chance lets through until the next time-out is as much as it happens to be.
fn metered(view: &View) -> Option<Bursts> {
    let bursts = view.receiver.bursts().or_else(|_| view.sender.bursts()).ok()?;
    let timeouts = view.sender.timeouts_in_all().ok()?;
    let alike = bursts.spread < MAX_METERED_BURST_SPREAD_RATIO
        && timeouts >= MIN_TIMEOUTS_PER_BURST * bursts.count as f64;
    alike.then_some(bursts)
}

/// Whether slow start lost what chance does not take.
fn overshoots(startup: &LossStep, since: &LossStep) -> bool {
    let much = startup.share() >= MIN_OVERSHOOT_SHARE
        && startup.lost >= MIN_OVERSHOOT_PACKETS
        && startup.share() >= MIN_OVERSHOOT_LOSS_RATIO * since.share();
    much || by_far(startup, since)
}

fn by_far(startup: &LossStep, since: &LossStep) -> bool {
    startup.share() >= MIN_FAINT_OVERSHOOT_SHARE
        && startup.lost >= MIN_FAINT_OVERSHOOT_PACKETS
        && startup.share() >= MIN_FAINT_OVERSHOOT_LOSS_RATIO * since.share()
}

/// Whether the congestion window meets about the same level all the time.
fn is_regular(view: &View, most: f64) -> Result<bool, Missing> {
    let (low, middle, high) = view.sender.congestion_window_deciles()?;
    Ok(middle >= MIN_CWND_SEGMENTS && high <= most * low)
}

/// Whether the congestion window still is where slow start ended.
fn same_level(view: &View, until_s: f64) -> Result<bool, Missing> {
    let (_, middle, _) = view.sender.congestion_window_deciles()?;
    let ended = view.sender.slow_start_threshold_at(until_s)?;
    Ok(ended.is_none_or(|segments| middle >= MIN_SAME_LEVEL_CWND_RATIO * segments))
}

fn draft(view: &View, marks: &Marks, confidence: Confidence) -> Result<Draft, Missing> {
    let (side, place, goodput) = (&view.sender, view.sender.place(), view.goodput()?);
    let stands =
        view.receiver.plateau().ok().filter(|plateau| plateau.spread < MAX_PLATEAU_SPREAD_RATIO);
    let summary = match &stands {
        Some(plateau) if marks.elastic || marks.clustered => {
            format!("a policer on the path, at {}", rate(plateau.rate))
        }
        _ => "a policer or a queue of a few packets on the path, which drops bursts".into(),
    };
    let share = side.retransmitted_share()?;
    let lost = format!("{} of the bytes were sent again (tcp_info bytes_retrans)", percent(share));
    let flat = format!(
        "no queue: round trips took {} under load, {} at best (tcp_info rtt, min_rtt)",
        time(side.rtt_s()?),
        time(side.min_rtt_s()?)
    );
    let mut draft = Draft::new(RULE.id, Place::Path, confidence, summary)
        .share(split(view)?.path_percent / 100.0)
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
    Ok(draft
        .predicted(next_after(view, &[RULE.id]))
        .changes(pacing_congestion_control(view))
        .advice(match marks.elastic || marks.clustered {
        true => format!(
            "pace below the policed rate: --rate {paced}; or have the path shape instead of police"
        ),
        false => {
            "give the path's policer a bucket of its rate × the round-trip time, or shape instead"
                .into()
        }
    }))
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

/// A congestion control that paces, if another is used.
pub(super) fn pacing_congestion_control(view: &View) -> Option<Change> {
    let (present, available) = (view.congestion().ok()?, view.sender.text(TCP_AVAILABLE).ok()?);
    let useful = present != "bbr" && available.split_whitespace().any(|name| name == "bbr");
    let why = "BBR paces, so its bursts fit a smaller bucket";
    useful.then(|| of_plan("socket.congestion", Some(present.into()), "bbr", why))
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
        .advice(format!("send no faster than the policed rate: --rate {}", rate_argument(stands)))
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
            tcp.snd_ssthresh_segments = Some(20);
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
        quiet(&RULE, bursts(0.9, 20));
        quiet(&RULE, bursts(0.0, 5));
    }

    #[test]
    fn a_queue_is_not_a_policer() {
        quiet(&RULE, bbr().tcp(|tcp, _| tcp.rtt_us = Some(24_000)));
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
