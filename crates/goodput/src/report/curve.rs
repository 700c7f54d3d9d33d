//! Pictures made of characters: arrivals over time beside the line of a token bucket, and bars of counts.

use goodput_model::{Bytes, Known, Seconds, Shaping};

/// Size of the picture of a curve, and the longest bar.
const WIDTH_CHARS: usize = 56;
const HEIGHT_CHARS: usize = 10;

/// Bytes over time: `█` arrivals, `·` the line of the bucket, bucket + rate × time. Time runs to the right.
pub(super) fn curve(train: &Shaping) -> Vec<String> {
    let Some(last) = train.curve.last().filter(|last| last.at_s > 0.0) else { return Vec::new() };
    let line = match (&train.rate_bits_per_s, &train.bucket_bytes) {
        (Known::Value(rate), Known::Value(bucket)) => Some((rate.value / 8.0, bucket.value)),
        _ => None,
    };
    let allowed = |at_s: f64| line.map(|(rate, bucket)| bucket + rate * at_s);
    let top = allowed(last.at_s).unwrap_or(0.0).max(last.bytes as f64);
    let came = |at_s: f64| {
        let before = train.curve.partition_point(|point| point.at_s <= at_s);
        before.checked_sub(1).map_or(0, |at| train.curve[at].bytes) as f64
    };
    let cell = |row: usize, column: usize| {
        let at_s = last.at_s * (column as f64 + 0.5) / WIDTH_CHARS as f64;
        let level = top * (HEIGHT_CHARS - row) as f64 / HEIGHT_CHARS as f64;
        let step = top / HEIGHT_CHARS as f64;
        let on_line = allowed(at_s).is_some_and(|allowed| (level - step..level).contains(&allowed));
        match (came(at_s) >= level - step / 2.0, on_line) {
            (true, _) => '█',
            (false, true) => '·',
            (false, false) => ' ',
        }
    };
    let row = |row: usize| (0..WIDTH_CHARS).map(|column| cell(row, column)).collect::<String>();
    let mut rows: Vec<String> = (0..HEIGHT_CHARS).map(|at| row(at).trim_end().to_owned()).collect();
    let words = if line.is_some() { "█ came   · bucket + rate × time" } else { "█ came" };
    rows.push(format!("{} in {}   {words}", Bytes(last.bytes), Seconds(last.at_s)));
    rows
}

/// A bar for each count, whose length is its share of the largest.
pub(super) fn bars(counts: &[(String, u64)]) -> Vec<String> {
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1) as f64;
    let widest = counts.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let bar = |count: u64| "▇".repeat((count as f64 / most * 40.0).ceil() as usize);
    counts
        .iter()
        .map(|(label, count)| format!("{label:widest$}  {} {count}", bar(*count)))
        .collect()
}
