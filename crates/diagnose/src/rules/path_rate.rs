//! # What it means
//! Something between the two hosts carries this rate and no more: a slower link, a shaper, a
//! contract.
//!
//! # Why it limits
//! The slowest hop sets the pace; what arrives faster waits in its queue or is dropped.
//!
//! # How it is seen
//! By elimination and by its mark. The path holds the sender; both ends have CPU left and nobody
//! throttles them; no window or buffer is full; the rate is a plateau; a queue stretches the
//! round-trip time, or, with BBR, which leaves no queue, its own estimate of the rate agrees. A rate
//! that is a round number × a known share of headers names who counts.
//!
//! # What to try
//! Nothing at the hosts. Ask for more, or use another path.
//!
//! # When it is wrong
//! A receiver that is throttled or starved stretches the round-trip time as well; where the far end
//! does not report, this is only possible. Cross traffic leaves a changing rate, not a plateau.
//!
//! # Source
//! Reference D7 and section 4.1; RFC 6349 section 4 (buffer delay).

use goodput_model::{Confidence, Finding, Missing, Place};

use super::shaper_burst;
use crate::bounds::next_after;
use crate::ceiling::link_ceiling;
use crate::cpu_bound::{cpu_bound, is_throttled};
use crate::finding::{Draft, percent, rate, time};
use crate::models::rate_at_loss;
use crate::round_rate::{RoundRate, round_rate};
use crate::rule::{Rule, Stage};
use crate::shaper::Shaper;
use crate::split::split;
use crate::thresholds::{
    AT_CEILING, CPU_FULL, HARDLY_WAITS, HOLDS, PLATEAU_SPREAD, RTT_INFLATED, SHAPER_GIVES,
};
use crate::view::{Plateau, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "path-rate",
    title: "Something on the path carries no more",
    stage: Stage::Path,
    check,
    witness,
    witness_name: "path_percent",
    source: include_str!("path_rate.rs"),
};

/// Loss beyond which a plateau is only possibly a rate.
const MUCH_LOSS: f64 = 0.01;
/// A queue shorter than this may be nothing but scheduling at the hosts, seconds.
const QUEUE_S: f64 = 0.0005;
/// CPU share of a reader that no common quota stops.
const HARDLY_ANY: f64 = 0.05;
/// How near BBR's delivery rate must be to the goodput.
const AGREES: std::ops::Range<f64> = 0.85..1.2;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    let share = split(view)?.path_percent / 100.0;
    let plateau = plateau(view)?;
    let steady = share >= HOLDS && plateau.spread < PLATEAU_SPREAD;
    if !steady || is_local(view)? || host_is_short(view)? || loss_explains(view)? {
        return Ok(None);
    }
    let mark = Mark::of(view, plateau)?;
    match mark.confidence(view) {
        Some(confidence) => draft(view, share, &mark, confidence)?.found(),
        None => Ok(None),
    }
}

/// Where the rate stands by the receiver, or by the sender where the receiver does not report.
fn plateau(view: &View) -> Result<Plateau, Missing> {
    view.receiver.plateau().or_else(|_| view.sender.plateau())
}

/// Whether a limit at one of the hosts is reached, or the local shaper falls short of its own.
fn is_local(view: &View) -> Result<bool, Missing> {
    let goodput = view.goodput()?;
    let short = (shaper_burst::RULE.check)(view).ok().flatten();
    if short.is_some_and(|finding| finding.confidence > Confidence::Possible) {
        return Ok(true);
    }
    let shaper = Shaper::of(view).ok().flatten().map(|shaper| SHAPER_GIVES * shaper.ceiling);
    let links = view.sides().map(|side| link_ceiling(view, side).ok());
    let links = links.into_iter().flatten().map(|ceiling| AT_CEILING * ceiling);
    Ok(links.chain(shaper).any(|limit| goodput >= limit))
}

