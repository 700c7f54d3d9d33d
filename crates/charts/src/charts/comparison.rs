//! A comparison: each arm's effect with its interval beside the threshold, and each run a dot.

use goodput_model::answer::arm_name;
use goodput_model::{ArmResult, Comparison, Effect, Record, Response, Trial};

use super::Chart;
use super::in_order::in_order;
use crate::axis::Axis;
use crate::figure::{Of, Table};
use crate::forest::{ROW_PIXELS, Row, forest};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::sketch::Sketch;
use crate::words;

/// The chart.
pub const CHART: Chart = Chart {
    id: "comparison",
    shows: "each arm's difference with its interval, every run a dot, beside the threshold",
    of: Of::All,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let mut figures = Vec::new();
    if let Some(comparison) =
        record.comparison.as_ref().filter(|comparison| comparison.arms.len() > 1)
    {
        figures.extend(effects(comparison));
        figures.push(in_order(comparison));
        figures.push(runs(comparison));
    }
    figures
}

/// The goodput of every run.
fn runs(comparison: &Comparison) -> Sketch {
    let mut table = Table::new(["arm", "runs", "median goodput"]);
    let mut layers = Vec::new();
    let mut names = Vec::new();
    for (number, arm) in comparison.arms.iter().enumerate() {
        layers.extend(layers_of(comparison, arm, number));
        names.push(((0.0, -(number as f64) - 0.02), arm_name(comparison, arm)));
        let median = arm.goodput_bits_per_s.value();
        let median = median.map_or("none".into(), |rate| words::rate(rate.0));
        table.row([arm_name(comparison, arm), arm.n.to_string(), median]);
    }
    layers.push(Layer::unnamed(palette::INK, Shape::Words(names)));
    let said: Vec<_> = table.rows.iter().map(|row| format!("{} {}", row[0], row[2])).collect();
    let alt = format!(
        "Goodput of every run, and the median of each arm's runs that count: {}. {}",
        said.join("; "),
        discarded_words(comparison)
    );
    let arms = comparison.arms.len();
    let x = Axis::new(0.0..highest(comparison) * 1.05, words::rate);
    let y = Axis::bare(-(arms as f64)..0.1);
    let plot = Plot { height: 60 + ROW_PIXELS * arms as u32, x, y, layers };
    Sketch { id: "runs".into(), title: "The runs of each arm".into(), alt, plot: Some(plot), table }
}

/// The runs of an arm as dots, those that don't count as rings, and a line at the median.
fn layers_of(comparison: &Comparison, arm: &ArmResult, number: usize) -> [Layer; 3] {
    let y = -(number as f64);
    let points = |rates: &mut dyn Iterator<Item = f64>| rates.map(|rate| (rate, y - 0.6)).collect();
    let median = arm.goodput_bits_per_s.value();
    let median = median.map_or(Vec::new(), |rate| vec![(rate.0, y - 0.85), (rate.0, y - 0.35)]);
    let shapes = [
        Shape::Dots(points(&mut comparison.counted_rates(number).map(|rate| rate.0))),
        Shape::Rings(points(&mut discarded(comparison, number))),
        Shape::Line(median),
    ];
    shapes.map(|shape| Layer::unnamed(palette::of_arm(number), shape))
}

/// The highest goodput that is drawn, bit/s; 1 if there is none, so that the axis has a length.
fn highest(comparison: &Comparison) -> f64 {
    let runs = comparison.trials.iter().map(|trial| &trial.goodput_bits_per_s);
    let medians = comparison.arms.iter().map(|arm| &arm.goodput_bits_per_s);
    runs.chain(medians).filter_map(|rate| Some(rate.value()?.0)).fold(1.0, f64::max)
}

fn discarded_words(comparison: &Comparison) -> String {
    match comparison.trials.iter().filter(|trial| trial.discarded.is_some()).count() {
        0 => "No run was discarded.".into(),
        1 => "One run was discarded; a ring shows its goodput, if it has one.".into(),
        several => {
            format!("{several} runs were discarded; rings show their goodput, if they have one.")
        }
    }
}

/// Goodput of an arm's runs that don't count, of those that have one.
fn discarded(comparison: &Comparison, arm: usize) -> impl Iterator<Item = f64> {
    let is_of = move |trial: &&Trial| trial.arm == arm && trial.discarded.is_some();
    let of_arm = comparison.trials.iter().filter(is_of);
    of_arm.filter_map(|trial| Some(trial.goodput_bits_per_s.value()?.0))
}

/// The difference of each arm from the baseline, in each number by which arms are judged; of those of which one is known.
fn effects(comparison: &Comparison) -> impl Iterator<Item = Sketch> {
    let deciding = comparison.deciding();
    let deciding = differences(comparison, "effects".into(), deciding, ArmResult::primary);
    let further = comparison.responses.iter().skip(1).filter_map(|response| {
        let id = format!("effects-{}", response.name());
        differences(comparison, id, *response, |arm| further(arm, *response))
    });
    deciding.into_iter().chain(further)
}

fn further(arm: &ArmResult, response: Response) -> Option<&Effect> {
    arm.responses.iter().find(|result| result.response == response)?.against.as_ref()
}

fn differences<'a>(
    comparison: &'a Comparison,
    id: String,
    response: Response,
    against: impl Fn(&'a ArmResult) -> Option<&'a Effect>,
) -> Option<Sketch> {
    let arms = comparison.arms.iter().enumerate();
    let rows: Vec<_> = arms
        .filter_map(|(number, arm)| {
            let name = arm_name(comparison, arm);
            let (colour, burden) = (palette::of_arm(number), response.burden());
            let pairs = comparison.pairs(number, response);
            Some(Row { name, colour, effect: against(arm)?, burden, pairs })
        })
        .collect();
    let better = if response.more_is_better() { "" } else { "; less is better" };
    let title = format!("Difference in {} from the baseline{better}", response.noun());
    (!rows.is_empty()).then(|| forest(id, title, comparison.threshold_percent, &rows))
}
