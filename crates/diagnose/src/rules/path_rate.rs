//! # What it means
//! Something between the two hosts carries this rate and no more: a slower link, a shaper, a
//! contract.
//!
//! # Why it limits
//! The slowest hop sets the pace. Packets that arrive faster wait in its queue or are dropped.
//!
//! # How it is seen
//! By elimination and by its traces. The path holds the sender; both ends have CPU left and nobody
//! throttles them; no window or buffer is full; and the rate is a plateau. In addition, a queue
//! stretches the round-trip time; on a long path that alone makes the finding possible. Or, with
//! BBR, which leaves no queue, BBR's own estimate of the rate agrees. A rate that is a round number
//! × a known share of headers shows which device counts. UDP: what arrives is steadier than random
//! loss would leave it, whatever was sent, and neither host dropped the rest. If the sender reports nothing, as a
//! server of files: payload comes steadily, this host waits for more with an open window, and the arriving data shows a
//! queue (tcp_info rcv_rtt), which makes it likely, or comes out of order, which makes it possible.
//!
//! # What to try
//! Nothing at the hosts. Ask for more, or use another path.
//!
//! # When it is wrong
//! A throttled or starved receiver also stretches the round-trip time; if the far end does not
//! report, the finding is only possible. Cross traffic leaves a changing rate, not a plateau.
//!
//! # Source
//! RFC 6349 section 4 (buffer delay); tc-tbf(8); IEEE 802.3 (framing); BBR: Cardwell, Cheng, Gunn,
//! Yeganeh, Jacobson 2016.

use goodput_model::{Confidence, Finding, Missing, Place};

use crate::arriving_rate::arriving_rate;
use crate::bounds::next_after;
use crate::elimination::{
    host_is_short, hosts_have_time, is_local, reader_keeps_up, reads_in_time, receiver_is_short,
};
use crate::finding::{Draft, percent, rate, rate_argument, time};
use crate::models::rate_at_loss;
use crate::parts;
use crate::round_rate::{RoundRate, round_rate};
use crate::rule::{Rule, Stage};
use crate::split::split;
use crate::thresholds::{
    LATE_S, MAX_PLATEAU_SPREAD_RATIO, MIN_FULL_QUEUE_RTT_RATIO, MIN_HEAVY_LOSS_SHARE,
    MIN_LIMITING_TIME_SHARE,
};
use crate::view::{Losses, Plateau, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "path-rate",
    title: "Something on the path limits the rate",
    stage: Stage::Path,
    refines: &[parts::PATH_RATE],
    explains: &["server-or-path"],
    check,
    witness,
    witness_name: "path_percent",
    source: include_str!("path_rate.rs"),
};

/// Loss beyond which a plateau without a queue or a round number is only possibly a rate.
const MIN_UNCERTAIN_LOSS_SHARE: f64 = 0.01;
/// Relative spread from which a standing queue alone shows no rate.
const MIN_SWINGING_SPREAD_RATIO: f64 = 0.15;
/// Round-trip time over the smallest one that no window which is still growing leaves.
const MIN_FULL_BUFFER_RTT_RATIO: f64 = 4.0;
/// A queue shorter than this may be nothing but scheduling at the hosts, seconds.
const MIN_QUEUE_S: f64 = 0.0005;
/// Share of the datagrams lost from which too many may have been sent, rather than some lost by
/// chance. Below it a round rate reports nothing: the rate that was sent is round too.
const MIN_OVERLOAD_LOSS_SHARE: f64 = 0.05;
/// The same without a round rate to show for it.
const MIN_CERTAIN_OVERLOAD_LOSS_SHARE: f64 = 0.2;
/// How near BBR's delivery rate must be to the goodput.
const DELIVERY_RATE_AGREES_RATIOS: std::ops::Range<f64> = 0.85..1.2;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    if !view.is_tcp() {
        return datagrams(view);
    }
    if view.is_sender_silent() {
        return seen_from_the_receiver(view);
    }
    let share = split(view)?.path_percent / 100.0;
    let plateau = plateau(view)?;
    if share < MIN_LIMITING_TIME_SHARE
        || plateau.spread >= MIN_SWINGING_SPREAD_RATIO && !is_drowned(view)?
        || is_local(view)?
        || host_is_short(view)
        || loss_explains(view)?
    {
        return Ok(None);
    }
    let mark = Mark::of(view, plateau)?;
    match mark.confidence(view) {
        Some(confidence) => draft(view, share, &mark, confidence)?.found(),
        None => Ok(None),
    }
}

