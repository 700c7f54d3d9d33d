//! Goodput over time: in all, of each flow, and who limited when.

use goodput_model::{BitRate, DirectionResult, EndName, Record};

use super::each_flow::EachFlow;
use super::{Chart, band, direction_words, losses};
use crate::axis::Axis;
use crate::clip::Point;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::series::{axis_height, axis_length, end, growth, highest};
use crate::sketch::Sketch;
use crate::thin::thinned;
use crate::words;

/// Height of the band of limiters below the axis, as a share of the highest rate.
const BAND_SHARE: f64 = 0.2;

/// Where the marks of losses are, as a share of the height above zero.
const MARKS_SHARE: f64 = 0.97;

/// The chart.
pub const CHART: Chart = Chart {
    id: "rate",
    shows: "goodput over time, in all and by flow, with losses above and the limiters of each moment below",
    of: Of::OneRun,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    record.result.directions.iter().filter_map(|direction| figure(record, direction)).collect()
}

fn figure(record: &Record, direction: &DirectionResult) -> Option<Sketch> {
    let total = total(record, direction);
    if total.is_empty() {
        return None;
    }
    let (id, of) = direction_words(record, direction.sender);
    let goodput = direction.goodput_bits_per_s;
    let alt = format!(
        "Goodput: {goodput} on average{} in the {} that count; over the whole run between {} and {}.{}",
        precision(record, direction).map_or(String::new(), |p| format!(" ± {}", words::percent(p))),
        words::seconds(direction.window_s.unwrap_or(record.result.duration_s)),
        words::rate(total.iter().map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min).max(0.0)),
        words::rate(highest([&total[..]])),
        ceiling(record, direction)
            .map_or(String::new(), |rate| format!(" The path could carry {rate}.")),
    );
    let plot = plot(record, direction, &total);
    let table = table(record, direction.sender);
    let title = format!("Goodput over time{of}");
    Some(Sketch { id: format!("rate{id}"), title, alt, plot: Some(plot), table })
}

/// The most that the path could carry in a direction. A record of an older version of both directions has that of the main
/// one.
fn ceiling(record: &Record, direction: &DirectionResult) -> Option<BitRate> {
    match &direction.ceiling_bits_per_s {
        Some(own) => own.value().copied(),
        None => {
            let of_main = direction.sender == record.verdict.sender;
            record.result.ceiling_bits_per_s.value().copied().filter(|_| of_main)
        }
    }
}

/// Half-width of the interval of the mean, percent. Of two directions, a record of an older version has only the worse one.
fn precision(record: &Record, direction: &DirectionResult) -> Option<f64> {
    let one = record.result.directions.len() == 1;
    let of_all = one.then_some(&record.result.precision_percent);
    direction.precision_percent.as_ref().or(of_all)?.value().copied()
}

fn plot(record: &Record, direction: &DirectionResult, total: &[Point]) -> Plot {
    let goodput = direction.goodput_bits_per_s.0;
    let top = axis_height([total]).max(goodput) * 1.25;
    // One far above would flatten everything else; the words below have it.
    let ceiling =
        ceiling(record, direction).map(|rate| rate.0).filter(|ceiling| *ceiling < 4.0 * top);
    let top = ceiling.map_or(top, |ceiling| top.max(ceiling * 1.15));
    let until = axis_length([total]);
    let level = |y: f64| vec![(0.0, y), (until, y)];
    let mut layers = Vec::new();
    if let Some(percent) = precision(record, direction) {
        let half = goodput * percent / 100.0;
        let shade = vec![[(0.0, (goodput - half).max(0.0)), (until, goodput + half)]];
        layers.push(Layer::named("95 % interval of the mean", palette::BLUE, Shape::Shades(shade)));
    }
    layers.extend(EachFlow::of(record, direction.sender).iter().flat_map(EachFlow::layers));
    layers.push(Layer::named("goodput", palette::BLUE, Shape::Line(total.to_vec())));
    if let Some(ceiling) = ceiling {
        layers.push(Layer::named("ceiling", palette::BROWN, Shape::Dashed(level(ceiling))));
    }
    layers.extend(losses::marks(record, direction.sender, MARKS_SHARE * top));
    if let Some(account) = band::account(record, direction.sender) {
        layers.extend(band::layers(account, -BAND_SHARE * top));
    }
    let x = Axis::new(0.0..until, words::seconds);
    let y = Axis::new(-BAND_SHARE * top..top, words::rate);
    Plot { height: 320, x, y, layers }
}

/// The goodput of a direction by the receiver's samples; by the shown intervals if it kept none.
fn total(record: &Record, direction: &DirectionResult) -> Vec<Point> {
    let samples = end(record, direction.sender.other()).map_or(&[][..], |end| &end.samples);
    let line = growth(thinned(samples), |sample| Some(sample.received_bytes as f64 * 8.0));
    if line.iter().any(|(_, rate)| *rate > 0.0) {
        return line;
    }
    let of_sender = record.intervals.iter().filter(|interval| interval.sender == direction.sender);
    of_sender
        .filter_map(|interval| Some((interval.to_s, interval.goodput_bits_per_s.value()?.0)))
        .collect()
}

/// The intervals that the report shows, with what limited each.
fn table(record: &Record, sender: EndName) -> Table {
    let mut table = Table::new(["from", "to", "goodput", "limited by"]);
    let account = band::account(record, sender);
    let flows = EachFlow::of(record, sender);
    table.columns.extend(flows.iter().flat_map(EachFlow::columns));
    for interval in record.intervals.iter().filter(|interval| interval.sender == sender) {
        let goodput = match interval.goodput_bits_per_s.get() {
            Ok(rate) => rate.to_string(),
            Err(why) => why.to_string(),
        };
        let limiter = account.map(|account| band::limited_by(account, interval));
        let limiter = limiter.filter(|text| !text.is_empty()).unwrap_or("unknown".into());
        let [from, to] = [interval.from_s, interval.to_s].map(words::seconds);
        let cells = flows.iter().flat_map(|flows| flows.cells(interval.from_s, interval.to_s));
        table.rows.push([from, to, goodput, limiter].into_iter().chain(cells).collect());
    }
    table
}
