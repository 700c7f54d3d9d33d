//! Whether what lies behind the sender's own shaper holds datagrams up or drops them.
//!
//! A train that waits in the first shaper leaves it at even times. Behind it, a policer drops some and holds none up, so the
//! pause before an arrival grows with the number of datagrams that were lost in it. A second queue sends them at even times
//! of its own, however many were dropped at its tail.

use std::collections::BTreeMap;

use goodput_model::median;

use crate::kind::MAX_CHANCE_LOSS_SHARE;
use crate::trace::{Trace, Train};

/// What is behind the sender's shaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// It drops, and lets nothing wait: a policer.
    Drops,
    /// What exceeds its rate waits: a shaper or a slower link.
    Waits,
}

/// Smallest number of pauses whose median counts.
const LEAST_PAUSES: usize = 8;
/// Standard error of a median, as a multiple of the median deviation from it, for one value: that of a normal distribution.
const MEDIAN_ERROR: f64 = 1.86;
/// How much of a pause must follow from the losses in it, as a share, if something drops; the rest if something waits.
const LEAST_SHARE: f64 = 0.75;

/// What the pauses of a train show; `None` if they show neither.
pub fn behind(train: &Train) -> Option<Behind> {
    let trace = Trace::of(train).ok()?;
    let lost: u64 = trace.came.iter().map(|came| came.lost_before).sum();
    if train.batch > 1.5 {
        // Datagrams that leave together come together.
        return None;
    }
    // What holds a smaller rate and drops none lets them wait.
    if (lost as f64) < MAX_CHANCE_LOSS_SHARE * trace.came.len() as f64 {
        return Some(Behind::Waits);
    }
    match share_of_losses(&trace)? {
        (share, error) if share - error >= LEAST_SHARE => Some(Behind::Drops),
        (share, error) if share + error <= 1.0 - LEAST_SHARE => Some(Behind::Waits),
        _ => None,
    }
}

/// The pauses before arrivals of which as many were lost.
struct Group {
    steps: f64,
    count: usize,
    /// Their median, and its standard error.
    pause: f64,
    error: f64,
}

impl Group {
    fn of(steps: u64, pauses: &[f64]) -> Option<Self> {
        let pause = median(pauses.iter().copied())?;
        let off = median(pauses.iter().map(|one| (one - pause).abs()))?;
        let (steps, count) = (steps as f64, pauses.len());
        let error = MEDIAN_ERROR * off / (count as f64).sqrt();
        (count >= LEAST_PAUSES).then_some(Self { steps, count, pause, error })
    }
}

/// How much of the pauses the numbers of datagrams between two arrivals explain: how the pause grows from one number to the
/// other, as a share of the pause for each; with twice its standard error. The two numbers that are most frequent, and
/// medians, because what a late host lets through at once says nothing.
fn share_of_losses(trace: &Trace) -> Option<(f64, f64)> {
    let mut by_steps: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for two in trace.came.windows(2) {
        let pauses = by_steps.entry(two[1].lost_before.saturating_add(1)).or_default();
        pauses.push(two[1].came_s - two[0].came_s);
    }
    let groups = by_steps.iter().filter_map(|(steps, pauses)| Group::of(*steps, pauses));
    let mut groups: Vec<Group> = groups.collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    let [first, second, ..] = &groups[..] else { return None };
    let by = first.steps / first.pause / (second.steps - first.steps);
    let share = (second.pause - first.pause) * by;
    let error = 2.0 * first.error.hypot(second.error) * by.abs();
    (share.is_finite() && error.is_finite()).then_some((share, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Sizes;
    use goodput_model::{Arrival, Known};

    const FRAME_NS: u64 = 121_120;

    /// What passes behind a shaper that lets a datagram through every 121 µs, with hosts that are up to 40 µs late.
    fn train(count: u64, passes: impl Fn(u64) -> Option<u64>) -> Train {
        let late = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let mut last_ns = 0;
        let arrivals = (0..count).filter_map(|number| {
            let came_ns = last_ns.max(passes(number)? + late(number) % 40_000);
            last_ns = came_ns;
            Some(Arrival { number, sent_ns: number * FRAME_NS, came_ns })
        });
        let missing = || Known::missing("not counted");
        Train {
            arrivals: arrivals.collect(),
            sent: count,
            refused: 0,
            sizes: Sizes { payload: 1472, packet: 1500, frame: 1514 },
            held_percent: missing(),
            rate_waits_per_call: missing(),
            batch: 1.0,
            joined: None,
        }
    }

    /// One in two passes exactly, so that only the burst at the beginning tells.
    #[test]
    fn a_policer_drops_and_holds_nothing_up() {
        let policed =
            |number: u64| (number < 40 || number.is_multiple_of(2)).then_some(number * FRAME_NS);
        assert_eq!(behind(&train(4000, policed)), Some(Behind::Drops));
        let three_of_five =
            |number: u64| (number % 5).is_multiple_of(2).then_some(number * FRAME_NS);
        assert_eq!(behind(&train(4000, three_of_five)), Some(Behind::Drops));
    }

    /// A host that is late lets a third of the datagrams come together, after a pause of its own.
    #[test]
    fn what_a_late_host_sends_together_changes_nothing() {
        let late = |came_ns: u64| {
            if (came_ns / 10_000_000).is_multiple_of(3) {
                came_ns.next_multiple_of(10_000_000)
            } else {
                came_ns
            }
        };
        let policed =
            |number: u64| (number % 5).is_multiple_of(2).then_some(late(number * FRAME_NS));
        assert_eq!(behind(&train(4000, policed)), Some(Behind::Drops));
        // Three of five come, one like the other.
        let even = |number: u64| (number / 5 * 3 + number % 5 / 2) * FRAME_NS * 5 / 3;
        let queue = |number: u64| (number % 5).is_multiple_of(2).then_some(late(even(number)));
        assert_eq!(behind(&train(4000, queue)), Some(Behind::Waits));
    }

    #[test]
    fn a_second_queue_sends_at_times_of_its_own() {
        let queue = |number: u64| match number {
            ..200 => Some(2 * number * FRAME_NS),
            _ => number.is_multiple_of(2).then_some((number + 200) * FRAME_NS),
        };
        assert_eq!(behind(&train(4000, queue)), Some(Behind::Waits));
        let endless = |number: u64| Some(2 * number * FRAME_NS);
        assert_eq!(behind(&train(4000, endless)), Some(Behind::Waits));
    }

    #[test]
    fn joined_datagrams_and_few_of_them_show_nothing() {
        let policed = |number: u64| number.is_multiple_of(2).then_some(number * FRAME_NS);
        assert_eq!(behind(&Train { batch: 8.0, ..train(4000, policed) }), None);
        assert_eq!(behind(&train(8, policed)), None);
    }
}
