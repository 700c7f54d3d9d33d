//! When a queue drops, as its losses show it.
//!
//! - CoDel's come at times of its own (see `codel.rs`).
//! - A full queue loses what exceeds the rate. One that drops its oldest still holds all of what was sent last when the
//!   train ends, and the last of that waits longer than all before, because nothing in front of it is dropped any more. One
//!   that drops at its tail let only a part of that in, as before, and nothing waits longer than in a full queue.
//! - A full queue lets exactly as much in as leaves, so what comes through is even, and it drops nothing while its sender
//!   lets it drain. What is lost by chance is uneven, and as often from a short queue.

use goodput_model::{Missing, QueueDiscipline, median};

use crate::codel;
use crate::kind::waits_at_drops;
use crate::trace::{Came, Trace};

/// Smallest share of the datagrams that a full queue loses: what comes at 1.25 times the rate. A train is sent at several
/// times the rate. A sender that its own queue holds comes at the rate, and what it loses was not dropped by a full queue.
const MIN_OVERFLOW_SHARE: f64 = 0.2;
/// Longest wait at a drop that shows a queue which was not full, as a share of the median wait at drops.
const MAX_EARLY_WAIT: f64 = 0.75;
/// The same for a queue that was short: there, only chance drops.
const MAX_SHORT_WAIT: f64 = 0.25;
/// Smallest share of the drops that come early from a queue that drops early. A few may be lost by chance while it fills.
const MIN_EARLY_SHARE: f64 = 0.05;
/// Largest share of the early drops from a short queue.
const MAX_SHORT_SHARE: f64 = 0.25;
/// Smallest number of losses that a tail must have had among what was queued at the train's end, so that fewer say something.
const MIN_EXPECTED: f64 = 8.0;
/// Largest share of the expected losses that shows that what would have made them is not so.
const MAX_UNEXPECTED: f64 = 0.25;
/// Smallest ratio of the longest wait at the train's end to that at drops, in a queue that drops its oldest. At its end, a
/// train that is sent at several times the rate waits as many times as long.
const MIN_LONGER: f64 = 1.5;
/// Smallest share of these losses in a queue that drops at its tail.
const MIN_AT_TAIL: f64 = 0.5;
/// Number of windows in which what came through is compared: more show it better, but each needs this variance by chance.
const COMPARED_WINDOWS: (usize, usize) = (16, 32);
const MIN_VARIANCE: f64 = 8.0;
/// Largest variance of what a full queue lets in, as a share of that by chance.
const MAX_EVEN_VARIANCE: f64 = 0.25;
/// Distance of the quartiles of a normal distribution in standard deviations.
const QUARTILE_DISTANCE: f64 = 1.349;

/// `least_wait_s` is the shortest wait that shows a queue.
///
/// # Errors
/// If datagrams were lost in a way that is not a queue's alone.
pub(crate) fn discipline(trace: &Trace, least_wait_s: f64) -> Result<QueueDiscipline, Missing> {
    let Some(first) = trace.came.iter().position(|came| came.lost_before > 0) else {
        return Ok(QueueDiscipline::Unfilled);
    };
    if codel::interval_s(trace, least_wait_s).is_some() {
        return Ok(QueueDiscipline::ActiveManagement);
    }
    let full = Full::of(&trace.came[first..], trace);
    let share = full.before.lost_share().max(full.after.lost_share());
    if share < MIN_OVERFLOW_SHARE {
        let lost = Counts::of(&trace.came).lost;
        return Err(Missing::because(format!(
            "only {lost} datagrams were lost, too few for a full queue, and not at the times of CoDel"
        )));
    }
    match drops_early(trace)? {
        true => Ok(QueueDiscipline::ActiveManagement),
        false => full.discipline(),
    }
}

/// Whether a good part of the drops comes from a queue that is not full.
fn drops_early(trace: &Trace) -> Result<bool, Missing> {
    let waits: Vec<f64> = waits_at_drops(trace).collect();
    let most = median(waits.iter().copied()).unwrap_or(0.0);
    let below = |share: f64| waits.iter().filter(|wait| **wait < share * most).count() as f64;
    let (early, short) = (below(MAX_EARLY_WAIT), below(MAX_SHORT_WAIT));
    let is_early = early >= MIN_EARLY_SHARE * waits.len() as f64;
    if is_early && short > MAX_SHORT_SHARE * early {
        return Err(Missing::because("datagrams were lost while the queue was short, too"));
    }
    Ok(is_early)
}

/// What came and what was lost.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    came: u64,
    lost: u64,
}

impl Counts {
    fn of(came: &[Came]) -> Self {
        let lost = came.iter().map(|came| came.lost_before).sum();
        Self { came: came.len() as u64, lost }
    }

