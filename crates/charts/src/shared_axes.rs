//! One scale for two panels: what is higher in one is higher beside it.

use std::ops::Range;

use crate::axis::Axis;
use crate::clip::Point;
use crate::plot::{Plot, Shape};

impl Plot {
    /// Gives both panels the same axes. An axis without labels counts nothing and stays as it is.
    pub fn share_axes(&mut self, other: &mut Self) {
        if let Some(range) = joined(&self.x, &other.x) {
            self.x.range = range.clone();
            other.x.range = range;
        }
        if let Some(range) = joined(&self.y, &other.y) {
            self.stretch(range.clone());
            other.stretch(range);
        }
    }

    /// Shows this part of the vertical axis. What is below zero where nothing is labelled is a band and no value: it keeps
    /// its share of the panel.
    fn stretch(&mut self, range: Range<f64>) {
        let is_band = self.y.range.start < 0.0 && (self.y.label)(self.y.range.start).is_empty();
        if is_band {
            let factor = range.start / self.y.range.start;
            let scale = |point: &mut Point| {
                if point.1 < 0.0 {
                    point.1 *= factor;
                }
            };
            self.layers.iter_mut().for_each(|layer| each_point(&mut layer.shape, scale));
        }
        self.follow(range.end / self.y.range.end);
        self.y.range = range;
    }
}

impl Plot {
    /// Moves what has a place in the panel with the top of the axis, which is this many times as high.
    fn follow(&mut self, factor: f64) {
        let placed = self.layers.iter_mut().filter(|layer| layer.is_placed);
        let scale = |point: &mut Point| {
            if point.1 > 0.0 {
                point.1 *= factor;
            }
        };
        placed.for_each(|layer| each_point(&mut layer.shape, scale));
    }
}

/// What both axes show; `None` if one of them has no labels or no end, or if they count different things.
fn joined(one: &Axis, other: &Axis) -> Option<Range<f64>> {
    let counts = |axis: &Axis| !(axis.label)(axis.range.end).is_empty();
    let (from, to) = (one.range.start.min(other.range.start), one.range.end.max(other.range.end));
    let are_alike = counts(one) && counts(other) && one.title == other.title;
    (are_alike && from.is_finite() && to.is_finite()).then_some(from..to)
}

fn each_point(shape: &mut Shape, change: impl Fn(&mut Point)) {
    match shape {
        Shape::Line(points)
        | Shape::Thin(points)
        | Shape::Dashed(points)
        | Shape::Dots(points)
        | Shape::Rings(points) => points.iter_mut().for_each(change),
        Shape::Boxes(boxes) | Shape::Shades(boxes) => boxes.iter_mut().flatten().for_each(change),
        Shape::Words(words) => words.iter_mut().for_each(|(at, _)| change(at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::palette;
    use crate::plot::Layer;
    use crate::words;

    fn plot(until: f64, top: f64) -> Plot {
        let boxes = Shape::Boxes(vec![[(0.0, -0.2 * top), (until, 0.0)]]);
        Plot {
            height: 200,
            x: Axis::new(0.0..until, words::seconds),
            y: Axis::new(-0.2 * top..top, words::rate),
            layers: vec![Layer::unnamed(palette::BLUE, boxes)],
        }
    }

    #[test]
    fn two_panels_get_the_longer_axes_and_bands_keep_their_share() {
        let (mut one, mut other) = (plot(10.0, 1e6), plot(5.0, 4e6));
        one.share_axes(&mut other);
        for panel in [&one, &other] {
            assert_eq!((&panel.x.range, &panel.y.range), (&(0.0..10.0), &(-8e5..4e6)));
            let Shape::Boxes(boxes) = &panel.layers[0].shape else { panic!("it stays one") };
            assert!((boxes[0][0].1 + 8e5).abs() < 1.0, "{boxes:?}");
        }
    }

    /// Marks of losses stand near the top of the panel, and a line at its value.
    #[test]
    fn what_has_a_place_in_the_panel_keeps_it() {
        let mut pair = [plot(10.0, 1e6), plot(10.0, 4e6)];
        for (plot, top) in pair.iter_mut().zip([1e6, 4e6]) {
            let dots = || Shape::Dots(vec![(1.0, 0.97 * top)]);
            plot.layers.push(Layer::unnamed(palette::INK, dots()).placed());
            plot.layers.push(Layer::unnamed(palette::INK, dots()));
        }
        let [one, other] = &mut pair;
        one.share_axes(other);
        let height = |plot: &Plot, layer: usize| match &plot.layers[layer].shape {
            Shape::Dots(dots) => dots[0].1 / 1e6,
            _ => panic!("it stays one"),
        };
        for (plot, line) in pair.iter().zip([0.97, 3.88]) {
            assert!((height(plot, 1) - 3.88).abs() < 1e-9, "{}", height(plot, 1));
            assert!((height(plot, 2) - line).abs() < 1e-9, "{}", height(plot, 2));
        }
    }

    #[test]
    fn axes_without_labels_or_without_an_end_stay() {
        let bare = || Axis::bare(-3.0..0.1);
        let (mut one, mut other) = (plot(10.0, 1e6), plot(f64::INFINITY, 4e6));
        (one.y, other.y) = (bare(), Axis { range: -9.0..0.1, ..bare() });
        one.share_axes(&mut other);
        assert_eq!((&one.x.range, &one.y.range), (&(0.0..10.0), &(-3.0..0.1)));
        assert_eq!(other.y.range, -9.0..0.1);
    }
}