/// Whether a thread lacks CPU, a quota bites or the reader is behind.
fn host_is_short(view: &View) -> Result<bool, Missing> {
    let full = |share: Result<f64, Missing>| share.is_ok_and(|share| share >= CPU_FULL);
    let sides = view.sides();
    let starved = sides.iter().any(|side| {
        is_throttled(side)
            || full(side.thread_cpu_share())
            || cpu_bound(side).is_ok_and(|bound| bound.is_some())
    });
    Ok(starved || view.receiver.blocked_share().is_ok_and(|waits| waits < HARDLY_WAITS))
}

/// Whether a loss-based congestion control without a queue on the path could go no faster.
fn loss_explains(view: &View) -> Result<bool, Missing> {
    let queue = view.sender.rtt_inflation()? >= RTT_INFLATED;
    let backs_off = view.backs_off_at_loss().unwrap_or(true);
    let modelled = rate_at_loss(view).ok().flatten();
    Ok(!queue
        && backs_off
        && modelled.is_some_and(|rate| rate < 2.0 * view.goodput().unwrap_or(0.0)))
}

/// Whether the receiver is known to be no bottleneck: nothing throttles it, or it waits for data
/// nearly all the time and needs hardly any CPU. Waiting alone does not show it: a process that is
/// stopped for want of quota while data comes in counts that as waiting too.
fn reader_keeps_up(view: &View) -> bool {
    let side = &view.receiver;
    let idle = side.thread_cpu_share().is_ok_and(|share| share <= HARDLY_ANY);
    let waits = side.blocked_share().is_ok_and(|share| share >= 1.0 - HARDLY_WAITS);
    side.throttled_share().is_ok() || (idle && waits)
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

    /// How sure it is, or `None` where no mark shows.
    fn confidence(&self, view: &View) -> Option<Confidence> {
        let queue = self.inflation >= RTT_INFLATED && self.queue_s >= QUEUE_S;
        let goodput = view.goodput().ok()?;
        let agrees = self.delivery.as_ref().is_ok_and(|rate| AGREES.contains(&(rate / goodput)));
        let paced = !view.backs_off_at_loss().unwrap_or(true) && agrees;
        let doubt = self.loss > MUCH_LOSS || !reader_keeps_up(view);
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
    let queue = format!("round trips took {} under load, {} at best", time(loaded), time(base));
    let summary = format!("the path, which carries {}", rate(stands));
    let mut draft = Draft::new(RULE.id, Place::Path, confidence, summary)
        .share(share)
        .saw(place, RULE.witness_name, share * 100.0, held)
        .saw(view.receiver.place(), "goodput_spread_percent", spread * 100.0, steady)
        .saw(place, "rtt_inflation", mark.inflation, queue)
        .saw_if(place, "delivery_rate_bits_per_s", mark.delivery.clone(), |value| {
            format!("TCP saw {} delivered", rate(value))
        })
        .saw_if(
            view.receiver.place(),
            "reader_blocked_share",
            view.receiver.blocked_share(),
            |waits| format!("the reader waited for data {} of the time", percent(waits)),
        );
    if let Some(round) = &mark.round {
        draft = draft.saw(Place::Path, "round_rate_bits_per_s", round.rate, round.text(stands));
    }
    Ok(draft
        .predicted(next_after(view, &[RULE.id]))
        .advice("nothing at the hosts: ask for more, or use another path"))
}

/// Share of the sender's time that the path held, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(split(view)?.path_percent)
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
    fn a_local_shaper_at_its_rate_is_not_the_path() {
        quiet(&RULE, Case::path_rate().tbf(1e8, 125_000));
    }

    #[test]
    fn look_alikes_stay_quiet() {
        quiet(&RULE, Case::throttled_receiver().wobble(0.0));
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
    fn cannot_tell_without_a_round_trip_time() {
        cannot_tell(&RULE, Case::path_rate().tcp(|tcp, _| tcp.min_rtt_us = None));
    }
}