/// If the rate stands by the receiver, or by the sender if the receiver does not report.
fn plateau(view: &View) -> Result<Plateau, Missing> {
    view.receiver.plateau().or_else(|_| view.sender.plateau())
}

/// Whether the queue is so long that the path is busy all the time, whatever swings: a reader gets nothing
/// while one packet is missing, and then all that came after it.
fn is_drowned(view: &View) -> Result<bool, Missing> {
    Ok(view.sender.rtt_inflation()? >= MIN_FULL_BUFFER_RTT_RATIO && view.sender.queue_stands()?)
}

/// Whether a loss-based congestion control without a queue on the path could go no faster.
fn loss_explains(view: &View) -> Result<bool, Missing> {
    let queue = view.sender.rtt_inflation()? >= MIN_FULL_QUEUE_RTT_RATIO || fills_a_queue(view);
    let backs_off = view.backs_off_at_loss().unwrap_or(true);
    let modelled = rate_at_loss(view).ok().flatten();
    Ok(!queue
        && backs_off
        && modelled.is_some_and(|rate| rate < 2.0 * view.goodput().unwrap_or(0.0)))
}

/// Whether a queue too short to stretch the round trip much is filled by what the window grows by.
fn fills_a_queue(view: &View) -> bool {
    view.window_fills_a_queue().unwrap_or(false)
}

/// The marks that a bottleneck leaves.
struct Mark {
    plateau: Plateau,
    inflation: f64,
    queue_s: f64,
    delivery: Result<f64, Missing>,
    round: Option<RoundRate>,
    loss: f64,
}

impl Mark {
    fn of(view: &View, plateau: Plateau) -> Result<Self, Missing> {
        Ok(Self {
            plateau,
            inflation: view.sender.rtt_inflation()?,
            queue_s: view.sender.rtt_s()? - view.sender.min_rtt_s()?,
            delivery: view.sender.delivery_rate(),
            round: round_rate(view, plateau.rate)?,
            loss: view.sender.retransmitted_share().unwrap_or(0.0),
        })
    }

    fn is_steady(&self) -> bool {
        self.plateau.spread < MAX_PLATEAU_SPREAD_RATIO
    }

    /// How sure it is, or `None` if no mark shows.
    fn confidence(&self, view: &View) -> Option<Confidence> {
        let long_queue = self.inflation >= MIN_FULL_QUEUE_RTT_RATIO || fills_a_queue(view);
        let crowded = view.sides().iter().any(|side| side.is_crowded());
        // Beside a rate that stands still, the lateness of one end is enough.
        let least = if crowded { LATE_S / 2.0 } else { MIN_QUEUE_S };
        let queue = long_queue && self.queue_s >= least;
        let goodput = view.goodput().ok()?;
        let agrees = self
            .delivery
            .as_ref()
            .is_ok_and(|rate| DELIVERY_RATE_AGREES_RATIOS.contains(&(rate / goodput)));
        let paced = !view.backs_off_at_loss().unwrap_or(true) && agrees;
        let lossy = self.loss > MIN_UNCERTAIN_LOSS_SHARE && !queue && self.round.is_none();
        // A reader that is kept from its CPU may be what stretches the round trip.
        let doubt = lossy || !reader_keeps_up(view) || reads_in_time(view);
        let long = view.sender.waits_beyond_hosts();
        let by_hosts = self.round.is_none() && !(queue && long) && !hosts_have_time(view);
        if by_hosts {
            return None;
        }
        if !self.is_steady() {
            return (queue && long).then_some(Confidence::Possible);
        }
        match (queue, paced, self.round.is_some()) {
            (false, false, _) => None,
            (true, _, _) | (_, true, true) if !doubt => Some(Confidence::Likely),
            _ => Some(Confidence::Possible),
        }
    }
}

