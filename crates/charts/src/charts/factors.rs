//! Combined settings: what each value does over all combinations, and what it does with and without another.

use goodput_model::{Burden, FactorEffect, Record};

use super::Chart;
use crate::figure::Of;
use crate::forest::{Row, forest};
use crate::palette;
use crate::sketch::Sketch;

/// The chart.
pub const CHART: Chart = Chart {
    id: "factors",
    shows: "what each value of combined settings does, with and without the others",
    of: Of::All,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let Some(comparison) = &record.comparison else { return Vec::new() };
    let response = comparison.deciding();
    let burden = response.burden();
    let rows: Vec<_> = comparison.factors.iter().flat_map(|factor| rows(factor, burden)).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let title = format!("What each value does to {}", response.noun());
    vec![forest("factors".into(), title, comparison.threshold_percent, &rows)]
}

/// One over all combinations; two if another value beside it was looked at.
fn rows(factor: &FactorEffect, burden: Option<Burden>) -> Vec<Row<'_>> {
    let FactorEffect { change, beside, effect, without, with } = factor;
    let Some(beside) = beside else {
        let name = format!("{change}, over all");
        return vec![Row { name, colour: palette::BLUE, effect, burden, pairs: Vec::new() }];
    };
    let row = |word, colour, effect| {
        let name = format!("{change} {word} {beside}");
        Row { name, colour, effect, burden, pairs: Vec::new() }
    };
    let without = without.as_ref().map(|effect| row("without", palette::GREY, effect));
    let with = with.as_ref().map(|effect| row("with", palette::ORANGE, effect));
    without.into_iter().chain(with).collect()
}
