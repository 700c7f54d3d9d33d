//! What `goodput report` takes.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use goodput_charts::Chart;

/// `goodput report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// `last`, numbers from `goodput history`, or files with JSON records
    #[arg(value_name = "RESULT", default_value = "last")]
    pub results: Vec<String>,
    /// File to write: `.html` for one page, `.md` for a text, or `.svg`
    ///
    /// The pictures of `page.md` are files beside it, like `page-rate.svg`. Several pictures of an `.svg` are named in the
    /// same way.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Draw only this chart; may be repeated
    #[arg(long, value_name = "CHART", value_parser = chart_parser())]
    pub only: Vec<&'static str>,
}

/// The ids of the charts.
fn chart_parser() -> impl TypedValueParser<Value = &'static str> {
    let value = |chart: &Chart| PossibleValue::new(chart.id).help(chart.shows);
    PossibleValuesParser::new(goodput_charts::ALL.iter().map(value)).map(|id| {
        let known = goodput_charts::ALL.iter().find(|chart| chart.id == id);
        known.map_or("", |chart| chart.id)
    })
}