    fn sent(self) -> f64 {
        self.came as f64 + self.lost as f64
    }

    fn lost_share(self) -> f64 {
        self.lost as f64 / self.sent().max(1.0)
    }
}

/// What came since the first drop.
struct Full<'a> {
    came: &'a [Came],
    /// What left the queue while the train was sent.
    before: Counts,
    /// What was still queued when the last of the train was sent.
    after: Counts,
}

impl<'a> Full<'a> {
    fn of(came: &'a [Came], trace: &Trace) -> Self {
        let end_s = trace.came.iter().map(|came| came.sent_s).fold(0.0, f64::max);
        // Times of arrival in order, less the way: when each left.
        let left = |came: &Came| came.sent_s + came.wait_s <= end_s;
        let (before, after) = came.split_at(came.partition_point(left));
        // What was lost before the first of the queued ones belongs to neither.
        let queued = after.get(1..).unwrap_or_default();
        Self { came, before: Counts::of(before), after: Counts::of(queued) }
    }

    fn discipline(&self) -> Result<QueueDiscipline, Missing> {
        let Self { before, after, .. } = *self;
        let expected = after.came as f64 * before.lost as f64 / (before.came as f64).max(1.0);
        let lost = after.lost as f64;
        if expected >= MIN_EXPECTED && lost <= MAX_UNEXPECTED * expected && self.ends_longer() {
            return Ok(QueueDiscipline::DropHead);
        }
        if lost < MIN_EXPECTED || lost < MIN_AT_TAIL * expected {
            return Err(Missing::because(
                "too little waited when the train ended to see which end of the queue drops",
            ));
        }
        match (self.drops_only_when_full(), self.is_even()) {
            (true, _) | (_, Some(true)) => Ok(QueueDiscipline::DropTail),
            (_, Some(false)) => Err(Missing::because(
                "what came through is as uneven as if it was lost by chance, not by a full queue",
            )),
            (_, None) => Err(Missing::because(
                "too few datagrams were lost to tell chance from a full queue",
            )),
        }
    }

    /// Whether what was queued at the train's end waited longer than what came right before drops.
    fn ends_longer(&self) -> bool {
        let at_end = &self.came[self.came.len() - self.after.came as usize..];
        let longest = at_end.iter().map(|came| came.wait_s).fold(0.0, f64::max);
        let at_drops = median(self.drops().map(|came| came.wait_s));
        at_drops.is_some_and(|usual| longest >= MIN_LONGER * usual)
    }

    /// What came right before each drop: its wait is that of a queue as full as at the drop.
    fn drops(&self) -> impl Iterator<Item = Came> {
        self.came.windows(2).filter(|two| two[1].lost_before > 0).map(|two| two[0])
    }

    /// Whether far fewer drops than by chance come while the queue is not full.
    fn drops_only_when_full(&self) -> bool {
        let most = median(self.drops().map(|came| came.wait_s)).unwrap_or(0.0);
        let is_short = |came: &Came| came.wait_s < MAX_EARLY_WAIT * most;
        let count = |all: usize| all as f64;
        let short = count(self.came.iter().filter(|came| is_short(came)).count());
        let expected = count(self.drops().count()) * short / count(self.came.len());
        let seen = count(self.drops().filter(is_short).count());
        expected >= MIN_EXPECTED && seen <= MAX_UNEXPECTED * expected
    }

    /// Whether windows of the sending time let equally much in; `None` if chance would hardly differ. Quartiles, because a
    /// sender that stops empties the queue in a few windows.
    fn is_even(&self) -> Option<bool> {
        let all = Counts::of(self.came);
        let share = all.lost_share();
        let variance = all.sent() * share * (1.0 - share);
        let windows = ((variance / MIN_VARIANCE) as usize).min(COMPARED_WINDOWS.1);
        if windows < COMPARED_WINDOWS.0 {
            return None;
        }
        let mut counts = self.per_window(windows);
        counts.sort_unstable();
        let quartile = |share: f64| counts[((windows - 1) as f64 * share).round() as usize] as f64;
        let deviation = (quartile(0.75) - quartile(0.25)) / QUARTILE_DISTANCE;
        Some(deviation.powi(2) <= MAX_EVEN_VARIANCE * variance / windows as f64)
    }

    /// How many of those sent in each window came.
    fn per_window(&self, windows: usize) -> Vec<u64> {
        let times = || self.came.iter().map(|came| came.sent_s);
        let from = times().fold(f64::INFINITY, f64::min);
        let length = (times().fold(0.0, f64::max) - from) / windows as f64;
        let mut counts = vec![0; windows];
        for at in times() {
            counts[(((at - from) / length) as usize).min(windows - 1)] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests;
