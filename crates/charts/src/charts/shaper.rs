//! What came through a shaper over time, beside the line of its token bucket.

use goodput_model::{Record, Shaping, counted};

use super::Chart;
use crate::axis::Axis;
use crate::clip::Point;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::series::{axis_height, axis_length, highest, last};
use crate::sketch::Sketch;
use crate::words;

/// The chart.
pub const CHART: Chart = Chart {
    id: "shaper",
    shows: "bytes that came over time, beside the line of the token bucket",
    of: Of::All,
    draw,
};

/// What a train of datagrams showed, if the record is of one.
pub fn train(record: &Record) -> Option<&Shaping> {
    record.shaping.as_ref()?.train.value()
}

fn draw(record: &Record) -> Vec<Sketch> {
    let Some(train) = train(record).filter(|train| !train.curve.is_empty()) else {
        return Vec::new();
    };
    let came: Vec<Point> =
        train.curve.iter().map(|point| (point.at_s, point.bytes as f64)).collect();
    let rate = train.rate_bits_per_s.value().map(|rate| rate.value);
    let bucket = train.bucket_bytes.value().map(|bucket| bucket.value);
    let mut table = Table::new(["", "value"]);
    table.row(["rate, in frames".into(), rate.map_or("unknown".into(), words::rate)]);
    table.row(["bucket".into(), bucket.map_or("unknown".into(), words::bytes)]);
    table.row(["sent".into(), counted(train.sent, "datagram")]);
    table.row(["lost".into(), counted(train.lost, "datagram")]);
    let alt = format!(
        "{} came in {}; the rate is {}, the bucket {}.",
        words::bytes(highest([&came[..]])),
        words::seconds(last([&came[..]])),
        table.rows[0][1],
        table.rows[1][1]
    );
    let plot = Some(plot(&came, rate, bucket));
    let title = "What came through, and the token bucket".into();
    vec![Sketch { id: "shaper".into(), title, alt, plot, table }]
}

fn plot(came: &[Point], rate: Option<f64>, bucket: Option<f64>) -> Plot {
    let until = axis_length([came]);
    let mut layers = vec![Layer::named("came", palette::BLUE, Shape::Line(came.to_vec()))];
    if let Some((rate, bucket)) = rate.zip(bucket) {
        let line = vec![(0.0, bucket), (until, bucket + rate / 8.0 * until)];
        layers.push(Layer::named("bucket + rate × time", palette::ORANGE, Shape::Dashed(line)));
    }
    let x = Axis::new(0.0..until, words::seconds);
    let y = Axis::new(0.0..axis_height([came]) * 1.2, words::bytes);
    Plot { height: 280, x, y, layers }
}
