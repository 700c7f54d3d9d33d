//! # What it means
//! Packets are lost on the path, not at either host, and the sender slows down for each.
//!
//! # Why it limits
//! A congestion control that reads loss as congestion backs off each time. Its rate falls with the
//! square root of the loss and with the round-trip time.
//!
//! # How it is seen
//! TCP: the path holds the sender, retransmissions are not needless, neither host dropped as many
//! packets, and no queue stretches the round-trip time, unless chance explains the losses clearly
//! better than a full queue. In addition the goodput is what the model of loss gives, or losses at a
//! changing rate keep cutting the window, or at least 0.5 % of the bytes had to be sent again. UDP:
//! at least 0.5 % of the datagrams never arrived, or 0.01 % of those sent at a requested rate, and
//! neither host dropped them.
//!
//! # What to try
//! Find where packets are lost: cable, radio, a policer, a queue too short. BBR does not read each
//! loss as congestion.
//!
//! # When it is wrong
//! A policer or a short queue on the path loses packets for a reason: the rate is what they allow.
//! The finding is likely only if chance shows: it explains the losses clearly better than any limit
//! (the loss model in the record), or losses cut the window at sizes that no limit explains. That a
//! model of loss gives the goodput, or that nothing else was found, makes it only possible. BBR does
//! not back off, so under BBR only the loss model can show chance, and only of packets that are lost
//! alone: a full queue's losses come in runs, too. If the path is full without it, the finding is not
//! made, unless of several flows together as large a share is lost each time, whatever is sent. Under BBR, loss below a few percent limits little. From 0.1 % the
//! finding is possible if the send buffer would allow far more.
//!
//! # Source
//! Mathis, Semke, Mahdavi, Ott 1997; RFC 9438 section 5; RFC 2883 (needless retransmissions).

use goodput_model::{Confidence, Finding, LossModel, Missing, Place};

use crate::account::{HeldShare, held, path_share};
use crate::bounds::next_after;
use crate::change::to_bbr;
use crate::filled_buffer::losses_fill_the_buffer;
use crate::finding::{Draft, percent, rate, time};
use crate::known_rate::path_is_full;
use crate::loss::{chance_outdoes_a_rate, is_by_chance, loss, may_be_a_limit};
use crate::lost_elsewhere::{
    MIN_OTHERWISE_EXPLAINED_SHARE, datagrams_lost_elsewhere, lost_elsewhere,
};
use crate::models::{kept_at_loss, rate_at_loss};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MIN_FULL_QUEUE_RTT_RATIO, MIN_HEAVY_LOSS_SHARE, MIN_LIMITING_TIME_SHARE};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "path-loss",
    title: "Packets get lost on the path",
    refines: parts::LOSSES,
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "loss_limited_percent",
    witness_words: ("goodput as a share of what the losses allow", " %"),
    source: include_str!("path_loss.rs"),
};

/// Goodput over the model's rate if loss explains it. Time-outs make it lower than the model.
const MODEL_EXPLAINS_RATIOS: std::ops::Range<f64> = 0.5..2.0;
/// The same with time-outs.
const MODEL_EXPLAINS_RATIOS_WITH_TIMEOUTS: std::ops::Range<f64> = 0.1..2.0;
/// Fewer retransmissions show no rate of loss.
const MIN_RETRANSMISSIONS: f64 = 3.0;
/// How probable an accident may be that is not taken for one.
const MAX_ACCIDENT: f64 = 0.05;
/// Share of what was sent by the last loss, up to which losses have ended.
const MAX_SENT_SHARE_AT_END: f64 = 0.5;
/// Fewer cuts of the window do not show what cuts it.
const MIN_WINDOW_CUTS: usize = 2;
/// Smallest over largest size at which chance cut the window; a full queue does at the same each time.
const MAX_UNEVEN_CUT_RATIO: f64 = 0.75;
/// Window over the largest one that was cut, from which it has outgrown it.
const MIN_OUTGROWN_WINDOW_RATIO: f64 = 1.15;

