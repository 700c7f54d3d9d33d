//! A first guess of the rate, without knowing what holds it.
//!
//! What comes through a token bucket lies below a line, `b + r t`, and on it whenever the bucket is empty. Anything that
//! delays an arrival only moves it further below. So the least concave curve above all arrivals is the line, after a
//! steeper part while the bucket empties. The bend between the two is the point farthest above the straight line from
//! the curve's beginning to its end.

use crate::trace::Trace;

/// Smallest height of the bend above the chord, frames. Arrivals that are close together or apart by
/// chance make smaller bends.
const MIN_BEND_FRAMES: f64 = 2.0;

/// The first guess.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rough {
    /// Bytes per second from the bend to the end.
    pub(crate) rate: f64,
    /// When the rate begins to hold, seconds.
    pub(crate) from_s: f64,
}

type Point = (f64, f64);

pub(crate) fn line(trace: &Trace) -> Rough {
    let points = trace.came.iter().enumerate();
    let points: Vec<Point> =
        points.map(|(place, came)| (came.came_s, trace.bytes_with(place))).collect();
    let hull = concave_majorant(&points);
    let (first, last) = (hull[0], hull[hull.len() - 1]);
    let slope = |from: Point| (last.1 - from.1) / (last.0 - from.0);
    let whole = slope(first);
    let above = |point: &Point| point.1 - first.1 - whole * (point.0 - first.0);
    let bend = hull[..hull.len() - 1].iter().copied().max_by(|a, b| above(a).total_cmp(&above(b)));
    match bend {
        Some(bend) if above(&bend) >= MIN_BEND_FRAMES * trace.frame => {
            Rough { rate: slope(bend), from_s: bend.0 }
        }
        _ => Rough { rate: whole, from_s: 0.0 },
    }
}

/// The corners of the least concave curve above points that are sorted by the first number (Andrew's monotone chain).
fn concave_majorant(points: &[Point]) -> Vec<Point> {
    let mut hull: Vec<Point> = Vec::new();
    for &point in points {
        while hull.last().is_some_and(|last| last.0 >= point.0) {
            hull.pop();
        }
        while let [.., before, last] = hull[..]
            && turns_up(before, last, point)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

fn turns_up(a: Point, b: Point, c: Point) -> bool {
    (b.1 - a.1) * (c.0 - a.0) <= (c.1 - a.1) * (b.0 - a.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_majorant_has_the_corners_alone() {
        let points = [(0.0, 1.0), (1.0, 1.5), (2.0, 4.0), (3.0, 4.1), (4.0, 5.0)];
        assert_eq!(concave_majorant(&points), [(0.0, 1.0), (2.0, 4.0), (4.0, 5.0)]);
        assert_eq!(
            concave_majorant(&[(0.0, 1.0), (0.0, 2.0), (1.0, 3.0)]),
            [(0.0, 2.0), (1.0, 3.0)]
        );
    }
}
