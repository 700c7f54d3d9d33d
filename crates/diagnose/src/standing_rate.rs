//! The rate of the path that TCP met, if the path gives one.

use goodput_model::{Confidence, Missing};

use crate::account::path_share;
use crate::dropping_rate::DroppingRate;
use crate::elimination::{
    host_is_short, hosts_have_time, is_local, reader_keeps_up, reads_in_time,
};
use crate::models::rate_at_loss;
use crate::round_rate::{RoundRate, round_rate};
use crate::thresholds::{
    LATE_S, MAX_PLATEAU_SPREAD_RATIO, MIN_FULL_QUEUE_RTT_RATIO, MIN_LIMITING_TIME_SHARE,
};
use crate::view::{Plateau, STANDARD_DEVIATIONS_PER_MAD, View};

/// Loss beyond which a plateau without a queue or a round number is only possibly a rate.
const MIN_UNCERTAIN_LOSS_SHARE: f64 = 0.01;
/// Relative spread from which a standing queue alone shows no rate.
const MIN_SWINGING_SPREAD_RATIO: f64 = 0.15;
/// Round-trip time over the smallest one that no window which is still growing leaves.
const MIN_FULL_BUFFER_RTT_RATIO: f64 = 4.0;
/// A queue shorter than this may be nothing but scheduling at the hosts, seconds.
const MIN_QUEUE_S: f64 = 0.0005;
/// How near BBR's delivery rate must be to the goodput.
const DELIVERY_RATE_AGREES_RATIOS: std::ops::Range<f64> = 0.85..1.2;

/// A rate that the path gives by elimination: the path holds the sender, both ends have CPU left, and the rate stands.
pub struct StandingRate {
    /// Share of the time that the path held the sender.
    pub share: f64,
    /// What shows the rate.
    pub mark: Mark,
    /// How sure it is.
    pub confidence: Confidence,
}

impl StandingRate {
    /// The rate, if one stands.
    ///
    /// # Errors
    /// If the sender does not report its round trips and what it waited for.
    pub fn of(view: &View) -> Result<Option<Self>, Missing> {
        let share = path_share(view)?;
        let plateau = plateau(view)?;
        if share < MIN_LIMITING_TIME_SHARE
            || swings(view, &plateau)?
            || is_local(view)?
            || host_is_short(view)
            || loss_explains(view)?
        {
            return Ok(None);
        }
        let mark = Mark::of(view, plateau)?;
        Ok(mark.confidence(view).map(|confidence| Self { share, mark, confidence }))
    }
}

/// If the rate stands by the receiver, or by the sender if the receiver does not report.
fn plateau(view: &View) -> Result<Plateau, Missing> {
    view.receiver.plateau().or_else(|_| view.sender.plateau())
}

/// Whether the rate swings too much to be the path's. A reader gets nothing while one packet is missing, so what it gets of
/// many flows swings also if as many segments as ever pass: those show the rate.
fn swings(view: &View, plateau: &Plateau) -> Result<bool, Missing> {
    let most = MIN_SWINGING_SPREAD_RATIO.max(counting_spread(view, plateau));
    Ok(plateau.spread >= most && DroppingRate::of(view).is_none() && !is_drowned(view)?)
}

/// Spread that whole segments leave of a rate that stands still: as many of them fit in each slice, or one more.
fn counting_spread(view: &View, plateau: &Plateau) -> f64 {
    let segment = view.sender.mss_bytes().unwrap_or(0.0);
    STANDARD_DEVIATIONS_PER_MAD * segment * 8.0 / (plateau.rate * plateau.slice_s)
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
        && DroppingRate::of(view).is_none()
        && backs_off
        && modelled.is_some_and(|rate| rate < 2.0 * view.goodput().unwrap_or(0.0)))
}

/// Whether a queue too short to stretch the round trip much is filled by what the window grows by.
fn fills_a_queue(view: &View) -> bool {
    view.window_fills_a_queue().unwrap_or(false)
}

/// The marks that a bottleneck leaves.
pub struct Mark {
    /// Where the rate stands.
    pub plateau: Plateau,
    /// Round-trip time under load over the smallest.
    pub inflation: f64,
    /// How much longer it takes under load, seconds.
    pub queue_s: f64,
    /// What TCP saw delivered, bits per second.
    pub delivery: Result<f64, Missing>,
    /// The rate in round numbers, if it is one.
    pub round: Option<RoundRate>,
    /// Share of the bytes that were sent again.
    pub loss: f64,
    /// The rate by what all flows lost together.
    pub drops: Option<DroppingRate>,
    counting_spread: f64,
}

impl Mark {
    fn of(view: &View, plateau: Plateau) -> Result<Self, Missing> {
        Ok(Self {
            plateau,
            counting_spread: counting_spread(view, &plateau),
            inflation: view.sender.rtt_inflation()?,
            queue_s: view.sender.rtt_s()? - view.sender.min_rtt_s()?,
            delivery: view.sender.delivery_rate(),
            round: round_rate(view, plateau.rate)?,
            loss: view.sender.retransmitted_share().unwrap_or(0.0),
            drops: DroppingRate::of(view),
        })
    }

    fn is_steady(&self) -> bool {
        self.drops.is_some()
            || self.plateau.spread < MAX_PLATEAU_SPREAD_RATIO.max(self.counting_spread)
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
        let drops = self.drops.is_some();
        let unexplained = !queue && !drops && self.round.is_none();
        let lossy = self.loss > MIN_UNCERTAIN_LOSS_SHARE && unexplained;
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
        match (queue || drops, paced, self.round.is_some()) {
            (false, false, _) => None,
            (true, _, _) | (_, true, true) if !doubt => Some(Confidence::Likely),
            _ => Some(Confidence::Possible),
        }
    }
}
