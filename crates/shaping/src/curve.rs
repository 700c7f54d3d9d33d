//! The bytes that had arrived by each time, with as many points as a picture shows.

use goodput_model::CurvePoint;

use crate::trace::Trace;

/// Largest number of points of a curve.
const MAX_CURVE_POINTS: usize = 200;

pub(crate) fn curve(trace: &Trace) -> Vec<CurvePoint> {
    let count = trace.came.len();
    let places = (0..MAX_CURVE_POINTS.min(count))
        .map(|n| n * (count - 1) / (MAX_CURVE_POINTS.min(count) - 1).max(1));
    let point = |place: usize| CurvePoint {
        at_s: trace.came[place].came_s,
        bytes: trace.bytes_with(place) as u64,
    };
    places.map(point).collect()
}
