//! An axis: what it counts, from where to where, and which of its places have a label.

use std::ops::Range;

use plotters::coord::ranged1d::{BoldPoints, DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;

use crate::clock::{self, Tick};
use crate::words::plain;

/// Letters between two labels that stand beside each other, at least.
const LETTERS_APART: f64 = 2.0;

/// An axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it counts, with its unit; empty if its labels say so.
    pub title: String,
    /// Its ends.
    pub range: Range<f64>,
    /// How a value on it is written; empty for no label there.
    pub label: fn(f64) -> String,
    /// Which values have a label.
    pub ticks: Ticks,
}

/// The values of an axis that have a label and a line of the grid.
#[derive(Debug, Clone, PartialEq)]
pub enum Ticks {
    /// Round numbers.
    Round,
    /// Round whole numbers, of things that are counted.
    Whole,
    /// Round clock times, UTC, of an axis in seconds since 1970.
    Clock,
    /// These values, with their labels, in rising order; those of which the labels have room.
    At(Vec<Tick>),
}

impl Axis {
    /// An axis without a title, with labels at round numbers.
    pub fn new(range: Range<f64>, label: fn(f64) -> String) -> Self {
        Self { title: String::new(), range, label, ticks: Ticks::Round }
    }

    /// An axis whose places mean nothing, such as that of rows.
    pub fn bare(range: Range<f64>) -> Self {
        Self::new(range, |_| String::new())
    }

    /// The same with a title.
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: plain(&title.into()), ..self }
    }

    /// The same with labels there.
    pub fn with_ticks(self, ticks: Ticks) -> Self {
        Self { ticks, ..self }
    }

    /// The labelled values: about `most` of them, or fewer if a line of so many `letters` has no room.
    pub fn labelled(&self, most: usize, letters: usize) -> Vec<Tick> {
        let written = |values: Vec<f64>| {
            let all = values.into_iter().map(|value| (value, (self.label)(value)));
            all.filter(|(_, label)| !label.is_empty()).collect()
        };
        match &self.ticks {
            Ticks::Round => written(self.round(most)),
            Ticks::Whole => written(self.whole(most)),
            Ticks::Clock => self.with_room(&clock::ticks(&self.range, most), letters),
            Ticks::At(all) => self.with_room(all, letters),
        }
    }

    /// Letters of the label of an end, which may stand at the very end.
    pub fn letters_of_end(&self, end: f64) -> usize {
        match &self.ticks {
            Ticks::At(all) => all.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0),
            Ticks::Clock => clock::LONGEST_LABEL.len(),
            _ => (self.label)(end).chars().count(),
        }
    }

    /// How the library places values, with these labels.
    pub fn scale(&self, ticks: &[Tick]) -> Scale {
        let labelled = ticks.iter().map(|(value, _)| *value).collect();
        Scale { placed: self.range.clone().into(), labelled }
    }

    fn round(&self, most: usize) -> Vec<f64> {
        RangedCoordf64::from(self.range.clone()).key_points(BoldPoints(most))
    }

    /// Whole numbers, one, two or five times a power of ten apart.
    fn whole(&self, most: usize) -> Vec<f64> {
        let Range { start, end } = self.range;
        let least = (end - start) / most.max(1) as f64;
        let power = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
        let step = step.into_iter().find(|step| *step >= least).unwrap_or(least).max(1.0).round();
        let first = (start / step).ceil();
        let values = (0..=most).map(|number| (first + number as f64) * step);
        values.filter(|value| self.range.contains(value) || *value == end).collect()
    }

    /// Those that don't touch the label before them.
    fn with_room(&self, all: &[Tick], letters: usize) -> Vec<Tick> {
        let Range { start, end } = self.range;
        let mut free_from = f64::NEG_INFINITY;
        let has_room = |(value, label): &&Tick| {
            let middle = (value - start) / (end - start) * letters as f64;
            let half = label.chars().count() as f64 / 2.0;
            let has_room = middle - half >= free_from;
            if has_room {
                free_from = middle + half + LETTERS_APART;
            }
            has_room
        };
        all.iter().filter(has_room).cloned().collect()
    }
}

/// An axis as the library reads it.
pub struct Scale {
    placed: RangedCoordf64,
    labelled: Vec<f64>,
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.placed.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Between the labels are no fainter lines.
        if hint.weight().allow_light_points() { Vec::new() } else { self.labelled.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.placed.range()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    fn values(axis: &Axis, most: usize) -> Vec<f64> {
        axis.labelled(most, 80).into_iter().map(|(value, _)| value).collect()
    }

    #[test]
    fn whole_numbers_are_round_and_few() {
        let of = |to: f64| Axis::new(0.0..to, words::short).with_ticks(Ticks::Whole);
        assert_eq!(values(&of(3.0), 6), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(values(&of(11.0), 6), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(values(&of(4.4e6), 6).last(), Some(&4e6));
        let far = Axis::new(12.0..16.0, words::short).with_ticks(Ticks::Whole);
        assert_eq!(values(&far, 3), [12.0, 14.0, 16.0]);
        assert!(values(&of(1.7e308), 6).len() <= 7);
    }

    #[test]
    fn labels_that_would_touch_are_left_out() {
        let at = |value: f64| (value, "1234".to_owned());
        let ticks = Ticks::At([0.0, 1.0, 5.0, 10.0].map(at).into());
        let axis = Axis::new(0.0..10.0, words::short).with_ticks(ticks);
        let shown = |letters| {
            axis.labelled(7, letters).into_iter().map(|(value, _)| value).collect::<Vec<_>>()
        };
        assert_eq!(shown(80), [0.0, 1.0, 5.0, 10.0]);
        assert_eq!(shown(20), [0.0, 5.0, 10.0]);
        assert_eq!(shown(10), [0.0, 10.0]);
    }

    #[test]
    fn what_has_no_label_has_no_line_of_the_grid() {
        let axis = Axis::new(-1.0..4.0, words::rate);
        assert!(values(&axis, 6).iter().all(|value| *value >= 0.0));
        assert!(values(&Axis::bare(0.0..9.0), 6).is_empty());
    }
}
