//! A record as pictures: charts in SVG, and the page or the ticket that holds them.
//!
//! ```text
//! record ──▶ chart (one file each) ──▶ plot ──▶ SVG
//!                      └── table ──▶ the same numbers, to read
//! figures ──▶ page (HTML, self-contained)
//!         └─▶ ticket (Markdown, SVG files beside it)
//! ```
//!
//! Pure: it reads no file and no clock. Everything that a peer may have written is escaped where it enters a page.
#![forbid(unsafe_code)]
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod answered;
mod axis;
mod charts;
mod clip;
mod clock;
mod coded;
mod figure;
mod forest;
mod kin;
mod limit;
mod moments;
mod one_run;
mod over_time;
mod page;
mod pair;
mod palette;
mod plot;
mod section;
mod series;
mod shared_axes;
mod sketch;
mod thin;
mod ticket;
mod words;

pub use charts::{ALL, Chart};
pub use coded::coded;
pub use figure::{Figure, Of, Picture, Table};
pub use over_time::{Moment, over_time};
pub use page::{Shown, page, printed, sections, style, subject, summary, title};
pub use pair::side_by_side;
pub use plot::PlotError;
pub use section::section;
pub use ticket::{Ticket, ticket};

use goodput_model::Record;

use kin::Kin;
use sketch::{Sketch, share_axes};

/// Every figure of a record, in the order in which a reader needs them; those of charts of which `wanted` is true. A chart
/// that can't be drawn says why in its place.
pub fn figures(record: &Record, wanted: impl Fn(&Chart) -> bool) -> Vec<Figure> {
    drawn(sketches(record, wanted))
}

/// Every figure of two records, of charts of which `wanted` is true; those of one kind have the same axes.
pub fn figures_of_both(records: [&Record; 2], wanted: impl Fn(&Chart) -> bool) -> [Vec<Figure>; 2] {
    let mut both = records.map(|record| sketches(record, &wanted));
    share_axes(&Kin::of(records), both.each_mut().map(|sketches| &mut sketches[..]));
    both.map(drawn)
}

fn sketches(record: &Record, wanted: impl Fn(&Chart) -> bool) -> Vec<(Of, Sketch)> {
    let of = |chart: &'static Chart| {
        (chart.draw)(record).into_iter().map(move |sketch| (chart.of, sketch))
    };
    ALL.iter().filter(|chart| wanted(chart)).flat_map(of).collect()
}

fn drawn(sketches: Vec<(Of, Sketch)>) -> Vec<Figure> {
    sketches.into_iter().map(|(of, sketch)| sketch.figure(of)).collect()
}
