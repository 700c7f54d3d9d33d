//! Round trips before the flows began and while they ran, by each way to time them.

use goodput_model::{Latency, Record, RoundTrips};

use super::Chart;
use crate::axis::Axis;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::sketch::Sketch;
use crate::words;

/// Height of one phase of one way, pixels.
const ROW_PIXELS: u32 = 40;

/// The chart.
pub const CHART: Chart = Chart {
    id: "latency",
    shows: "round trips idle and under load: the shortest, half, 90 % and 99 % of them",
    of: Of::OneRun,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let phases = record.latency.as_ref().map(phases).unwrap_or_default();
    if phases.is_empty() { Vec::new() } else { vec![figure(&phases)] }
}

/// What was timed, when, and how long it took.
struct Phase<'a> {
    what: &'static str,
    loaded: bool,
    times: &'a RoundTrips,
}

impl Phase<'_> {
    fn name(&self) -> String {
        format!("{}, {}", self.what, if self.loaded { "under load" } else { "idle" })
    }
}

/// Those that are known.
fn phases(latency: &Latency) -> Vec<Phase<'_>> {
    let ways = [
        ("connections", &latency.tcp_connect),
        ("datagrams", &latency.udp_echo),
        ("TCP's own estimate", &latency.tcp_rtt),
    ];
    let each = ways
        .into_iter()
        .flat_map(|(what, way)| [(what, false, &way.idle), (what, true, &way.loaded)]);
    let all = each.chain([("unsent payload", true, &latency.unsent)]);
    all.filter_map(|(what, loaded, times)| Some(Phase { what, loaded, times: times.value()? }))
        .collect()
}

fn figure(phases: &[Phase<'_>]) -> Sketch {
    let mut table =
        Table::new(["round trips", "number", "shortest", "50 %", "90 %", "99 %", "longest"]);
    for phase in phases {
        let times = phase.times;
        let [min, p50, p90, p99, max] =
            [times.min_us, times.p50_us, times.p90_us, times.p99_us, times.max_us]
                .map(|us| words::seconds(us / 1e6));
        table.row([phase.name(), times.n.to_string(), min, p50, p90, p99, max]);
    }
    let said: Vec<_> =
        table.rows.iter().map(|row| format!("{} {} (99 %: {})", row[0], row[3], row[5])).collect();
    let alt = format!(
        "Round trips from the shortest to the 99th percentile, in the box from the median to the 90th. Half of them took no \
         longer than this: {}.",
        said.join("; ")
    );
    let plot = plot(phases);
    let title = "Round trips, idle and under load".into();
    Sketch { id: "latency".into(), title, alt, plot: Some(plot), table }
}

/// A line from the shortest to the 99th percentile, a box from the median to the 90th, for each phase.
fn plot(phases: &[Phase<'_>]) -> Plot {
    let colour = |phase: &Phase<'_>| if phase.loaded { palette::ORANGE } else { palette::BLUE };
    let mut layers = Vec::new();
    let mut names = Vec::new();
    for (row, phase) in phases.iter().enumerate() {
        let (top, times) = (-(row as f64), phase.times);
        let [min, p50, p90, p99] =
            [times.min_us, times.p50_us, times.p90_us, times.p99_us].map(|us| us / 1e6);
        let whole = vec![(min, top - 0.7), (p99, top - 0.7)];
        layers.push(Layer::unnamed(colour(phase), Shape::Line(whole)));
        let middle = vec![[(p50, top - 0.85), (p90, top - 0.55)]];
        layers.push(Layer::unnamed(colour(phase), Shape::Boxes(middle)));
        layers.push(Layer::unnamed(colour(phase), Shape::Dots(vec![(p50, top - 0.7)])));
        names.push(((0.0, top - 0.05), phase.name()));
    }
    layers.push(Layer::unnamed(palette::INK, Shape::Words(names)));
    let longest = phases.iter().map(|phase| phase.times.p99_us / 1e6).fold(0.0, f64::max);
    let x = Axis::new(0.0..longest.max(1e-6) * 1.05, words::seconds);
    let y = Axis::bare(-(phases.len() as f64)..0.1);
    Plot { height: 60 + ROW_PIXELS * phases.len() as u32, x, y, layers }
}