fn draft(view: &View, share: f64, mark: &Mark, confidence: Confidence) -> Result<Draft, Missing> {
    let (side, place) = (&view.sender, view.sender.place());
    let Plateau { rate: stands, spread } = mark.plateau;
    let held = format!("the path held the sender {} of the time", percent(share));
    let steady = format!("goodput stood at {} ± {}", rate(stands), percent(spread));
    let (loaded, base) = (side.rtt_s()?, side.min_rtt_s()?);
    let queue = format!(
        "round trips took {} under load, {} at best (tcp_info rtt, min_rtt)",
        time(loaded),
        time(base)
    );
    let summary = format!("the path, at {}", rate(stands));
    let mut draft = Draft::new(RULE.id, Place::Path, confidence, summary)
        .share(share)
        .saw(place, RULE.witness_name, share * 100.0, held)
        .saw(view.receiver.place(), "goodput_spread_percent", spread * 100.0, steady)
        .saw(place, "rtt_inflation", mark.inflation, queue)
        .saw_if(place, "delivery_rate_bits_per_s", mark.delivery.clone(), |value| {
            format!("TCP saw {} delivered (tcp_info delivery_rate)", rate(value))
        })
        .saw_if(
            view.receiver.place(),
            "reader_blocked_share",
            view.receiver.blocked_share(),
            |waits| view.receiver.waits_text(waits),
        );
    if let Some(round) = &mark.round {
        draft = draft.saw(Place::Path, "round_rate_bits_per_s", round.rate, round.text(stands));
    }
    Ok(draft
        .predicted(next_after(view, &[RULE.id]))
        .advice("nothing at the hosts: ask for more, or use another path"))
}

/// If the sender reports nothing: the queue and the losses that the receiver sees.
fn seen_from_the_receiver(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(seen) = arriving_rate(view)? else { return Ok(None) };
    let (own, Plateau { rate: stands, spread }) = (view.receiver.place(), seen.plateau);
    let steady = format!("goodput stood at {} ± {}", rate(stands), percent(spread));
    let queue = format!(
        "round trips by the arriving data took {}, {} at best (tcp_info rcv_rtt, min_rtt)",
        time(seen.rtt_s),
        time(seen.base_s)
    );
    let summary = format!("the path, at {}", rate(stands));
    Draft::new(RULE.id, Place::Path, seen.confidence, summary)
        .saw(own, "goodput_spread_percent", spread * 100.0, steady)
        .saw(own, "rtt_inflation", seen.rtt_s / seen.base_s, queue)
        .saw(own, "out_of_order_percent", seen.early * 100.0, {
            format!("{} of the segments came out of order", percent(seen.early))
        })
        .saw_if(own, "reader_blocked_share", view.receiver.blocked_share(), |waits| {
            view.receiver.waits_text(waits)
        })
        .predicted(next_after(view, &[RULE.id]))
        .advice("nothing at this host: ask for more, or use another path")
        .found()
}

/// More came than went through: what is left is steady, whatever was sent, and the rest was dropped
/// by neither host.
fn datagrams(view: &View) -> Result<Option<Finding>, Missing> {
    let share = view.receiver.lost_share()?;
    let mut plateau = view.receiver.plateau()?;
    let losses = view.receiver.datagram_losses().ok();
    let by_limit = losses.as_ref().and_then(Losses::by_limit);
    if let Some(losses) =
        losses.filter(|_| by_limit == Some(true) && plateau.spread >= MAX_PLATEAU_SPREAD_RATIO)
    {
        // What the limit lets through; a sender that is slow at times offers less.
        plateau.rate = losses.passed_at_worst() * view.plan().chunk_bytes.0 as f64 * 8.0;
    }
    let at_hosts = view.datagrams_dropped_at_hosts() >= view.receiver.datagrams_lost()? / 2.0;
    let steady = plateau.spread < MAX_PLATEAU_SPREAD_RATIO || by_limit == Some(true);
    if share < MIN_HEAVY_LOSS_SHARE
        || at_hosts
        || !steady
        || is_local(view)?
        || receiver_is_short(view)
    {
        return Ok(None);
    }
    let round = round_rate(view, plateau.rate)?;
    let confidence = match (by_limit, share) {
        (Some(true), _) => Confidence::Likely,
        (Some(false), _) => return Ok(None),
        (None, share) if share < MIN_OVERLOAD_LOSS_SHARE => return Ok(None),
        (None, share) if share < MIN_CERTAIN_OVERLOAD_LOSS_SHARE && round.is_none() => {
            Confidence::Possible
        }
        (None, _) => Confidence::Likely,
    };
    let place = view.receiver.place();
    let summary = format!("the path, at {}", rate(plateau.rate));
    let text = format!("{} of the datagrams never arrived", percent(share));
    let steady =
        format!("what arrived stood at {} ± {}", rate(plateau.rate), percent(plateau.spread));
    let mut draft = Draft::new(RULE.id, Place::Path, confidence, summary)
        .saw(place, "lost_percent", share * 100.0, text)
        .saw(place, "goodput_spread_percent", plateau.spread * 100.0, steady);
    if let Some(round) = round {
        let text = round.text(plateau.rate);
        draft = draft.saw(Place::Path, "round_rate_bits_per_s", round.rate, text);
    }
    draft
        .predicted(next_after(view, &[RULE.id]))
        .advice(format!(
            "send no faster than the path carries: --rate {}",
            rate_argument(plateau.rate)
        ))
        .found()
}

