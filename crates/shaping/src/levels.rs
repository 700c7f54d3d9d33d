//! How much a bucket of endless depth lacks.

use goodput_model::ShapingKind;

use crate::kind::least_wait_s;
use crate::rough::Rough;
use crate::trace::Trace;

/// What a bucket of endless depth lacks after each arrival: it drains at the rate, and each frame adds its length (the
/// generic cell rate algorithm as a leaky bucket, ITU-T I.371). When the real bucket is empty, that is its depth.
///
/// Bytes, for each arrival. Frames that did not wait passed when they were sent; the receiver's lateness would look like a
/// pause. While frames wait, the bucket can't fill.
pub(crate) fn levels(trace: &Trace, kind: ShapingKind, rough: &Rough) -> Vec<f64> {
    let least_s = least_wait_s(trace, rough);
    // The bucket was full before the first.
    let (mut level, mut last_s) = (0.0_f64, f64::NEG_INFINITY);
    let each = trace.came.iter().map(|came| {
        let waits = kind == ShapingKind::Shaper && came.wait_s >= least_s;
        let passed_s = if waits { came.came_s } else { came.came_s - came.wait_s };
        level -= rough.rate * (passed_s - last_s);
        level = if waits { level } else { level.max(0.0) } + trace.frame;
        last_s = passed_s;
        level
    });
    each.collect()
}
