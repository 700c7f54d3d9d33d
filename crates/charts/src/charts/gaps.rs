//! The pauses between packets, as histograms: those of datagrams that arrived, of the train that tests a shaper, and of
//! captured packets.

use goodput_model::{
    CapturedPayload, EndName, GapBin, Gaps, Known, PacketCapture, Record, Transport,
};

use super::shaper::train;
use super::{Chart, direction_words};
use crate::axis::{Axis, Ticks};
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::series::end;
use crate::sketch::Sketch;
use crate::words;

/// The pauses that a shaper made, which all of its result rests on.
pub const OF_TRAIN: Chart = Chart {
    id: "train-gaps",
    shows: "pauses between the datagrams that tested a shaper, counted by their length",
    of: Of::All,
    draw: |record| of_train(record).and_then(figure).into_iter().collect(),
};

/// Those of a run.
pub const CHART: Chart = Chart {
    id: "gaps",
    shows: "pauses between packets, counted by their length",
    of: Of::OneRun,
    draw,
};

/// Shortest pause that a bin tells from shorter ones, seconds.
const SHORTEST_S: f64 = 1e-6;

/// Bins that the axis shows, at least: one alone would fill the picture.
const LEAST_BINS: f64 = 4.0;

/// Pauses that the axis counts up to, at least.
const LEAST_COUNT: f64 = 4.0;

/// Pauses with the id and the title of their figure.
struct Pauses<'a> {
    id: String,
    title: String,
    gaps: &'a Gaps,
}

fn draw(record: &Record) -> Vec<Sketch> {
    let own = record.capture.as_deref().map(|capture| (EndName::Near, capture));
    let far = record.far_capture.as_ref().and_then(Known::value);
    let far = far.map(|capture| (EndName::Far, &**capture));
    let captured = own.into_iter().chain(far).flat_map(|(at, capture)| captured(at, capture));
    arrived(record).chain(captured).filter_map(figure).collect()
}

fn of_train(record: &Record) -> Option<Pauses<'_>> {
    let gaps = &train(record)?.gaps;
    Some(Pauses { id: "train-gaps".into(), title: "Pauses between arrivals".into(), gaps })
}

/// Those of datagrams, at the end that received them.
fn arrived(record: &Record) -> impl Iterator<Item = Pauses<'_>> {
    record.result.directions.iter().filter_map(|direction| {
        let gaps = end(record, direction.sender.other())?.gaps.as_ref()?;
        let (id, of) = direction_words(record, direction.sender);
        let title = format!("Pauses between datagrams of a flow{of}");
        Some(Pauses { id: format!("gaps-of-datagrams{id}"), title, gaps })
    })
}

/// Those of packets as they passed a device.
fn captured(at: EndName, capture: &PacketCapture) -> impl Iterator<Item = Pauses<'_>> {
    capture.payload.iter().map(move |payload| {
        let CapturedPayload { sender, transport, gaps, .. } = payload;
        let (word, name) = match transport {
            Transport::Tcp => ("tcp", "TCP"),
            Transport::Udp => ("udp", "UDP"),
        };
        let id = format!("gaps-{word}-from-{sender}-at-{at}");
        let device = &capture.device;
        let title = format!(
            "Pauses between {name} packets of the {sender} host, at {device} of the {at} host"
        );
        Pauses { id, title, gaps }
    })
}

/// Nothing if there was no pause.
fn figure(Pauses { id, title, gaps }: Pauses<'_>) -> Option<Sketch> {
    let counted = gaps.histogram.iter().copied().filter(|bin| bin.from_s > 0.0);
    let counted: Vec<GapBin> = counted.collect();
    if counted.is_empty() {
        return None;
    }
    let mut table = Table::new(["pause from", "to", "count"]);
    for bin in &counted {
        // The first bin also counts shorter ones.
        let from_s = if bin.from_s > SHORTEST_S { bin.from_s } else { 0.0 };
        let to = words::seconds(2.0 * bin.from_s);
        table.row([words::seconds(from_s), to, bin.count.to_string()]);
    }
    let rhythm = gaps.rhythm.map_or(String::new(), |rhythm| {
        format!(" Bursts of {} come every {}.", rhythm.burst_bytes, words::seconds(rhythm.period_s))
    });
    let alt = format!(
        "{title}, counted by their length; the longest is {}.{rhythm}",
        words::seconds(gaps.longest_s)
    );
    let plot = Some(plot(&counted));
    Some(Sketch { id, title, alt, plot, table })
}

/// Each bin is one unit wide on a logarithmic axis: it ends at twice its beginning.
fn plot(bins: &[GapBin]) -> Plot {
    // Of a microsecond, so that the labels are round.
    let log = |seconds: f64| (seconds / SHORTEST_S).log2();
    let most = bins.iter().map(|bin| bin.count as f64).fold(1.0, f64::max);
    let boxes =
        bins.iter().map(|bin| [(log(bin.from_s), 0.0), (log(bin.from_s) + 1.0, bin.count as f64)]);
    let from = bins.iter().map(|bin| log(bin.from_s)).fold(f64::INFINITY, f64::min);
    let to = bins.iter().map(|bin| log(bin.from_s) + 1.0).fold(f64::NEG_INFINITY, f64::max);
    let layers = vec![Layer::unnamed(palette::BLUE, Shape::Boxes(boxes.collect()))];
    let x =
        Axis::new(from..to.max(from + LEAST_BINS), |log| words::seconds(log.exp2() * SHORTEST_S));
    let y = Axis::new(0.0..(most * 1.1).max(LEAST_COUNT), words::short);
    let (x, y) = (x.with_ticks(Ticks::Whole), y.with_ticks(Ticks::Whole));
    Plot { height: 220, x, y, layers }
}