/// Whether more has been sent since the last loss than before, which is no chance: what was lost before is what the start has
/// cost. Many losses make any pause improbable, but a short one ends nothing.
fn has_ended(view: &View) -> Result<bool, Missing> {
    if view.sender.retransmitted_segments_in_all()? < MIN_RETRANSMISSIONS {
        return Ok(false);
    }
    let episodes = view.sender.episodes()?;
    let sent_share = episodes.sent_share_at_end()?;
    // Chance cuts a window as often before as since, for each segment that is sent.
    let by_chance = sent_share.powf(episodes.cuts_segments()?.len() as f64);
    Ok(sent_share <= MAX_SENT_SHARE_AT_END && by_chance < MAX_ACCIDENT)
}

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    if !view.is_tcp() {
        return datagrams(view);
    }
    let episodes = view.sender.episodes()?;
    let (lasting, share) = (episodes.since()?.lost, episodes.lost_share_since()?);
    let held = held_by_losses(view)?;
    if lost_elsewhere(view)? || held.is_nothing() || queue_is_full(view) || has_ended(view)? {
        return Ok(None);
    }
    if !held.is_most() {
        let Some(confidence) = contributes(view, lasting)? else { return Ok(None) };
        return stream(view, share, confidence)?.found();
    }
    if lasting < MIN_RETRANSMISSIONS {
        let all = view.sender.retransmitted_segments_in_all()?;
        let by_chance =
            all >= MIN_RETRANSMISSIONS && view.backs_off_at_loss()? && cut_by_chance(view)?;
        let seldom = if by_chance { Some(Confidence::Likely) } else { cut_early(view)? };
        let Some(confidence) = seldom else { return Ok(None) };
        let draft = stream(view, view.sender.retransmitted_share_in_all()?, confidence)?;
        return draft.changes(to_bbr(view, "BBR does not read each loss as congestion")).found();
    }
    let Some(confidence) = confidence(view, share)? else { return Ok(None) };
    stream(view, share, confidence)?
        .changes(to_bbr(view, "BBR does not read each loss as congestion"))
        .found()
}

/// How sure it is that losses by chance are what holds the flows, which lost this share of what they sent; `None` if they are
/// not. Only what chance leaves makes it likely: the goodput is a model's at any losses, whatever drops, and a rival that was not
/// found may still be there.
fn confidence(view: &View, share: f64) -> Result<Option<Confidence>, Missing> {
    let (fits, backs_off) = (model_explains(view)?, view.backs_off_at_loss());
    if backs_off == Ok(true) && fits && backlog_may_have(view) {
        return Ok(Some(Confidence::Possible));
    }
    let is_model_s = fits && backs_off != Ok(false) && !queue_shows(view);
    let is_chance = match backs_off {
        Ok(true) if chance_explains(view) => true,
        Ok(true) if is_model_s => cut_by_chance(view).unwrap_or(false),
        Ok(true) => cut_by_chance(view)?,
        // What chance takes leaves that much less of a path that is full.
        Ok(false) => share >= MIN_HEAVY_LOSS_SHARE && chance_explains(view),
        Err(_) => false,
    };
    if is_chance {
        return Ok(Some(Confidence::Likely));
    }
    let costs = match share < MIN_HEAVY_LOSS_SHARE {
        _ if is_model_s => true,
        // Little loss beside a rate that stands still is what overshooting it once has cost.
        true => losses_fill_the_buffer(view)? && !queue_shows(view) && !path_is_full(view),
        // A congestion control that does not back off loses nothing by what a rate drops.
        false => backs_off != Ok(false) || !path_is_full(view) || rate_is_no_reason(view),
    };
    Ok(costs.then_some(Confidence::Possible))
}

/// How sure it is that losses cost something, if something else holds the flows most of the time; `None` if nothing shows
/// it.
fn contributes(view: &View, segments: f64) -> Result<Option<Confidence>, Missing> {
    if segments < MIN_RETRANSMISSIONS {
        return Ok(None);
    }
    if chance_explains(view) {
        return Ok(Some(Confidence::Likely));
    }
    // The model is of a congestion control that backs off.
    let may = view.backs_off_at_loss() != Ok(false) && !queue_shows(view);
    Ok((may && model_explains(view)?).then_some(Confidence::Possible))
}

/// Whether chance explains the losses clearly better than any limit, so that a queue which stands at times did not drop them.
fn chance_explains(view: &View) -> bool {
    loss(view).is_ok_and(is_by_chance)
}

