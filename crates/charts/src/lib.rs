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
mod charts;
mod clip;
mod coded;
mod figure;
mod forest;
mod over_time;
mod page;
mod palette;
mod plot;
mod series;
mod thin;
mod ticket;
mod words;

pub use charts::{ALL, Chart};
pub use coded::coded;
pub use figure::{Figure, Picture, Table};
pub use over_time::{Moment, over_time};
pub use page::{Shown, page, printed, section, style, summary, title};
pub use plot::PlotError;
pub use ticket::{Ticket, ticket};

use goodput_model::Record;

/// Every figure of a record, in the order in which a reader needs them; those of which `wanted` is true. A chart that
/// can't be drawn says why in its place.
pub fn figures(record: &Record, wanted: impl Fn(&Chart) -> bool) -> Vec<Figure> {
    let drawn =
        |chart: &Chart| (chart.draw)(record).unwrap_or_else(|why| vec![undrawn(chart, &why)]);
    ALL.iter().filter(|chart| wanted(chart)).flat_map(drawn).collect()
}

fn undrawn(chart: &Chart, why: &PlotError) -> Figure {
    let (id, title) = (chart.id.into(), chart.shows.into());
    Figure { id, title, alt: why.to_string(), svg: None, table: Table::default() }
}
