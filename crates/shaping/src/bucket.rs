//! How deep the bucket is: what came after a pause, less what the rate gave meanwhile.

use goodput_model::{Estimate, Missing, ShapingKind, median};

use crate::empty::Empty;
use crate::trace::Trace;

/// Arrivals at an empty bucket that are looked at. Later ones add the error of the rate over a longer time.
const LOOKED_AT: usize = 32;

/// What a bucket of endless depth lacks after each arrival: it drains at the rate, and each frame adds its length (the
/// generic cell rate algorithm as a leaky bucket, ITU-T I.371). When the real bucket is empty, that is its depth.
///
/// Bytes, for each arrival. Frames that did not wait passed when they were sent; the receiver's lateness would look like a
/// pause. While frames wait, the bucket can't fill.
pub(crate) fn levels(trace: &Trace, kind: ShapingKind, empty: &Empty, rate: f64) -> Vec<f64> {
    let first = empty.0.first().copied().unwrap_or(usize::MAX);
    // The bucket was full before the first.
    let (mut level, mut last_s) = (0.0_f64, f64::NEG_INFINITY);
    let each = trace.came.iter().enumerate().map(|(place, came)| {
        let waits = kind == ShapingKind::Shaper && place >= first;
        let passed_s = if waits { came.came_s } else { came.came_s - came.wait_s };
        level -= rate * (passed_s - last_s);
        level = if waits { level } else { level.max(0.0) } + trace.frame;
        last_s = passed_s;
        level
    });
    each.collect()
}

/// Bytes.
pub(crate) fn depth(
    trace: &Trace,
    kind: ShapingKind,
    empty: &Empty,
    rate: &Estimate,
) -> Result<Estimate, Missing> {
    let levels = levels(trace, kind, empty, rate.value);
    let at = &empty.0[..LOOKED_AT.min(empty.0.len())];
    let seen = || at.iter().map(|place| levels[*place]);
    let (Some(value), Some(last)) = (median(seen()), at.last()) else {
        return Err(Missing::because("the bucket was never seen empty"));
    };
    let drift = (rate.high - rate.value) * trace.came[*last].came_s;
    Ok(Estimate {
        value,
        low: seen().fold(value - trace.frame, f64::min) - drift,
        high: seen().fold(value + trace.frame, f64::max) + drift,
    })
}