/// Whether each segment's own chance explains them. Runs show no chance unless losses cut the windows: a full queue that nobody
/// leaves room loses several at once, too, at any size of a window.
fn each_is_lost_alone(view: &View) -> bool {
    loss(view).is_ok_and(|loss| loss.explanation.value() == Some(&LossModel::Random))
}

/// Share of the time that losses held. Under a congestion control that does not back off they take no more time than their
/// share of what was sent, but may fill the send buffer; then it is the path's share.
fn held_by_losses(view: &View) -> Result<HeldShare, Missing> {
    match view.backs_off_at_loss() {
        Ok(false) => held(view, parts::PATH),
        _ => held(view, RULE.refines),
    }
}

fn queue_shows(view: &View) -> bool {
    view.sender.rtt_inflation().is_ok_and(|ratio| ratio >= 2.0 * MIN_FULL_QUEUE_RTT_RATIO - 1.0)
        || view.window_fills_a_queue().unwrap_or(false)
}

/// Whether the lost packets were dropped at a full queue or by a rate, by what explains them; if nothing does clearly, because
/// round trips take half as long again as the smallest. On a short path late scheduling does the same.
fn queue_is_full(view: &View) -> bool {
    if rate_is_no_reason(view) {
        return false;
    }
    match loss(view).ok().and_then(|loss| loss.explanation.value()) {
        Some(LossModel::Queue | LossModel::Rate) if view.backs_off_at_loss() == Ok(false) => true,
        Some(LossModel::Random | LossModel::Runs) => false,
        _ => queue_shows(view) && view.sender.waits_beyond_hosts(),
    }
}

/// Whether the rate at which the path is full, or the queue before it, does not drop the packets: as large a share of all is lost
/// each time, of flows that do not back off. They keep a queue full whatever is lost.
fn rate_is_no_reason(view: &View) -> bool {
    view.backs_off_at_loss() == Ok(false) && loss(view).is_ok_and(chance_outdoes_a_rate)
}

/// Whether the receiving host dropped as much in its backlog, of whatever traffic.
fn backlog_may_have(view: &View) -> bool {
    let again = view.sender.retransmitted_segments_in_all().unwrap_or(0.0);
    view.arrival_drops()
        .is_ok_and(|drops| drops > 0.0 && drops >= MIN_OTHERWISE_EXPLAINED_SHARE * again)
}

fn model_explains(view: &View) -> Result<bool, Missing> {
    let Some(modelled) = rate_at_loss(view)? else { return Ok(false) };
    let timeouts = view.sender.timeouts().unwrap_or(0.0);
    let range =
        if timeouts > 0.0 { MODEL_EXPLAINS_RATIOS_WITH_TIMEOUTS } else { MODEL_EXPLAINS_RATIOS };
    Ok(range.contains(&(view.goodput()? / modelled)))
}

/// Whether losses keep the congestion window down, whatever a model of the steady state says: it was cut,
/// is full again, no queue stands, and it was cut at different sizes. After
/// slow start overshot, a run of seconds never comes to the model's rate.
fn cut_by_chance(view: &View) -> Result<bool, Missing> {
    if view.sender.queue_stands()? || path_is_full(view) {
        return Ok(false);
    }
    let cuts = view.sender.episodes()?.cuts_segments()?;
    let cuts = cuts.get(1..).unwrap_or_default();
    let least = cuts.iter().copied().fold(f64::INFINITY, f64::min);
    let most = cuts.iter().copied().fold(0.0, f64::max);
    let at_any_size = cuts.len() >= MIN_WINDOW_CUTS && least <= MAX_UNEVEN_CUT_RATIO * most;
    Ok(at_any_size && view.sender.cut_window_share()? >= MIN_LIMITING_TIME_SHARE)
}

