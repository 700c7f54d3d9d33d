//! Whether datagrams that exceed the rate wait, are dropped, or neither.

use goodput_model::{Known, ShapingKind, median};

use crate::rough::Rough;
use crate::trace::{Came, Trace};

/// Smallest number of frames in front of a waiting one. One may always be on the wire, and one at the receiver.
const MIN_QUEUED_FRAMES: f64 = 2.5;
/// Smallest ratio of a wait in a queue to the usual difference between the waits of neighboring arrivals. In a queue they
/// differ by a part of a frame; waits that come and go with every arrival arise in the hosts.
const MIN_WAIT_TO_CHANGE_RATIO: f64 = 5.0;
/// Smallest share of datagrams that a policer drops. A train is sent at several times the rate; other causes drop
/// fewer.
const MIN_POLICED_SHARE: f64 = 0.05;
/// The same of the datagrams after a bend of the line of arrivals, if the bucket lasts for nearly all of the train. Chosen: at 4.3 times
/// the rate a policer drops three of four, at 4/3 times still a quarter.
const MIN_POLICED_SHARE_AT_END: f64 = 0.25;
/// Smallest number of arrivals there with losses before them: one broken path has one. Chosen: as many as a train must have arrivals.
const MIN_DROPS_AT_END: usize = 16;
/// Smallest share of the train's time in which they came: a host that was busy for a moment drops some, too. Chosen: 10 ms of a
/// train of one second, longer than a host's usual stalls.
const MIN_TIME_SHARE_AT_END: f64 = 0.01;
/// Largest share of datagrams lost by chance; a greater loss shows that something drops what exceeds a rate.
pub(crate) const MAX_CHANCE_LOSS_SHARE: f64 = 0.01;

/// Smallest number of waits for the rate, for each call of the sender, that shows a shaper: one that holds no rate waits
/// never, and of other traffic of the host only few packets fall into a train. Whoever holds a sender that stops most of
/// the time waits seldom.
const MIN_WAITS_OF_A_SHAPER: f64 = 0.02;
/// Smallest number of waits for the rate, for each call of the sender, in a queueing discipline that holds the sender. It
/// waits once for all that a call sends, or for each frame if it splits that; one that does not hold the sender never
/// waits.
const MIN_RATE_WAITS_PER_CALL: f64 = 0.5;

/// What became of datagrams that exceed the rate. A sender whose own shaper takes so much of its CPU that no queue builds
/// up leaves no mark in the times, but the shaper counts its waits.
pub(crate) fn kind(trace: &Trace, rough: &Rough, rate_waits_per_call: &Known<f64>) -> ShapingKind {
    let later: Vec<&Came> = trace.came.iter().filter(|came| came.came_s >= rough.from_s).collect();
    let dropped: u64 = trace.came.iter().map(|came| came.lost_before).sum();
    let dropped_share = dropped as f64 / (dropped as f64 + trace.came.len() as f64);
    let level = match dropped {
        0 => median(later.iter().map(|came| came.wait_s)),
        _ => median(waits_at_drops(trace)),
    };
    let steps = later.windows(2).map(|two| (two[1].wait_s - two[0].wait_s).abs());
    let least =
        least_wait_s(trace, rough).max(MIN_WAIT_TO_CHANGE_RATIO * median(steps).unwrap_or(0.0));
    match level.unwrap_or(0.0) {
        level if level >= least => ShapingKind::Shaper,
        _ if dropped_share >= MIN_POLICED_SHARE || is_policed_at_end(trace, &later) => {
            ShapingKind::Policer
        }
        _ if waited(rate_waits_per_call, MIN_WAITS_OF_A_SHAPER) => ShapingKind::Shaper,
        _ => ShapingKind::None,
    }
}

/// Whether most datagrams of the `later` part of a train are dropped, again and again: a deep bucket is empty then.
fn is_policed_at_end(trace: &Trace, later: &[&Came]) -> bool {
    let took_s = |from: Option<&Came>| Some(trace.came.last()?.came_s - from?.came_s);
    let lasts = took_s(later.first().copied())
        .zip(took_s(trace.came.first()))
        .is_some_and(|(part, whole)| part >= MIN_TIME_SHARE_AT_END * whole);
    let drops = later.iter().filter(|came| came.lost_before > 0).count();
    let dropped: f64 = later.iter().map(|came| came.lost_before as f64).sum();
    let share = dropped / (dropped + later.len() as f64);
    lasts && drops >= MIN_DROPS_AT_END && share >= MIN_POLICED_SHARE_AT_END
}

/// Whether the sender's own queueing discipline held what it sent, by its own count.
pub(crate) fn waited_for_rate(rate_waits_per_call: &Known<f64>) -> bool {
    waited(rate_waits_per_call, MIN_RATE_WAITS_PER_CALL)
}

fn waited(rate_waits_per_call: &Known<f64>, least: f64) -> bool {
    rate_waits_per_call.value().is_some_and(|waits| *waits >= least)
}

/// Shortest extra delay, compared with the quickest datagram, that shows a wait in a queue at this rate, seconds.
pub(crate) fn least_wait_s(trace: &Trace, rough: &Rough) -> f64 {
    MIN_QUEUED_FRAMES * trace.frame / rough.rate
}

/// Waits of the datagrams right before a gap in the numbers, seconds. If there was a queue, it was full then.
pub(crate) fn waits_at_drops(trace: &Trace) -> impl Iterator<Item = f64> {
    let drops = trace.came.windows(2).filter(|two| two[1].lost_before > 0);
    drops.map(|two| two[0].wait_s)
}
