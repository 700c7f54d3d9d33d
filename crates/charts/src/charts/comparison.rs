//! A comparison as a forest plot: each run a dot, each arm's effect with its interval, beside the threshold.

use goodput_model::{ArmResult, Comparison, Record};

use super::Chart;
use crate::figure::{Figure, Table};
use crate::forest::{ROW_PIXELS, Row, forest};
use crate::palette;
use crate::plot::{Axis, Layer, Plot, PlotError, Shape};
use crate::words;

/// The chart.
pub const CHART: Chart = Chart {
    id: "comparison",
    shows: "each arm's difference with its interval, every run a dot, beside the threshold",
    draw,
};

fn draw(record: &Record) -> Result<Vec<Figure>, PlotError> {
    let mut figures = Vec::new();
    if let Some(comparison) =
        record.comparison.as_ref().filter(|comparison| comparison.arms.len() > 1)
    {
        figures.push(runs(comparison)?);
        figures.extend(effects(comparison)?);
    }
    Ok(figures)
}

/// What an arm is called.
fn name(comparison: &Comparison, arm: &ArmResult) -> String {
    let settings = comparison.settings.iter().zip(&arm.values);
    let values: Vec<_> = settings.map(|(setting, value)| format!("{setting}={value}")).collect();
    values.join(" ")
}

/// The goodput of every run.
fn runs(comparison: &Comparison) -> Result<Figure, PlotError> {
    let mut table = Table::new(["arm", "runs", "median goodput"]);
    let mut layers = Vec::new();
    let mut names = Vec::new();
    let mut top: f64 = 0.0;
    for (number, arm) in comparison.arms.iter().enumerate() {
        let y = -(number as f64);
        let rates: Vec<f64> = comparison.counted_rates(number).map(|rate| rate.0).collect();
        top = rates.iter().copied().fold(top, f64::max);
        layers.push(Layer::unnamed(
            colour(number),
            Shape::Dots(rates.iter().map(|rate| (*rate, y - 0.6)).collect()),
        ));
        let median = arm.goodput_bits_per_s.value().map(|rate| rate.0);
        top = median.into_iter().fold(top, f64::max);
        layers.extend(median.map(|rate| {
            Layer::unnamed(colour(number), Shape::Line(vec![(rate, y - 0.85), (rate, y - 0.35)]))
        }));
        names.push(((0.0, y - 0.02), name(comparison, arm)));
        let median = median.map_or("none".into(), words::rate);
        table.row([name(comparison, arm), arm.n.to_string(), median]);
    }
    layers.push(Layer::unnamed(palette::INK, Shape::Words(names)));
    let said: Vec<_> = table.rows.iter().map(|row| format!("{} {}", row[0], row[2])).collect();
    let discarded = comparison.trials.iter().filter(|trial| trial.discarded.is_some()).count();
    let alt = format!(
        "Goodput of every run, and the median of each arm's runs that count: {}. {discarded} runs were discarded.",
        said.join("; ")
    );
    let arms = comparison.arms.len();
    let x = Axis { title: "", range: 0.0..top.max(1.0) * 1.05, label: words::rate };
    let y = Axis { title: "", range: -(arms as f64)..0.1, label: |_| String::new() };
    let svg = Plot { height: 60 + ROW_PIXELS * arms as u32, x, y, layers }.svg(&alt)?;
    Ok(Figure { id: "runs".into(), title: "Every run".into(), alt, svg: Some(svg), table })
}

fn colour(arm: usize) -> plotters::style::RGBColor {
    if arm == 0 { palette::GREY } else { palette::LINES[(arm - 1) % palette::LINES.len()] }
}

/// The difference of each arm from the baseline; nothing if none is known.
fn effects(comparison: &Comparison) -> Result<Option<Figure>, PlotError> {
    let arms = comparison.arms.iter().enumerate();
    let rows: Vec<_> = arms
        .filter_map(|(number, arm)| {
            let name = name(comparison, arm);
            Some(Row { name, colour: colour(number), effect: arm.primary()? })
        })
        .collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let response = comparison.responses.first().map_or("throughput", |response| response.name());
    let title = format!("Difference in {response} from the baseline");
    forest("effects", title, comparison.threshold_percent, &rows).map(Some)
}
