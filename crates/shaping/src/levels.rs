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
    // The bucket was full before the first, whether or not that waited: in a host, or in a delay of the path.
    let (mut level, mut last_s) = (0.0_f64, None);
    let each = trace.came.iter().map(|came| {
        let waits = kind == ShapingKind::Shaper && came.wait_s >= least_s;
        let passed_s = if waits { came.came_s } else { came.came_s - came.wait_s };
        level -= rough.rate * last_s.map_or(0.0, |last_s| passed_s - last_s);
        level = if waits { level } else { level.max(0.0) } + trace.frame;
        last_s = Some(passed_s);
        level
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Came;

    /// As behind a path whose delay varies.
    #[test]
    fn the_bucket_was_full_before_a_first_datagram_that_waited() {
        let came = |number: u32| Came {
            sent_s: f64::from(number) * 0.001,
            came_s: f64::from(number) * 0.002,
            wait_s: 0.1,
            lost_before: 0,
        };
        let trace = Trace { came: (0..3).map(came).collect(), frame: 1000.0 };
        let rough = Rough { rate: 250e3, from_s: 0.0 };
        // Each adds a frame, and 500 bytes drain until the next.
        assert_eq!(levels(&trace, ShapingKind::Shaper, &rough), [1000.0, 1500.0, 2000.0]);
    }
}
