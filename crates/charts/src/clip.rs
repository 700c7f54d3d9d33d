//! Shapes cut to their panel. A record may have any number, and the library counts pixels in 32 bits.

use std::ops::Range;

use crate::thin::thinned;

/// A point in the units of the axes.
pub type Point = (f64, f64);

/// The part of the plane that a panel shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// From left to right.
    pub x: Range<f64>,
    /// From bottom to top.
    pub y: Range<f64>,
}

impl Panel {
    /// Whether it can be drawn: both axes have a finite length.
    pub fn has_size(&self) -> bool {
        [&self.x, &self.y].iter().all(|range| {
            let length = range.end - range.start;
            length.is_finite() && length > 0.0
        })
    }

    /// Whether a point is in it.
    pub fn has(&self, (x, y): Point) -> bool {
        (self.x.start..=self.x.end).contains(&x) && (self.y.start..=self.y.end).contains(&y)
    }

    /// The parts of a line that are in it.
    pub fn line(&self, points: &[Point]) -> Vec<Vec<Point>> {
        let points: Vec<Point> = thinned(points).copied().collect();
        let mut parts: Vec<Vec<Point>> = Vec::new();
        for pair in points.windows(2) {
            let Some((from, to)) = self.segment(pair[0], pair[1]) else { continue };
            match parts.last_mut() {
                Some(part) if part.last() == Some(&from) => part.push(to),
                _ => parts.push(vec![from, to]),
            }
        }
        parts
    }

    /// The part of a box that is in it.
    pub fn cut(&self, [a, b]: [Point; 2]) -> Option<[Point; 2]> {
        let (left, right) = shared(&self.x, a.0, b.0)?;
        let (bottom, top) = shared(&self.y, a.1, b.1)?;
        Some([(left, bottom), (right, top)])
    }

    /// The part of a segment that is in it (Y. Liang and B. Barsky, "A new concept and method for line clipping", ACM
    /// Transactions on Graphics 3, 1984): from and to which share of the segment all four edges leave it inside.
    fn segment(&self, from: Point, to: Point) -> Option<(Point, Point)> {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let mut inside = 0.0..1.0;
        let edges = [
            (-dx, from.0 - self.x.start),
            (dx, self.x.end - from.0),
            (-dy, from.1 - self.y.start),
            (dy, self.y.end - from.1),
        ];
        for (towards, room) in edges {
            if !(towards.is_finite() && room.is_finite()) || (towards == 0.0 && room < 0.0) {
                return None;
            }
            if towards < 0.0 {
                inside.start = f64::max(inside.start, room / towards);
            } else if towards > 0.0 {
                inside.end = f64::min(inside.end, room / towards);
            }
        }
        let at = |share: f64| match share {
            0.0 => from,
            1.0 => to,
            share => (from.0 + share * dx, from.1 + share * dy),
        };
        (inside.start <= inside.end).then(|| (at(inside.start), at(inside.end)))
    }
}

/// What two ends have in common with a range.
fn shared(range: &Range<f64>, a: f64, b: f64) -> Option<(f64, f64)> {
    let (low, high) = (a.min(b).max(range.start), a.max(b).min(range.end));
    (low <= high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        Panel { x: 0.0..10.0, y: 0.0..10.0 }
    }

    #[test]
    fn a_line_is_cut_where_it_leaves() {
        let parts = panel().line(&[(-5.0, 5.0), (5.0, 5.0), (5.0, 1e300), (8.0, 5.0), (9.0, 5.0)]);
        assert_eq!(parts.len(), 2, "{parts:?}");
        assert_eq!(parts[0][..2], [(0.0, 5.0), (5.0, 5.0)]);
        assert!(parts.iter().flatten().all(|point| panel().has(*point)), "{parts:?}");
        let nowhere = [(f64::NAN, 1.0), (1.0, f64::INFINITY), (20.0, 20.0), (30.0, 30.0)];
        assert!(panel().line(&nowhere).is_empty());
    }

    #[test]
    fn a_box_is_cut_to_what_is_inside() {
        assert_eq!(panel().cut([(-1e12, 2.0), (1e12, 4.0)]), Some([(0.0, 2.0), (10.0, 4.0)]));
        assert_eq!(panel().cut([(11.0, 2.0), (12.0, 4.0)]), None);
        assert_eq!(
            panel().cut([(f64::NAN, 2.0), (f64::NAN, 4.0)]).map(|b| panel().has(b[0])),
            Some(true)
        );
    }

    #[test]
    fn an_axis_without_a_finite_length_is_none() {
        let without = [0.0..f64::INFINITY, 0.0..f64::NAN, 1.0..1.0, -1e308..1e308];
        for y in without {
            assert!(!Panel { x: 0.0..1.0, y }.has_size());
        }
    }
}
