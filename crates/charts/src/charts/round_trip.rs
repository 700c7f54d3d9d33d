//! Round trips over time, as the sending kernel smooths them.

use goodput_model::{Record, Role};

use super::{Chart, direction_words};
use crate::figure::{Figure, Table};
use crate::palette;
use crate::plot::{Axis, Layer, Plot, PlotError, Shape};
use crate::series::{end, flows, gauge, highest, last};
use crate::words;

/// Flows that get a line.
const MAX_LINES: usize = 6;

/// The chart.
pub const CHART: Chart =
    Chart { id: "round-trip", shows: "the smoothed round trip of each flow over time", draw };

fn draw(record: &Record) -> Result<Vec<Figure>, PlotError> {
    let mut figures = Vec::new();
    for direction in &record.result.directions {
        let Some(sender) = end(record, direction.sender) else { continue };
        let microseconds = |us: Option<u64>| us.filter(|us| *us > 0).map(|us| us as f64 / 1e6);
        let lines: Vec<_> = flows(sender, Role::Sender)
            .into_iter()
            .take(MAX_LINES)
            .map(|flow| (flow, gauge(sender, flow, |tcp| microseconds(tcp.rtt_us))))
            .filter(|(_, line)| !line.is_empty())
            .collect();
        if lines.is_empty() {
            continue;
        }
        let least = direction.min_rtt_us.value().map(|us| us / 1e6);
        let (id, of) = direction_words(record, direction.sender);
        let alt = alt(direction.rtt_us.value().map(|us| us / 1e6), least);
        let svg = plot(&lines, least).svg(&alt)?;
        let mut table = Table::new(["flow", "shortest seen", "longest"]);
        for (flow, line) in &lines {
            let shortest = line.iter().map(|(_, s)| *s).fold(f64::INFINITY, f64::min);
            table.row([
                flow.to_string(),
                words::seconds(shortest),
                words::seconds(highest([&line[..]])),
            ]);
        }
        let title = format!("Round trip over time{of}");
        figures.push(Figure { id: format!("round-trip{id}"), title, alt, svg: Some(svg), table });
    }
    Ok(figures)
}

fn alt(under_load: Option<f64>, least: Option<f64>) -> String {
    let said = |what: &str, value: Option<f64>| {
        value.map(|s| format!("{what} {}", words::seconds(s))).unwrap_or_default()
    };
    format!("Smoothed round trip{}{}.", said(": under load", under_load), said(", at best", least))
}

fn plot(lines: &[(u16, Vec<(f64, f64)>)], least: Option<f64>) -> Plot {
    let all = || lines.iter().map(|(_, line)| &line[..]);
    let until = last(all());
    let mut layers = Vec::new();
    if let Some(least) = least {
        let level = vec![(0.0, least), (until, least)];
        layers.push(Layer::named("shortest", palette::GREY, Shape::Dashed(level)));
    }
    for (at, (flow, line)) in lines.iter().enumerate() {
        let colour = palette::LINES[at % palette::LINES.len()];
        layers.push(Layer::named(format!("flow {flow}"), colour, Shape::Line(line.clone())));
    }
    let x = Axis { title: "", range: 0.0..until, label: words::seconds };
    let y = Axis { title: "", range: 0.0..highest(all()) * 1.3, label: words::seconds };
    Plot { height: 240, x, y, layers }
}
