//! What several views have: graphs, the help, numbers.

use goodput_model::{BitRate, Bytes};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Borders, Chart, Clear, Dataset, GraphType, Paragraph};

use super::controls::Controls;
use super::series::Series;

/// Where a graph has its times: for what is drawn below it on the same scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// Columns left of the first time.
    pub left: u16,
    /// Columns of the times.
    pub columns: u16,
    /// The first time, seconds.
    pub from_s: f64,
    /// The last one, seconds.
    pub to_s: f64,
}

impl Times {
    /// The middle of each column, seconds.
    pub fn each_s(self) -> impl Iterator<Item = f64> {
        let Self { columns, from_s, to_s, .. } = self;
        let of_one = (to_s - from_s) / f64::from(columns.max(1));
        (0..columns).map(move |column| from_s + (f64::from(column) + 0.5) * of_one)
    }
}

/// A graph of the last `span_s` seconds. Its title ends with the newest value of each series.
pub fn graph(
    frame: &mut Frame,
    area: Rect,
    title: &str,
    span_s: f64,
    series: &[(&Series, Color)],
    spoken: impl Fn(f64) -> String,
) -> Times {
    let now = series.iter().map(|(of, _)| of.last().map_or("unknown".into(), &spoken));
    let now = now.collect::<Vec<_>>().join(" → ");
    let title = Line::from(vec![Span::from(format!("{title} ")), Span::from(now).bold()]);
    let lines: Vec<_> = series.iter().map(|(of, colour)| (of.points(), *colour)).collect();
    let values = || lines.iter().flat_map(|(points, _)| points);
    let top = values().map(|(_, value)| *value).fold(0.0, f64::max);
    let to_s = values().map(|(at_s, _)| *at_s).fold(span_s, f64::max);
    let data = lines.iter().map(|(points, colour)| {
        let line = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line);
        line.style(*colour).data(points)
    });
    // An axis without length can't be drawn.
    let y = Axis::default().bounds([0.0, if top > 0.0 { top } else { 1.0 }]);
    let labels = if top > 0.0 { vec![spoken(0.0), spoken(top)] } else { Vec::new() };
    let left = left_of_times(area, &labels);
    let y = if labels.is_empty() { y } else { y.labels(labels) };
    let x = Axis::default().bounds([to_s - span_s, to_s]);
    let block = Block::new().borders(Borders::TOP).title(title);
    frame.render_widget(Chart::new(data.collect()).block(block).x_axis(x).y_axis(y), area);
    Times { left, columns: area.width.saturating_sub(left), from_s: to_s - span_s, to_s }
}

/// The columns that ratatui's `Chart` gives to the labels of the rates, at most a third, and to their axis.
fn left_of_times(area: Rect, labels: &[String]) -> u16 {
    let widest = labels.iter().map(|label| Line::from(label.as_str()).width() as u16).max();
    widest.map_or(0, |widest| widest.min(area.width / 3) + 1)
}

/// The last row: the first of these texts that has room, or the last one.
pub fn foot(frame: &mut Frame, area: Rect, texts: &[&'static str]) {
    let lines = || texts.iter().map(|text| Line::from(*text));
    let line = lines().find(|line| line.width() <= area.width.into());
    if let Some(line) = line.or_else(|| lines().next_back()) {
        frame.render_widget(line.dim(), area);
    }
}

/// The keys, above everything else.
pub fn help(frame: &mut Frame, keys: &[(&str, &str)]) {
    let rows = keys.iter().map(|(key, does)| Line::from(format!(" {key:<12} {does}")));
    let (width, height) = (58, keys.len() as u16 + 2);
    let whole = frame.area();
    let area = Rect {
        x: whole.width.saturating_sub(width) / 2,
        y: whole.height.saturating_sub(height) / 2,
        width: width.min(whole.width),
        height: height.min(whole.height),
    };
    frame.render_widget(Clear, area);
    frame.render_widget(
        Paragraph::new(rows.collect::<Vec<_>>()).block(Block::bordered().title("keys")),
        area,
    );
}

/// A rate in the chosen unit.
pub fn spoken(bits_per_s: f64, controls: Controls) -> String {
    match controls.bytes {
        false => BitRate(bits_per_s).to_string(),
        true => format!("{}/s", Bytes((bits_per_s / 8.0).round() as u64)),
    }
}

/// A share of one CPU.
pub fn percent(percent: f64) -> String {
    format!("{percent:.0} %")
}