/// Few losses, too few to know their share, that keep the window down: it has outgrown each size at
/// which it was cut, so the path carries more than it did when it lost something. Once that may be an
/// accident.
fn cut_early(view: &View) -> Result<Option<Confidence>, Missing> {
    let Some(kept) = kept_at_loss(view) else { return Ok(None) };
    let lost = view.sender.retransmitted_segments_in_all()?;
    let cuts = view.sender.episodes()?.cuts_segments()?;
    let largest = cuts.iter().copied().fold(0.0, f64::max) / kept;
    let window = view.sender.congestion_window_bytes()? / view.sender.mss_bytes()?;
    let grown = !cuts.is_empty() && window >= MIN_OUTGROWN_WINDOW_RATIO * largest;
    let low = grown && lost >= 1.0 && view.sender.cut_window_share()? >= MIN_LIMITING_TIME_SHARE;
    if !low || !view.backs_off_at_loss()? || view.sender.queue_stands()? || path_is_full(view) {
        return Ok(None);
    }
    let again = cuts.len() >= MIN_WINDOW_CUTS && lost >= MIN_WINDOW_CUTS as f64;
    Ok(Some(if again { Confidence::Likely } else { Confidence::Possible }))
}

fn stream(view: &View, share: f64, confidence: Confidence) -> Result<Draft, Missing> {
    let (side, place) = (&view.sender, view.sender.place());
    let lost = format!("{} of the bytes were sent again (tcp_info bytes_retrans)", percent(share));
    let modelled = rate_at_loss(view)?.ok_or_else(|| Missing::because("nothing was lost recently"));
    let rtt = time(side.rtt_s()?);
    // A short queue or a policer drops packets for a reason, and may cost the same. Windows that no loss cuts hardly vary, so
    // that they show no limit.
    let hides = view.backs_off_at_loss() == Ok(false) && !each_is_lost_alone(view);
    let confidence = match hides || loss(view).is_ok_and(may_be_a_limit) {
        true => confidence.min(Confidence::Possible),
        false => confidence,
    };
    Ok(Draft::new(RULE.id, Place::Path, confidence, "loss on the path")
        .share(path_share(view)?)
        .saw(place, "retransmitted_percent", share * 100.0, lost)
        .saw_if(place, "rate_at_loss_bits_per_s", modelled, |modelled| {
            let gives = rate(modelled);
            format!("at this loss and {rtt}, loss-based congestion control reaches about {gives} (model)")
        })
        .saw_if(place, "cut_window_percent", side.cut_window_share().map(|share| share * 100.0), |p| {
            format!("the congestion window was full {} of the time after it was cut", percent(p / 100.0))
        })
        .saw_if(place, "rtt_inflation", side.rtt_inflation(), |ratio| {
            format!("the round-trip time under load is {ratio:.2} × the smallest (tcp_info rtt, min_rtt)")
        })
        .saw_if(place, "qdisc.drops", side.queue_drops(), |drops| {
            format!("the sender's own queue dropped {drops:.0} packets (tc -s qdisc)")
        })
        .saw_if(view.receiver.place(), "link.rx_dropped", view.arrival_drops(), |drops| {
            format!("the receiving host dropped {drops:.0} packets (device and softnet)")
        })
        .predicted(next_after(view, &[RULE.id]))
        .advice("find where packets are lost: cable, radio, a policer, a queue too short"))
}

fn datagrams(view: &View) -> Result<Option<Finding>, Missing> {
    let share = match view.receiver.lost_share() {
        Ok(share) => share,
        Err(why) => return by_account(view, why),
    };
    let host = view.datagrams_dropped_at_hosts();
    if share < view.loss_that_matters() || datagrams_lost_elsewhere(view)? {
        return Ok(None);
    }
    let confidence = if path_is_full(view) { Confidence::Possible } else { Confidence::Likely };
    let place = view.receiver.place();
    let text = format!("{} of the datagrams never arrived", percent(share));
    Draft::new(RULE.id, Place::Path, confidence, "loss on the path")
        .share(share)
        .saw(place, "lost_percent", share * 100.0, text)
        .saw(place, "dropped_at_hosts", host, format!("{host:.0} datagrams were dropped at a host"))
        .predicted(next_after(view, &[RULE.id]))
        .advice("lower --rate until nothing is lost: that is the path's rate")
        .found()
}

