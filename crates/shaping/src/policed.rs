//! The steps from one empty bucket of a policer to the next, without those in which it was full for a while.
//!
//! A policer's bucket is empty when it drops a datagram, and wastes what comes in while it is full. When the last of
//! several was dropped is not known, so after a pause that may have filled the bucket, it is not known to be empty.

use goodput_model::ShapingKind;

use crate::empty::Empty;
use crate::held::Held;
use crate::levels::levels;
use crate::rough::Rough;
use crate::trace::{Came, Trace};

/// Longest of the short times between drops, as a multiple of their lower quartile: the shortest differ by one datagram
/// of the train.
const SHORT_TIMES: f64 = 2.0;
/// How often rate and depth are estimated from the steps that the last estimates leave. On kept trains the second time
/// changed less than 0.1 %.
const ROUNDS: usize = 3;

/// The steps. Which of them count depends on rate and depth, and these on the steps. The first estimate is that of the
/// short times between drops: it is too high, so at first too few steps count, and none that was full for a while.
pub(crate) fn steps(trace: &Trace, empty: &Empty, rough: &Rough) -> Vec<Held> {
    let mut counted = short(all(trace, &empty.0));
    for _ in 0..ROUNDS {
        let rate = pooled(&counted).unwrap_or(rough.rate);
        let levels = levels(trace, ShapingKind::Policer, &Rough { rate, ..*rough });
        let depth = empty.0.first().map_or(trace.frame, |first| levels[*first]);
        let bucket = Bucket { rate, depth };
        let known: Vec<usize> =
            empty.0.iter().copied().filter(|place| bucket.is_empty_at(trace, *place)).collect();
        let pairs = known.windows(2).filter(|two| !bucket.was_full(trace, two[0], two[1]));
        counted = pairs.map(|two| step(trace, two)).collect();
    }
    counted
}

/// Bytes and bytes per second.
struct Bucket {
    rate: f64,
    depth: f64,
}

impl Bucket {
    /// Whether the bucket can't have filled since the arrival before, although a datagram was dropped in between.
    fn is_empty_at(&self, trace: &Trace, place: usize) -> bool {
        place > 0 && self.came_in(trace, place) < self.depth
    }

    /// Whether it may have been full between two such places. At the first, it has at most what came in since the arrival
    /// before.
    fn was_full(&self, trace: &Trace, from: usize, to: usize) -> bool {
        let mut lacks = self.depth.min(self.depth - self.came_in(trace, from) + trace.frame);
        for place in from + 1..to {
            lacks -= self.came_in(trace, place);
            if lacks <= 0.0 {
                return true;
            }
            lacks += trace.frame;
        }
        false
    }

    /// What came in since the arrival before, bytes.
    fn came_in(&self, trace: &Trace, place: usize) -> f64 {
        self.rate * (passed_s(&trace.came[place]) - passed_s(&trace.came[place - 1]))
    }
}

/// When the policer let an arrival through: it came at once, whenever the receiver saw it.
fn passed_s(came: &Came) -> f64 {
    came.came_s - came.wait_s
}

fn step(trace: &Trace, two: &[usize]) -> Held {
    Held::between(trace, two[0], two[1], passed_s)
}

fn all(trace: &Trace, places: &[usize]) -> Vec<Held> {
    places.windows(2).map(|two| step(trace, two)).collect()
}

fn short(steps: Vec<Held>) -> Vec<Held> {
    let mut times: Vec<f64> = steps.iter().map(|step| step.seconds).collect();
    times.sort_by(f64::total_cmp);
    let longest_s = times.get(times.len() / 4).map_or(0.0, |quartile| SHORT_TIMES * quartile);
    steps.into_iter().filter(|step| step.seconds <= longest_s).collect()
}

fn pooled(steps: &[Held]) -> Option<f64> {
    let all: Held = steps.iter().copied().sum();
    (all.seconds > 0.0).then(|| all.rate())
}
