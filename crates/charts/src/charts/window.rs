//! What limits what is in flight: the congestion window and the receiver's, and what is in flight.

use goodput_model::{End, Record, Role, TcpInfo};

use super::{Chart, direction_words};
use crate::axis::Axis;
use crate::clip::Point;
use crate::figure::Of;
use crate::moments::{self, Column};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::series::{axis_height, axis_length, end, flows, gauge_sum, highest};
use crate::sketch::Sketch;
use crate::words;

/// A receiver's window this many times as large as what the sender uses has no room in the panel.
const FAR: f64 = 3.0;

/// The chart.
pub const CHART: Chart = Chart {
    id: "window",
    shows: "congestion window, receiver's window and bytes in flight of all flows over time",
    of: Of::OneRun,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let mut figures = Vec::new();
    for direction in &record.result.directions {
        let Some(sender) = end(record, direction.sender) else { continue };
        let all = flows(sender, Role::Sender);
        let lines = lines(sender, &all);
        if lines.iter().all(|(_, line)| line.is_empty()) {
            continue;
        }
        let (id, of) = direction_words(record, direction.sender);
        let known = || lines.iter().filter(|(_, line)| !line.is_empty());
        let columns: Vec<_> = known().map(|(name, line)| Column::of(*name, line)).collect();
        let table = moments::table(&[], &columns, words::bytes);
        let most = |line: &[Point]| words::bytes(highest([line]));
        let said: Vec<_> =
            known().map(|(name, line)| format!("{name} up to {}", most(line))).collect();
        let of_flows = match all.len() {
            1 => String::new(),
            several => format!(", the sum of {several} flows"),
        };
        let alt = format!("Windows{of_flows}: {}.", said.join(", "));
        let plot = plot(&lines);
        let title = format!("Windows and what is in flight{of}{of_flows}");
        figures.push(Sketch { id: format!("window{id}"), title, alt, plot: Some(plot), table });
    }
    figures
}

/// The three lines, bytes: sums over the flows.
fn lines(sender: &End, flows: &[u16]) -> [(&'static str, Vec<Point>); 3] {
    let segments =
        |tcp: &TcpInfo, count: Option<u64>| Some(count? as f64 * tcp.snd_mss_bytes? as f64);
    [
        ("congestion window", gauge_sum(sender, flows, |tcp| segments(tcp, tcp.snd_cwnd_segments))),
        (
            "receiver's window",
            gauge_sum(sender, flows, |tcp| tcp.snd_wnd_bytes.map(|bytes| bytes as f64)),
        ),
        ("in flight", gauge_sum(sender, flows, |tcp| segments(tcp, tcp.unacked_segments))),
    ]
}

fn plot(lines: &[(&'static str, Vec<Point>)]) -> Plot {
    let [(_, congestion), (_, receiver), (_, flight)] = lines else {
        unreachable!("there are three lines")
    };
    let own = axis_height([&congestion[..], &flight[..]]);
    let of_receiver = highest([&receiver[..]]);
    // A receiver's window far beyond what the sender uses limits nothing: it leaves the panel instead of flattening the
    // rest, and its name says where it is.
    let is_far = !congestion.is_empty() && of_receiver > FAR * own;
    let top = if is_far { own } else { own.max(of_receiver) } * 1.25;
    let colours = [palette::BLUE, palette::ORANGE, palette::GREEN];
    let layers =
        lines.iter().zip(colours).enumerate().filter(|(_, ((_, line), _))| !line.is_empty());
    let layers = layers
        .map(|(number, ((name, line), colour))| {
            let name = match number {
                1 if is_far => format!("{name}, up to {}", words::bytes(of_receiver)),
                _ => (*name).into(),
            };
            Layer::named(name, colour, Shape::Line(line.clone()))
        })
        .collect();
    let until = axis_length(lines.iter().map(|(_, line)| &line[..]));
    let x = Axis::new(0.0..until, words::seconds);
    let y = Axis::new(0.0..top, words::bytes);
    Plot { height: 260, x, y, layers }
}