/// If the receiver does not observe but reported afterwards what it missed: on the path or at its host.
fn by_account(view: &View, why: Missing) -> Result<Option<Finding>, Missing> {
    let share = view.reported_loss_share().map_err(|_| why)?;
    let lost = share * view.sender.datagrams_sent()?;
    let here =
        view.sender.queue_drops().unwrap_or(0.0) + view.sender.datagrams_refused().unwrap_or(0.0);
    if !(MIN_HEAVY_LOSS_SHARE..=1.0).contains(&share)
        || here >= MIN_OTHERWISE_EXPLAINED_SHARE * lost
    {
        return Ok(None);
    }
    let text =
        format!("the receiver reports that {} of the datagrams never arrived", percent(share));
    let summary = "loss on the path or at the receiving host";
    Draft::new(RULE.id, Place::Path, Confidence::Likely, summary)
        .share(share)
        .saw(view.receiver.place(), "lost_percent", share * 100.0, text)
        .saw(
            view.sender.place(),
            "dropped_at_sender",
            here,
            format!("{here:.0} datagrams were dropped at this host"),
        )
        .predicted(next_after(view, &[RULE.id]))
        .advice("lower --rate until nothing is lost: that is the rate of path and host together")
        .command(
            view.receiver.place(),
            "nstat UdpRcvbufErrors",
            "whether the host drops datagrams; run it before and after",
        )
        .found()
}

