//! The goodput of each flow over the whole run: whether flows share alike.

use goodput_model::{End, Record, Role};

use super::{Chart, direction_words};
use crate::axis::Axis;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::series::{end, flow_of, flows};
use crate::sketch::Sketch;
use crate::words;

/// The chart.
pub const CHART: Chart = Chart {
    id: "flows",
    shows: "the goodput of each flow over the whole run, the fastest first",
    of: Of::OneRun,
    draw,
};

/// A flow's number and its payload per second, bit/s.
type FlowRate = (u16, f64);

fn draw(record: &Record) -> Vec<Sketch> {
    let mut figures = Vec::new();
    for direction in &record.result.directions {
        let receiver = end(record, direction.sender.other());
        let rates = receiver.and_then(rates).unwrap_or_default();
        if rates.len() > 1 {
            let (id, of) = direction_words(record, direction.sender);
            figures.push(figure(format!("flows{id}"), &of, &rates));
        }
    }
    figures
}

/// What arrived of each flow between the first and the last count, the fastest first.
fn rates(receiver: &End) -> Option<Vec<FlowRate>> {
    let mut detailed = receiver.samples.iter().filter(|sample| !sample.flows.is_empty());
    let (first, last) = (detailed.next()?, detailed.next_back()?);
    let seconds = last.at_s - first.at_s;
    let rate = |flow: u16| -> Option<FlowRate> {
        let grown = flow_of(last, flow)?.bytes.saturating_sub(flow_of(first, flow)?.bytes);
        Some((flow, grown as f64 * 8.0 / seconds))
    };
    let mut rates: Vec<_> = flows(receiver, Role::Receiver).into_iter().filter_map(rate).collect();
    rates.sort_by(|a, b| b.1.total_cmp(&a.1));
    (seconds > 0.0).then_some(rates)
}

fn figure(id: String, of: &str, rates: &[FlowRate]) -> Sketch {
    let all: f64 = rates.iter().map(|(_, rate)| rate).sum();
    let mut table = Table::new(["flow", "goodput", "share of all"]);
    for (flow, rate) in rates {
        let share = if all > 0.0 { words::percent(rate / all * 100.0) } else { "none".into() };
        table.row([flow.to_string(), words::rate(*rate), share]);
    }
    let (fastest, slowest) = (rates[0].1, rates[rates.len() - 1].1);
    let mean = all / rates.len() as f64;
    let alt = format!(
        "{} flows, between {} and {} over the whole run; an even share is {}.",
        rates.len(),
        words::rate(slowest),
        words::rate(fastest),
        words::rate(mean)
    );
    let plot = Some(plot(rates, fastest, mean));
    Sketch { id, title: format!("Goodput of each flow{of}"), alt, plot, table }
}

fn plot(rates: &[FlowRate], fastest: f64, mean: f64) -> Plot {
    let count = rates.len() as f64;
    let bars = rates.iter().zip(0_u32..).map(|((_, rate), at)| {
        let left = f64::from(at);
        [(left + 0.1, 0.0), (left + 0.9, *rate)]
    });
    let layers = vec![
        Layer::named("flows", palette::BLUE, Shape::Boxes(bars.collect())),
        Layer::named(
            "even share",
            palette::ORANGE,
            Shape::Dashed(vec![(0.0, mean), (count, mean)]),
        ),
    ];
    let x = Axis::bare(0.0..count).titled("flows, the fastest first");
    let y = Axis::new(0.0..fastest.max(1.0) * 1.15, words::rate);
    Plot { height: 220, x, y, layers }
}
