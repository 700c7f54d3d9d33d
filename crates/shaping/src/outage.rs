//! Times in which the path was broken: all that was sent was lost, and no bucket explains that.
//!
//! A bucket that lets nothing through fills, and a full one lets the next datagram pass, of a policer and of a shaper. So
//! nothing that holds a rate loses all for longer than its bucket takes to fill.

use goodput_model::Estimate;

use crate::trace::{Came, Trace, Train};

/// Frames that a queue which is full drops at once, at most (net/sched/sch_fq_codel.c, `drop_batch_size`).
const MAX_DROPPED_AT_ONCE: f64 = 64.0;

/// Times in which the path was broken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outages {
    /// All of them together, seconds.
    pub(crate) seconds: f64,
    /// Their number, above zero.
    pub(crate) count: u64,
}

/// All these times; `None` if there was none. `rate` in bytes per second.
pub(crate) fn outages(
    trace: &Trace,
    train: &Train,
    rate: f64,
    bucket: Option<&Estimate>,
) -> Option<Outages> {
    let depth = bucket.map_or(0.0, |bucket| bucket.high.max(0.0));
    let explained_s = (depth + MAX_DROPPED_AT_ONCE * trace.frame) / rate;
    let each_s = trace.frame / trace.offered_bytes_per_s();
    let between = trace.came.windows(2).map(|two| between_s(&two[0], &two[1], each_s));
    let all = between.chain([after_last_s(trace, train, each_s)]);
    let broken = all.filter(|lost_s| *lost_s > explained_s);
    let (seconds, count) = broken.fold((0.0, 0), |(sum, count), lost_s| (sum + lost_s, count + 1));
    (count > 0).then_some(Outages { seconds, count })
}

/// How long all was lost between two arrivals: nothing came meanwhile, and a sender that pauses loses nothing.
fn between_s(one: &Came, next: &Came, each_s: f64) -> f64 {
    (next.came_s - one.came_s).min(next.lost_before as f64 * each_s)
}

/// The same after the last arrival. As much as waited then may be in the queue still.
fn after_last_s(trace: &Trace, train: &Train, each_s: f64) -> f64 {
    let last_number = train.arrivals.iter().map(|arrival| arrival.number).max().unwrap_or(0);
    let after = train.sent.saturating_sub(last_number.saturating_add(1));
    after as f64 * each_s - trace.came.last().map_or(0.0, |last| last.wait_s)
}