/// How near the goodput is to the rate that loss allows, percent: falls when loss goes, and when
/// the sender no longer backs off for it. With UDP the datagrams lost, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    if !view.is_tcp() {
        return Ok(view.receiver.lost_share()? * 100.0);
    }
    let goodput = view.goodput()?;
    let modelled = rate_at_loss(view)?;
    Ok(modelled.map_or(0.0, |rate| (goodput / rate).min(rate / goodput) * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};
    use goodput_model::{BitRate, Plan, TcpInfo};
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn loss_that_has_ended_is_what_the_start_has_cost() {
        let until = |end: u64| {
            Case::path_loss().tcp(move |tcp, number| {
                let all = tcp.total_retrans_segments.unwrap_or(0);
                let kept = all * number.min(end) / number.max(1);
                tcp.total_retrans_segments = Some(kept);
            })
        };
        quiet(&RULE, until(12));
        fires(&RULE, until(40));
    }

    #[test]
    fn a_pause_at_the_end_does_not_end_losses_that_came_all_the_time() {
        // Two of 100 in each tenth of a second, each of which cuts the window.
        let until = |end: u64| {
            Case::path_loss().tcp(move |tcp, number| {
                let cuts = number.min(end);
                let again = 2 * cuts;
                (tcp.total_retrans_segments, tcp.retrans_bytes) = (Some(again), Some(again * 1448));
                (tcp.data_segs_out, tcp.sent_bytes) =
                    (Some(100 * number + again), Some((100 * number + again) * 1448));
                let cut = 20 + cuts * 37 % 30;
                tcp.snd_ssthresh_segments =
                    Some(if number == 0 { TcpInfo::INFINITE_SSTHRESH } else { cut });
            })
        };
        fires(&RULE, until(36));
        quiet(&RULE, until(10));
    }

    /// Round trips that say nothing of their variation leave no loss model, so that nothing shows chance.
    #[test]
    fn a_model_that_explains_the_rate_makes_it_possible_and_offers_bbr() {
        let case = Case::path_loss();
        assert!(!chance_explains(&View::new(&case.evidence())));
        let finding = fires(&RULE, case);
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Possible));
        assert_eq!(finding.changes[0].as_argument(), "socket.congestion=cubic,bbr");
    }

    #[test]
    fn stays_quiet_where_loss_does_not_explain_the_rate() {
        quiet(&RULE, Case::path_loss().retransmitted(1e-5));
        quiet(&RULE, Case::path_loss().tcp(|tcp, _| tcp.rtt_us = Some(60_000)));
    }

    #[test]
    fn losses_at_any_rate_keep_the_window_down_before_the_model_holds() {
        // 0.02 % at 80 ms: 100 Mbit/s in the first seconds, as measured; the model gives 13.
        let case = |thresholds: [u64; 3]| {
            let case = Case::path_loss().goodput(100e6).wobble(0.3);
            case.without_links().tcp(move |tcp, number| {
                tcp.rtt_us = Some(80_300);
                tcp.min_rtt_us = Some(80_000);
                let step = number as usize / 14;
                tcp.snd_ssthresh_segments =
                    Some(if number == 0 { TcpInfo::INFINITE_SSTHRESH } else { thresholds[step] });
                let again = if number == 0 { 0 } else { 3 * (step as u64 + 1) };
                (tcp.total_retrans_segments, tcp.retrans_bytes) = (Some(again), Some(again * 1448));
                tcp.snd_cwnd_segments = Some(thresholds[step] + 20);
                tcp.unacked_segments = tcp.snd_cwnd_segments;
            })
        };
        assert_eq!(fires(&RULE, case([1784, 1117, 411])).confidence, Confidence::Likely);
        quiet(&RULE, case([1784, 960, 950]));
    }

    #[test]
    fn losses_in_slow_start_count_where_the_window_outgrew_them() {
        // 0.1 % at 80 ms: two lost of the first 100 segments, 3 Mbit/s for seconds, as measured.
        let case = |first: u64, window| {
            let case = Case::path_loss().goodput(3e6).retransmitted(0.0).without_links();
            case.tcp(move |tcp, number| {
                tcp.total_retrans_segments = Some(u64::from(number > 2) + u64::from(number > 4));
                tcp.retrans_bytes = tcp.total_retrans_segments.map(|n| n * 1448);
                tcp.ca_state = Some(0);
                tcp.snd_ssthresh_segments = Some(match number {
                    0..3 => TcpInfo::INFINITE_SSTHRESH,
                    _ if number < first => 7,
                    _ => 6,
                });
                tcp.snd_cwnd_segments = Some(window);
                tcp.unacked_segments = Some(window);
            })
        };
        assert_eq!(fires(&RULE, case(5, 28)).confidence, Confidence::Likely);
        assert_eq!(fires(&RULE, case(0, 28)).confidence, Confidence::Possible);
        quiet(&RULE, case(5, 9));
    }

    #[test]
    fn what_a_host_dropped_the_path_did_not() {
        quiet(&RULE, Case::path_loss().grows(Near, "qdisc.drops", 5000));
        quiet(&RULE, Case::path_loss().grows(Far, "link.rx_dropped", 5000));
        quiet(&RULE, Case::path_loss().tcp(|tcp, _| tcp.dsack_dups = tcp.total_retrans_segments));
    }

    #[test]
    fn drops_of_the_whole_hosts_backlog_only_make_it_possible() {
        // Another program's drops, on a machine that lost 3 % of the packets on the path.
        let case = Case::path_loss().retransmitted(0.03).goodput(5e6);
        let finding = fires(&RULE, case.grows(Far, "softnet.dropped", 5000));
        assert_eq!(finding.confidence, Confidence::Possible);
    }

    #[test]
    fn with_bbr_only_heavy_loss_matters() {
        // The window never varies, so a limit of what is in flight would not show.
        let finding = fires(&RULE, Case::path_loss().congestion("bbr").retransmitted(0.02));
        assert_eq!(finding.confidence, Confidence::Possible);
        assert!(finding.changes.is_empty());
        quiet(&RULE, Case::path_loss().congestion("bbr").retransmitted(0.0005));
    }

    #[test]
    fn loss_that_fills_the_send_buffer_is_possible_with_bbr() {
        // 0.1 % at 20 ms: 804 Mbit/s, as measured; 4 MiB of buffer would allow 1.7 Gbit/s.
        let case = Case::path_loss()
            .congestion("bbr")
            .without_links()
            .goodput(804e6)
            .retransmitted(0.0011);
        assert_eq!(fires(&RULE, case).confidence, Confidence::Possible);
    }

    #[test]
    fn what_a_full_queue_drops_is_no_loss() {
        // BBR through a router's 100 Mbit/s and 200 kB of queue, as measured.
        quiet(&RULE, Case::path_rate().retransmitted(0.03));
        let short = |tcp: &mut goodput_model::TcpInfo, _| tcp.rtt_us = Some(21_000);
        quiet(&RULE, Case::path_rate().retransmitted(0.03).tcp(short));
    }

    /// BBR fills a path, in front of whose queue packets are lost with a chance that each step draws.
    fn full_path(chance: impl Fn(&mut Xoshiro256PlusPlus) -> f64) -> Case {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut lost = vec![0];
        for _ in 0..100 {
            let chance = chance(&mut rng);
            let more = (0..860).filter(|_| rng.random_bool(chance)).count() as u64;
            lost.push(lost[lost.len() - 1] + more);
        }
        Case::path_rate().tcp(move |tcp, number| {
            let (again, arrived) = (lost[number as usize], 820 * number);
            let flight = [200, 240, 260, 320, 280][number as usize % 5];
            let sent = arrived + again + flight;
            (tcp.data_segs_out, tcp.sent_bytes) = (Some(sent), Some(sent * 1448));
            (tcp.total_retrans_segments, tcp.retrans_bytes) = (Some(again), Some(again * 1448));
            (tcp.delivered_segments, tcp.acked_bytes) = (Some(arrived), Some(arrived * 1448));
            (tcp.unacked_segments, tcp.snd_cwnd_segments) = (Some(flight), Some(500));
            tcp.ca_state = Some(u64::from(again > 0) * 3);
            tcp.rttvar_us = Some(500);
        })
    }

    #[test]
    fn what_chance_takes_of_a_full_path_is_a_loss() {
        assert_eq!(fires(&RULE, full_path(|_| 0.05)).confidence, Confidence::Likely);
    }

    /// As much, but most of it in a few steps: what a queue does that BBR keeps full.
    #[test]
    fn runs_of_losses_show_no_chance_if_nothing_cuts_the_window() {
        let finding = fires(&RULE, full_path(|rng| if rng.random_bool(0.3) { 0.12 } else { 0.02 }));
        assert_eq!(finding.confidence, Confidence::Possible);
    }

    #[test]
    fn what_overshooting_the_rate_once_cost_is_no_loss() {
        // BBR finds 100 Mbit/s with a queue of 500 kB: 0.33 % sent again, all of it at the start;
        // the round trip is hardly longer afterwards, as measured.
        let case = Case::path_rate().without_links().congestion("bbr").retransmitted(0.0033);
        let case = case.tcp(|tcp, _| tcp.rtt_us = Some(23_100));
        quiet(&RULE, case);
    }

    #[test]
    fn the_witness_falls_when_loss_goes_and_when_it_is_ignored() {
        let read = |case: Case| (RULE.witness)(&View::new(&case.evidence())).unwrap();
        let limited = read(Case::path_loss());
        assert!(limited > 60.0, "{limited}");
        assert!(read(Case::path_loss().congestion("bbr").goodput(500e6)) < 10.0);
        assert!(read(Case::path_loss().goodput(500e6).retransmitted(1e-7)) < 60.0);
        assert_eq!(read(Case::healthy()), 0.0);
    }

    #[test]
    fn datagrams_are_counted() {
        assert_eq!(fires(&RULE, Case::healthy_udp().lost_by_chance(0.05)).rule, "path-loss");
        quiet(&RULE, Case::healthy_udp().lost(0.001));
        // A pace that was asked for leaves nothing but the loss to answer for.
        let paced = || {
            let plan = |plan: &mut Plan| plan.rate_bits_per_s = Some(BitRate(1e8));
            Case::healthy_udp().plan(plan).lost(0.001)
        };
        fires(&RULE, paced());
        quiet(&RULE, paced().grows(Near, "link.tx_dropped", 100_000));
    }

    #[test]
    fn what_the_senders_own_firewall_dropped_the_path_did_not() {
        quiet(&RULE, Case::healthy_udp().lost_by_chance(0.3).refused(0.3));
        fires(&RULE, Case::healthy_udp().lost_by_chance(0.3).refused(0.01));
        quiet(&RULE, Case::healthy_udp().without_far().reported_loss(0.05).refused(0.05));
    }

    #[test]
    fn a_receiver_that_only_reports_afterwards_may_have_lost_them_itself() {
        let lossy = |share| Case::healthy_udp().without_far().reported_loss(share);
        let finding = fires(&RULE, lossy(0.05));
        assert!(finding.summary.contains("receiving host"), "{}", finding.summary);
        quiet(&RULE, lossy(0.001));
        cannot_tell(&RULE, Case::healthy_udp().without_far());
    }

    #[test]
    fn cannot_tell_without_counts() {
        cannot_tell(&RULE, Case::path_loss().tcp(|tcp, _| tcp.retrans_bytes = None));
        cannot_tell(&RULE, Case::healthy_udp().without_far());
    }
}
