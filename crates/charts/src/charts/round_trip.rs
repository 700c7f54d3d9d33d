//! Round trips over time, as the sending kernel smooths them.

use std::collections::BTreeMap;

use goodput_model::{Record, Role, median};

use super::{Chart, direction_words};
use crate::axis::Axis;
use crate::clip::Point;
use crate::figure::{Of, Table};
use crate::moments::{self, Column};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::series::{axis_height, axis_length, end, flows, gauge, highest};
use crate::sketch::Sketch;
use crate::words;

/// Flows that get a colour each; more have one colour, and their median.
const MAX_COLOURS: usize = palette::LINES.len();

/// A flow's number and its round trips over time, seconds.
type FlowLine = (u16, Vec<Point>);

/// The chart.
pub const CHART: Chart = Chart {
    id: "round-trip",
    shows: "the smoothed round trip of each flow over time",
    of: Of::OneRun,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let mut figures = Vec::new();
    for direction in &record.result.directions {
        let Some(sender) = end(record, direction.sender) else { continue };
        let microseconds = |us: Option<u64>| us.filter(|us| *us > 0).map(|us| us as f64 / 1e6);
        let lines: Vec<FlowLine> = flows(sender, Role::Sender)
            .into_iter()
            .map(|flow| (flow, gauge(sender, flow, |tcp| microseconds(tcp.rtt_us))))
            .filter(|(_, line)| !line.is_empty())
            .collect();
        if lines.is_empty() {
            continue;
        }
        let least = direction.min_rtt_us.value().map(|us| us / 1e6);
        let (id, of) = direction_words(record, direction.sender);
        let under_load = direction.rtt_us.value().map(|us| us / 1e6);
        let alt = alt(under_load, least) + &slowest(&lines);
        let plot = plot(&lines, least);
        let table = table(&lines);
        let count = lines.len();
        let flows = if count > 1 { format!(", {count} flows") } else { String::new() };
        let title = format!("Round trip over time{of}{flows}");
        figures.push(Sketch { id: format!("round-trip{id}"), title, alt, plot: Some(plot), table });
    }
    figures
}

fn alt(under_load: Option<f64>, least: Option<f64>) -> String {
    let said = |what: &str, value: Option<f64>| {
        value.map(|s| format!("{what} {}", words::seconds(s))).unwrap_or_default()
    };
    format!("Smoothed round trip{}{}.", said(": under load", under_load), said(", at best", least))
}

/// Which of several flows had the longest round trip: of many, the picture does not say.
fn slowest(lines: &[FlowLine]) -> String {
    let longest = |(_, line): &FlowLine| highest([&line[..]]);
    let slowest = lines.iter().max_by(|one, other| longest(one).total_cmp(&longest(other)));
    match slowest {
        Some(line) if lines.len() > 1 => {
            format!(" Flow {} had the longest: {}.", line.0, words::seconds(longest(line)))
        }
        _ => String::new(),
    }
}

/// Each flow over time; of many, the shortest, the median and the longest at each moment.
fn table(lines: &[FlowLine]) -> Table {
    if lines.len() <= MAX_COLOURS {
        let column = |(flow, line)| Column::of(format!("flow {flow}"), line);
        let columns: Vec<_> = lines.iter().map(|(flow, line)| column((flow, line))).collect();
        return moments::table(&[], &columns, words::seconds);
    }
    let at_each = |choose: fn(Vec<f64>) -> Option<f64>| over_flows(lines, choose);
    let [shortest, median, longest] = [
        at_each(|all| all.into_iter().reduce(f64::min)),
        at_each(median),
        at_each(|all| all.into_iter().reduce(f64::max)),
    ];
    let columns = [
        Column::of("shortest of the flows", &shortest),
        Column::of("median", &median),
        Column::of("longest of the flows", &longest),
    ];
    moments::table(&[], &columns, words::seconds)
}

fn plot(lines: &[FlowLine], least: Option<f64>) -> Plot {
    let all = || lines.iter().map(|(_, line)| &line[..]);
    let until = axis_length(all());
    let mut layers = Vec::new();
    if let Some(least) = least {
        let level = vec![(0.0, least), (until, least)];
        layers.push(Layer::named("shortest", palette::GREY, Shape::Dashed(level)));
    }
    layers.extend(layers_of(lines));
    let x = Axis::new(0.0..until, words::seconds);
    let y = Axis::new(0.0..axis_height(all()) * 1.3, words::seconds);
    Plot { height: 240, x, y, layers }
}

fn layers_of(lines: &[FlowLine]) -> Vec<Layer> {
    if lines.len() > MAX_COLOURS {
        let all = lines.iter().enumerate().map(|(number, (_, line))| Layer {
            name: (number == 0).then(|| format!("each of {} flows", lines.len())),
            ..Layer::unnamed(palette::LINES[0], Shape::Thin(line.clone()))
        });
        let median = Layer::named("median", palette::BLUE, Shape::Line(over_flows(lines, median)));
        return all.chain([median]).collect();
    }
    let named = |((flow, line), colour): (&FlowLine, _)| {
        Layer::named(format!("flow {flow}"), colour, Shape::Line(line.clone()))
    };
    lines.iter().zip(palette::LINES).map(named).collect()
}

/// One value of all flows at each time.
fn over_flows(lines: &[FlowLine], choose: impl Fn(Vec<f64>) -> Option<f64>) -> Vec<Point> {
    let mut at: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (time, value) in lines.iter().flat_map(|(_, line)| line) {
        // Times are not below zero, so their bits are in the order of their values.
        at.entry(time.to_bits()).or_default().push(*value);
    }
    at.into_iter().filter_map(|(time, all)| Some((f64::from_bits(time), choose(all)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flow_has_a_line_and_many_have_their_median() {
        let line = |flow: u16| (flow, vec![(0.0, f64::from(flow)), (1.0, 2.0 * f64::from(flow))]);
        let few: Vec<FlowLine> = (0..6).map(line).collect();
        let many: Vec<FlowLine> = (0..65).map(line).collect();
        let names =
            |lines: &[FlowLine]| layers_of(lines).into_iter().filter_map(|l| l.name).count();
        assert_eq!((layers_of(&few).len(), names(&few)), (6, 6));
        assert_eq!((layers_of(&many).len(), names(&many)), (66, 2));
        assert_eq!(over_flows(&many, median), [(0.0, 32.0), (1.0, 64.0)]);
        assert_eq!(table(&few).columns.len(), 7);
        let of_many = table(&many);
        let last = of_many.rows.last().unwrap();
        assert_eq!(last, &["1 s", "0 s", "64 s", "128 s"], "{:?}", of_many.columns);
        assert_eq!(slowest(&many), " Flow 64 had the longest: 128 s.");
        assert_eq!(slowest(&many[..1]), "");
    }
}
