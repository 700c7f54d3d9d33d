//! A forest plot: differences with their intervals, one below the other, beside the threshold.

use goodput_model::{Burden, Difference, Effect};
use plotters::style::RGBColor;

use crate::clip::Point;
use crate::figure::Table;
use crate::palette;
use crate::plot::{Axis, Layer, Plot, Shape};
use crate::sketch::Sketch;

/// Height of a row, pixels.
pub const ROW_PIXELS: u32 = 46;

/// A difference.
pub struct Row<'a> {
    /// What makes it.
    pub name: String,
    /// Its colour.
    pub colour: RGBColor,
    /// How large it is.
    pub effect: &'a Effect,
    /// What it is a difference in, if less of that is better.
    pub burden: Option<Burden>,
}

/// The figure with this id and title; differences within `threshold_percent` don't count.
pub fn forest(id: String, title: String, threshold_percent: f64, rows: &[Row<'_>]) -> Sketch {
    let mut table = Table::new(["what", "difference", "interval", "judgement"]);
    for Row { name, effect, burden, .. } in rows {
        let judged = effect.judgement.in_words(["better", "worse"]);
        let (difference, interval) = (effect.difference_of(*burden), effect.interval_of(*burden));
        table.row([name.clone(), difference, interval, judged]);
    }
    let said: Vec<_> =
        table.rows.iter().map(|row| format!("{}: {}, {}", row[0], row[1], row[3])).collect();
    let alt = format!("{title}. {}.", said.join("; "));
    let plot = plot(threshold_percent, rows);
    Sketch { id, title, alt, plot: Some(plot), table }
}

fn plot(threshold: f64, rows: &[Row<'_>]) -> Plot {
    let ends = rows.iter().flat_map(|row| [row.effect.low_percent, row.effect.high_percent]);
    let (low, high) = ends.fold((-2.0 * threshold, 2.0 * threshold), |(low, high), end| {
        (low.min(end), high.max(end))
    });
    let margin = (high - low) * 0.08;
    let floor = -(rows.len() as f64);
    let spans: Vec<_> = (0..rows.len()).map(below_name).collect();
    let shade = |[top, bottom]: &[f64; 2]| [(-threshold, *bottom), (threshold, *top)];
    let shades = Shape::Shades(spans.iter().map(shade).collect());
    let mut layers = vec![Layer::named("below the threshold", palette::GREY, shades)];
    layers.extend(spans.iter().map(|[top, bottom]| {
        Layer::unnamed(palette::INK, Shape::Line(vec![(0.0, *bottom), (0.0, *top)]))
    }));
    let mut names = Vec::new();
    for (number, Row { name, colour, effect, burden }) in rows.iter().enumerate() {
        let y = spans[number].iter().sum::<f64>() / 2.0;
        let interval: Vec<Point> = vec![(effect.low_percent, y), (effect.high_percent, y)];
        layers.push(Layer::unnamed(*colour, Shape::Line(interval)));
        layers.push(Layer::unnamed(*colour, Shape::Dots(vec![(effect.percent, y)])));
        let name = format!("{name}: {}", effect.difference_of(*burden));
        names.push(((low - margin, -(number as f64) - 0.05), name));
    }
    layers.push(Layer::unnamed(palette::INK, Shape::Words(names)));
    let x = Axis { title: "", range: low - margin..high + margin, label: tick };
    let y = Axis { title: "", range: floor..0.1, label: |_| String::new() };
    Plot { height: 70 + ROW_PIXELS * rows.len() as u32, x, y, layers }
}

/// Where a row has its interval, from the top to the bottom: below its name, which nothing crosses.
fn below_name(number: usize) -> [f64; 2] {
    [-(number as f64) - 0.45, -(number as f64) - 0.95]
}

/// A difference on the axis, without places that are zero.
fn tick(percent: f64) -> String {
    let places = usize::from((percent - percent.round()).abs() > 1e-6);
    format!("{:.places$}", Difference(percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_a_sign_and_no_empty_places() {
        let all = [0.0, 100.0, -2.5, 1900.0].map(tick);
        assert_eq!(all, ["0 %", "+100 %", "-2.5 %", "20.0 times"]);
    }

    #[test]
    fn nothing_of_a_row_reaches_its_name_or_the_next_row() {
        for number in [0, 1, 9] {
            let [top, bottom] = below_name(number);
            let row = -(number as f64);
            assert!(top < row - 0.4 && bottom < top && bottom > row - 1.0, "{number}");
        }
    }
}
