//! The pauses between datagrams that came, as a histogram.

use goodput_model::{GapBin, Record};

use super::Chart;
use super::shaper::train;
use crate::figure::{Figure, Table};
use crate::palette;
use crate::plot::{Axis, Layer, Plot, PlotError, Shape};
use crate::words;

/// The chart.
pub const CHART: Chart =
    Chart { id: "gaps", shows: "pauses between arrivals, counted by their length", draw };

fn draw(record: &Record) -> Result<Vec<Figure>, PlotError> {
    let Some(gaps) = train(record).map(|train| &train.gaps) else { return Ok(Vec::new()) };
    let counted: Vec<GapBin> =
        gaps.histogram.iter().copied().filter(|bin| bin.from_s > 0.0).collect();
    if counted.is_empty() {
        return Ok(Vec::new());
    }
    let mut table = Table::new(["pause from", "to", "count"]);
    for bin in &gaps.histogram {
        table.row([
            words::seconds(bin.from_s),
            words::seconds(2.0 * bin.from_s),
            bin.count.to_string(),
        ]);
    }
    let rhythm = gaps.rhythm.map_or(String::new(), |rhythm| {
        format!(" Bursts of {} come every {}.", rhythm.burst_bytes, words::seconds(rhythm.period_s))
    });
    let alt = format!(
        "Pauses between arrivals; the longest is {}.{rhythm}",
        words::seconds(gaps.longest_s)
    );
    let svg = Some(plot(&counted).svg(&alt)?);
    Ok(vec![Figure { id: "gaps".into(), title: "Pauses between arrivals".into(), alt, svg, table }])
}

/// Each bin is one unit wide on a logarithmic axis: it ends at twice its beginning.
fn plot(bins: &[GapBin]) -> Plot {
    let log = |seconds: f64| seconds.log2();
    let most = bins.iter().map(|bin| bin.count as f64).fold(1.0, f64::max);
    let boxes =
        bins.iter().map(|bin| [(log(bin.from_s), 0.0), (log(bin.from_s) + 1.0, bin.count as f64)]);
    let from = bins.iter().map(|bin| log(bin.from_s)).fold(f64::INFINITY, f64::min);
    let to = bins.iter().map(|bin| log(bin.from_s) + 1.0).fold(f64::NEG_INFINITY, f64::max);
    let layers = vec![Layer::unnamed(palette::BLUE, Shape::Boxes(boxes.collect()))];
    let x = Axis { title: "", range: from..to, label: |log| words::seconds(log.exp2()) };
    let y = Axis { title: "", range: 0.0..most * 1.1, label: words::short };
    Plot { height: 220, x, y, layers }
}
