//! # What it means
//! Something between the two hosts carries this rate and no more: a slower link, a shaper, a
//! contract.
//!
//! # Why it limits
//! The slowest hop sets the pace. Packets that arrive faster wait in its queue or are dropped.
//!
//! # How it is seen
//! By elimination and by its traces. The path holds the sender; both ends have CPU left and nobody
//! throttles them; no window or buffer is full; and the rate is a plateau, as far as whole segments
//! show one. In addition, a queue stretches the round-trip time; on a long path that alone makes the
//! finding possible. Or, with BBR, which leaves no queue, BBR's own estimate of the rate agrees. Or,
//! of several flows together, what passes is steadier than random loss would leave it, however much
//! was sent. A rate that is a round number × a known share of headers shows which device counts.
//! UDP: what arrives is steadier than random loss would leave it, whatever was sent, and neither
//! host dropped the rest. If the sender reports nothing, like a file server: payload arrives
//! steadily, and this host waits for more with an open window. The finding is then likely if the
//! arriving data shows a queue (tcp_info rcv_rtt), and possible if it arrives out of order.
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

use goodput_model::{Finding, Missing, Place};

use crate::account::path_share;
use crate::arriving_rate::arriving_rate;
use crate::bounds::next_after;
use crate::datagram_rate::datagram_rate;
use crate::finding::{Draft, percent, rate, rate_argument, time};
use crate::parts;
use crate::remedy::Again;
use crate::rule::{Depth, Rule};
use crate::standing_rate::StandingRate;
use crate::view::{Plateau, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "path-rate",
    title: "Something on the path limits the rate",
    refines: &[parts::PATH_RATE],
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "path_percent",
    witness_words: ("time at the path's rate", " %"),
    source: include_str!("path_rate.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    if !view.is_tcp() {
        return datagrams(view);
    }
    if view.is_sender_silent() {
        return seen_from_the_receiver(view);
    }
    match StandingRate::of(view)? {
        Some(rate) => draft(view, &rate)?.found(),
        None => Ok(None),
    }
}

fn draft(view: &View, seen: &StandingRate) -> Result<Draft, Missing> {
    let StandingRate { share, mark, confidence } = seen;
    let (share, confidence) = (*share, *confidence);
    let (side, place) = (&view.sender, view.sender.place());
    let Plateau { rate: stands, spread, .. } = mark.plateau;
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
    if let Some(drops) = mark.drops {
        draft = draft.saw(place, "chance_behind", drops.chance_behind, drops.text());
    }
    if let Some(round) = &mark.round {
        draft = draft.saw(Place::Path, "round_rate_bits_per_s", round.rate, round.text(stands));
    }
    Ok(draft
        .predicted(next_after(view, &[RULE.id]))
        .advice("nothing to change at the hosts: get a higher rate, or use another path"))
}

/// If the sender reports nothing: the queue and the losses that the receiver sees.
fn seen_from_the_receiver(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(seen) = arriving_rate(view)? else { return Ok(None) };
    let (own, Plateau { rate: stands, spread, .. }) = (view.receiver.place(), seen.plateau);
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
        .advice("nothing to change at this host: get a higher rate, or use another path")
        .found()
}

/// What is left is steady, whatever was sent, and the rest was dropped by neither host.
fn datagrams(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(seen) = datagram_rate(view)? else { return Ok(None) };
    let Plateau { rate: stands, spread, .. } = seen.plateau;
    let place = view.receiver.place();
    let summary = format!("the path, at {}", rate(stands));
    let text = format!("{} of the datagrams never arrived", percent(seen.lost));
    let steady = format!("what arrived stood at {} ± {}", rate(stands), percent(spread));
    let mut draft = Draft::new(RULE.id, Place::Path, seen.confidence, summary)
        .saw(place, "lost_percent", seen.lost * 100.0, text)
        .saw(place, "goodput_spread_percent", spread * 100.0, steady);
    if let Some(round) = seen.round {
        let text = round.text(stands);
        draft = draft.saw(Place::Path, "round_rate_bits_per_s", round.rate, text);
    }
    draft
        .predicted(next_after(view, &[RULE.id]))
        .again(
            &Again::With(&format!("--rate {}", rate_argument(stands))),
            "no faster than the path carries",
        )
        .found()
}

/// Share of the sender's time that the path held, percent; with UDP the datagrams lost, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    if !view.is_tcp() {
        return Ok(view.receiver.lost_share()? * 100.0);
    }
    Ok(path_share(view)? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Confidence;

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
        assert_eq!(
            finding.advice,
            ["the same test with --rate 97mbit   # no faster than the path carries"]
        );
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
