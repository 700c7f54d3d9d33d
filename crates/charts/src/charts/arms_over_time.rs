//! The two arms of a change over time: the rate of a run of each, and below it who limited when.

use goodput_model::answer::arm_name;
use goodput_model::{ArmResult, Comparison, Record, ShownRun};

use super::{Chart, band};
use crate::axis::Axis;
use crate::clip::Point;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::series::{axis_height, axis_length, growth_of};
use crate::sketch::Sketch;
use crate::words;

/// Height of each arm's band of limiters, with the name above it, as a share of the highest rate.
const BAND_SHARE: f64 = 0.3;

/// The part of that which is the name.
const NAME_SHARE: f64 = 0.4;

/// The chart.
pub const CHART: Chart = Chart {
    id: "arms-over-time",
    shows: "a run of the baseline and one of the arm that differs most, over time, with who limited when",
    of: Of::All,
    draw,
};

/// An arm that has a run to look at.
struct Shown<'a> {
    number: usize,
    name: String,
    run: &'a ShownRun,
    rates: Vec<Point>,
}

fn draw(record: &Record) -> Vec<Sketch> {
    record.comparison.iter().filter_map(figure).collect()
}

fn figure(comparison: &Comparison) -> Option<Sketch> {
    let arms = comparison.arms.iter().enumerate();
    let arms: Vec<_> = arms.filter_map(|(number, arm)| shown(comparison, number, arm)).collect();
    if arms.len() < 2 {
        return None;
    }
    let said: Vec<_> = arms.iter().map(in_words).collect();
    let alt = format!("Of each arm the run with the median goodput. {}", said.join(" "));
    let table = table(&arms);
    let title = "A run of each arm over time".into();
    Some(Sketch { id: "arms-over-time".into(), title, alt, plot: Some(plot(&arms)), table })
}

fn shown<'a>(comparison: &Comparison, number: usize, arm: &'a ArmResult) -> Option<Shown<'a>> {
    let run = arm.shown.as_ref()?;
    let bits = run.received.iter().map(|by| (by.at_s, by.bytes.0 as f64 * 8.0));
    let rates = growth_of(bits.collect());
    (!rates.is_empty()).then(|| Shown { number, name: arm_name(comparison, arm), run, rates })
}

fn plot(arms: &[Shown]) -> Plot {
    let top = axis_height(arms.iter().map(|arm| &arm.rates[..])) * 1.1;
    let height = BAND_SHARE * top;
    let until = axis_length(arms.iter().map(|arm| &arm.rates[..]));
    let line = |arm: &Shown| {
        let line = Shape::Line(arm.rates.clone());
        Layer::named(arm.name.clone(), palette::of_arm(arm.number), line)
    };
    let mut layers: Vec<Layer> = arms.iter().map(line).collect();
    let begins = |number: usize| -(number as f64) * height;
    let bands = arms.iter().enumerate().map(|(number, arm)| {
        let none = begins(number) - NAME_SHARE * height;
        (&arm.run.slices[..], [none, begins(number) - 0.95 * height])
    });
    layers.extend(band::layers_of(&bands.collect::<Vec<_>>()));
    let names = arms.iter().enumerate();
    let names =
        names.map(|(number, arm)| ((0.0, begins(number) - 0.05 * height), arm.name.clone()));
    layers.push(Layer::unnamed(palette::INK, Shape::Words(names.collect())));
    let x = Axis::new(0.0..until, words::seconds);
    let y = Axis::new(begins(arms.len())..top, words::rate);
    Plot { height: 340, x, y, layers }
}

/// What an arm's run shows, as a sentence.
fn in_words(arm: &Shown) -> String {
    let rates = || arm.rates.iter().map(|(_, rate)| *rate);
    let [least, most] = [rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)];
    let [least, most] = [least, most].map(words::rate);
    let limited = band::limiters(&arm.run.slices);
    let limited = if limited.is_empty() { "unknown limiters".into() } else { limited };
    format!("{}: between {least} and {most}, limited by {limited}.", arm.name)
}

/// The rates of both runs. Their samples have times of their own.
fn table(arms: &[Shown]) -> Table {
    let mut table = Table::new(["arm", "at", "goodput"]);
    for arm in arms {
        for (at_s, rate) in &arm.rates {
            table.row([arm.name.clone(), words::seconds(*at_s), words::rate(*rate)]);
        }
    }
    table
}