/// Share of the sender's time that the path held, percent; with UDP the datagrams lost, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    if !view.is_tcp() {
        return Ok(view.receiver.lost_share()? * 100.0);
    }
    Ok(split(view)?.path_percent)
}

/// Whether the path is known to give the rate that it has: then it drops what exceeds it, and a writer that
/// leaves nothing unsent keeps it full all the same.
pub(super) fn is_known(view: &View) -> bool {
    let rate = (RULE.check)(view).ok().flatten();
    rate.is_some_and(|finding| finding.confidence > Confidence::Possible)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};

    #[test]
    fn fires_on_a_plateau_with_a_queue() {
        let finding = fires(&RULE, Case::path_rate());
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        let named = finding.evidence.iter().any(|w| w.text.contains("a shaper that counts"));
        assert!(named, "{finding:?}");
    }

    #[test]
    fn with_bbr_no_queue_is_needed() {
        let flat = |case: Case| case.tcp(|tcp, _| tcp.rtt_us = Some(20_500));
        assert_eq!(fires(&RULE, flat(Case::path_rate())).confidence, Confidence::Likely);
        quiet(&RULE, flat(Case::path_rate()).congestion("cubic"));
    }

    #[test]
    fn a_short_queue_that_the_window_fills_is_the_rates() {
        // CUBIC at 100 Mbit/s with 60 kB of queue and 10 ms, as measured: 0.018 % sent again.
        let case = |each_us: u64| {
            let case = Case::path_rate().congestion("cubic").retransmitted(0.00018);
            case.tcp(move |tcp, number| {
                tcp.snd_cwnd_segments = Some(86 + number % 38);
                tcp.min_rtt_us = Some(10_000);
                tcp.rtt_us = Some(10_400 + (number % 38) * each_us + number % 3);
            })
        };
        assert_eq!(fires(&RULE, case(110)).confidence, Confidence::Likely);
        quiet(&RULE, case(1));
    }

    /// Of a server that reports nothing: 100 Mbit/s, round trips of 30 ms at best.
    fn silent_server(rtt_us: u64, age_ms: u64, early: u64) -> Case {
        let case = Case::path_rate().wobble(0.0).without_links();
        case.silent_sender(move |tcp, number| {
            (tcp.min_rtt_us, tcp.rcv_rtt_us) = (Some(30_000), Some(rtt_us));
            tcp.last_data_recv_ms = Some(number % 2 * age_ms);
            tcp.rcv_ooo_segments = Some(number * early);
        })
    }

    #[test]
    fn of_a_silent_server_a_queue_or_losses_show_the_path() {
        let queue = fires(&RULE, silent_server(90_000, 4, 0));
        assert_eq!((queue.end, queue.confidence), (Place::Path, Confidence::Likely));
        let losses = fires(&RULE, silent_server(31_000, 4, 10));
        assert_eq!(losses.confidence, Confidence::Possible);
        let verdict = crate::diagnose(&silent_server(90_000, 4, 0).evidence()).verdict;
        assert_eq!(verdict.limit, RULE.id);
    }

    #[test]
    fn of_a_silent_server_without_either_it_may_be_the_server() {
        quiet(&RULE, silent_server(31_000, 4, 0));
        // A write each 90 ms: silent most of the round trip.
        quiet(&RULE, silent_server(90_000, 80, 0));
        quiet(&RULE, silent_server(90_000, 4, 0).reader(0.05, 0.0, 0.9));
    }

    #[test]
    fn a_local_shaper_at_its_rate_is_not_the_path() {
        quiet(&RULE, Case::path_rate().tbf(1e8, 125_000));
    }

    #[test]
    fn look_alikes_stay_quiet() {
        quiet(&RULE, Case::throttled_receiver().wobble(0.0));
        quiet(&RULE, Case::path_rate().reader(0.41, 0.0, 0.1));
        quiet(&RULE, Case::path_rate().wobble(0.3));
        quiet(&RULE, Case::receive_window().wobble(0.0));
        quiet(&RULE, Case::path_rate().reader(0.02, 0.0, 0.3));
        quiet(&RULE, Case::path_loss().wobble(0.0));
    }

    #[test]
    fn without_the_far_end_it_is_only_possible() {
        assert_eq!(fires(&RULE, Case::path_rate().without_far()).confidence, Confidence::Possible);
    }

    #[test]
    fn drops_of_a_full_queue_do_not_make_it_doubtful() {
        let finding = fires(&RULE, Case::path_rate().retransmitted(0.03));
        assert_eq!(finding.confidence, Confidence::Likely);
    }

    #[test]
    fn packets_that_wait_in_the_local_shaper_do_not_wait_on_the_path() {
        let near = |goodput: f64| {
            let case = Case::path_rate().tbf(4e9, 100_000).overlimits(0.07);
            case.goodput(goodput)
        };
        quiet(&RULE, near(3632e6));
        assert_eq!(fires(&RULE, near(500e6)).confidence, Confidence::Likely);
    }

    #[test]
    fn a_standing_queue_on_a_long_path_is_possible_even_if_the_rate_swings() {
        let swings = || Case::path_rate().wobble(0.1);
        assert_eq!(fires(&RULE, swings()).confidence, Confidence::Possible);
        let nearby = |loaded_us: u64| {
            swings().tcp(move |tcp, _| {
                (tcp.min_rtt_us, tcp.rtt_us) = (Some(300), Some(loaded_us));
            })
        };
        quiet(&RULE, nearby(6000));
        // No scheduler makes a packet wait so long.
        fires(&RULE, nearby(40_000));
    }

    #[test]
    fn a_queue_many_times_as_long_as_the_path_is_busy_whatever_swings() {
        // 2.16 Mbit/s and half a second of queue, while the reader waits for one lost packet, as measured.
        let drowned = |loaded_us| {
            Case::path_rate().wobble(0.22).tcp(move |tcp, _| tcp.rtt_us = Some(loaded_us))
        };
        fires(&RULE, drowned(480_000));
        quiet(&RULE, drowned(60_000));
    }

    #[test]
    fn late_scheduling_on_a_busy_short_path_is_no_queue() {
        let case = Case::path_rate().without_links().goodput(8.7e9).reader(0.6, 0.0, 0.6);
        quiet(
            &RULE,
            case.tcp(|tcp, _| {
                tcp.rtt_us = Some(1068);
                tcp.min_rtt_us = Some(3);
            }),
        );
    }

    #[test]
    fn the_pace_of_busy_hosts_is_not_the_paths() {
        let flat = Case::path_rate().goodput(8.6e8).tcp(|tcp, _| {
            tcp.rtt_us = Some(21_000);
            tcp.delivery_rate_bytes_per_s = Some(107_000_000);
        });
        quiet(&RULE, flat.without_links().reader(0.6, 0.0, 0.6));
    }

    #[test]
    fn datagrams_beyond_the_rate_are_the_rates() {
        let over = |lost: f64| Case::healthy_udp().without_links().wobble(0.0).lost(lost);
        let finding = fires(&RULE, over(0.5).goodput(97e6));
        assert_eq!(finding.confidence, Confidence::Likely);
        assert_eq!(finding.advice, ["send no faster than the path carries: --rate 97mbit"]);
        fires(&RULE, over(0.5).goodput(97e6).writer(0.0, 0.0, 0.99));
        // 80 Mbit/s into 73, as measured: what passes is steadier than chance.
        assert_eq!(fires(&RULE, over(0.09).goodput(73e6)).confidence, Confidence::Likely);
        let chance =
            |lost: f64| Case::healthy_udp().without_links().wobble(0.0).lost_by_chance(lost);
        quiet(&RULE, chance(0.027).goodput(97.3e6));
        quiet(&RULE, chance(0.1).goodput(90e6));
    }

    #[test]
    fn cannot_tell_without_a_round_trip_time() {
        cannot_tell(&RULE, Case::path_rate().tcp(|tcp, _| tcp.min_rtt_us = None));
    }
}
