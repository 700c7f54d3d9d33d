//! A figure before it is drawn: its axes can still be joined with those of another one.

use crate::figure::{Figure, Of, Table};
use crate::kin::Kin;
use crate::plot::Plot;

/// What a chart made of a record; the fields are those of [`Figure`].
pub struct Sketch {
    /// The chart it is of, and the direction if there are two.
    pub id: String,
    /// Heading.
    pub title: String,
    /// The most important numbers in words.
    pub alt: String,
    /// The panel; `None` if a table shows it better.
    pub plot: Option<Plot>,
    /// The numbers.
    pub table: Table,
}

impl Sketch {
    /// The figure of this sketch. A picture that can't be drawn says why in its place.
    pub fn figure(self, of: Of) -> Figure {
        let Self { id, title, alt, plot, table } = self;
        match plot.map(|plot| plot.svg(&alt)).transpose() {
            Ok(svg) => Figure { of, id, title, alt, svg, table },
            Err(why) => Figure { alt: why.to_string(), of, id, title, svg: None, table },
        }
    }
}

/// Gives sketches of one kind the same axes, so that their pictures can be compared by eye.
pub fn share_axes(kin: &Kin, [first, second]: [&mut [(Of, Sketch)]; 2]) {
    for (_, one) in first {
        let other = second.iter_mut().find(|(_, other)| kin.are([&one.id, &other.id]));
        let plots = (one.plot.as_mut(), other.and_then(|(_, other)| other.plot.as_mut()));
        if let (Some(one), Some(other)) = plots {
            one.share_axes(other);
        }
    }
}
