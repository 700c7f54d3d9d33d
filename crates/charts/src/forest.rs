//! A forest plot: differences with their intervals, one below the other, beside the threshold. Above each interval, the pairs
//! of runs that it is made of are dots.

use std::ops::Range;

use goodput_model::{Burden, Difference, Effect, TrialPair, counted};
use plotters::style::RGBColor;

use crate::axis::Axis;
use crate::clip::Point;
use crate::figure::Table;
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::sketch::Sketch;

/// Height of a row, pixels.
pub const ROW_PIXELS: u32 = 46;

/// The same where pairs of runs stand above the interval.
const ROW_WITH_PAIRS_PIXELS: u32 = 62;

/// Most pairs that a cell of the table names: each row has all of its pairs in one, and trackers refuse long texts.
const MAX_PAIRS: usize = 100;

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
    /// What each pair of runs shows, if it is one of an arm.
    pub pairs: Vec<TrialPair>,
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
    let across = across(threshold_percent, rows);
    let alt = format!("{title}. {}.{}", said.join("; "), said_of_pairs(rows, &across));
    add_pairs(&mut table, rows);
    let plot = plot(threshold_percent, across, rows);
    Sketch { id, title, alt, plot: Some(plot), table }
}

/// What the dots are, and how many are not in the picture.
fn said_of_pairs(rows: &[Row<'_>], across: &Range<f64>) -> String {
    let all: Vec<&TrialPair> = rows.iter().flat_map(|row| &row.pairs).collect();
    let has = |wanted: bool| all.iter().any(|pair| pair.counts == wanted);
    let outside = all.iter().filter(|pair| !across.contains(&pair.difference.0)).count();
    let is_adjusted = |row: &Row<'_>| !row.pairs.is_empty() && !row.effect.adjusted_for.is_empty();
    let sentences = [
        has(true).then(|| " A dot is a pair: a run and the baseline's run of its block.".into()),
        has(false).then(|| " A ring is a pair that does not count.".into()),
        rows.iter().any(is_adjusted).then(|| {
            " Intervals are adjusted for the host's speed, pairs are as they were measured.".into()
        }),
        (outside > 0).then(|| {
            format!(" Of {}, {outside} had no room in the picture.", counted(all.len(), "pair"))
        }),
    ];
    sentences.into_iter().flatten().collect()
}

/// Adds a column with what each pair that counts shows, if any does.
fn add_pairs(table: &mut Table, rows: &[Row<'_>]) {
    let cells: Vec<String> = rows.iter().map(|row| in_a_cell(&row.pairs)).collect();
    if cells.iter().any(|cell| !cell.is_empty()) {
        table.columns.push("each pair of runs".into());
        table.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }
}

/// What each pair that counts shows; of very many, the first ones and how many there are.
fn in_a_cell(pairs: &[TrialPair]) -> String {
    let all: Vec<&TrialPair> = pairs.iter().filter(|pair| pair.counts).collect();
    let first = all.iter().take(MAX_PAIRS).map(|pair| pair.difference.to_string());
    let named = first.collect::<Vec<_>>().join(", ");
    match all.len() > MAX_PAIRS {
        true => format!("{named}, … ({})", counted(all.len(), "pair")),
        false => named,
    }
}

/// From where to where the picture reaches, percent: all intervals, both sides of the threshold, and the pairs that are not so
/// far away that they would flatten everything else.
fn across(threshold: f64, rows: &[Row<'_>]) -> Range<f64> {
    let widened = |Range { start, end }: Range<f64>, to: f64| start.min(to)..end.max(to);
    let ends = rows.iter().flat_map(|row| [row.effect.low_percent, row.effect.high_percent]);
    let inner = ends.fold(-2.0 * threshold..2.0 * threshold, widened);
    let length = inner.end - inner.start;
    let near = inner.start - length..inner.end + length;
    let pairs = rows.iter().flat_map(|row| &row.pairs).map(|pair| pair.difference.0);
    let all = pairs.filter(|percent| near.contains(percent)).fold(inner, widened);
    let margin = (all.end - all.start) * 0.08;
    all.start - margin..all.end + margin
}

fn plot(threshold: f64, across: Range<f64>, rows: &[Row<'_>]) -> Plot {
    let floor = -(rows.len() as f64);
    let spans: Vec<_> = (0..rows.len()).map(below_name).collect();
    let shade = |[top, bottom]: &[f64; 2]| [(-threshold, *bottom), (threshold, *top)];
    let shades = Shape::Shades(spans.iter().map(shade).collect());
    let mut layers = vec![Layer::named("below the threshold", palette::GREY, shades)];
    layers.extend(spans.iter().map(|[top, bottom]| {
        Layer::unnamed(palette::INK, Shape::Line(vec![(0.0, *bottom), (0.0, *top)]))
    }));
    layers.extend(layers_of_pairs(rows));
    let mut names = Vec::new();
    for (number, Row { name, colour, effect, burden, pairs }) in rows.iter().enumerate() {
        let [top, bottom] = spans[number];
        // Below its pairs, if it has any.
        let down = if pairs.is_empty() { 0.5 } else { 0.75 };
        let y = top + (bottom - top) * down;
        let interval: Vec<Point> = vec![(effect.low_percent, y), (effect.high_percent, y)];
        layers.push(Layer::unnamed(*colour, Shape::Line(interval)));
        layers.push(Layer::unnamed(*colour, Shape::Dots(vec![(effect.percent, y)])));
        let name = format!("{name}: {}", effect.difference_of(*burden));
        names.push(((across.start, -(number as f64) - 0.05), name));
    }
    layers.push(Layer::unnamed(palette::INK, Shape::Words(names)));
    let x = Axis::new(across, tick);
    let y = Axis::bare(floor..0.1);
    let has_pairs = rows.iter().any(|row| !row.pairs.is_empty());
    let row = if has_pairs { ROW_WITH_PAIRS_PIXELS } else { ROW_PIXELS };
    Plot { height: 70 + row * rows.len() as u32, x, y, layers }
}

/// Pairs that count as dots, the others as rings, each in the upper part of its row.
fn layers_of_pairs(rows: &[Row<'_>]) -> Vec<Layer> {
    let of = |counts: bool| -> Vec<Point> {
        let in_row = |(number, row): (usize, &Row<'_>)| {
            let [top, bottom] = below_name(number);
            let y = top + (bottom - top) * 0.25;
            let wanted = row.pairs.iter().filter(move |pair| pair.counts == counts);
            wanted.map(|pair| (pair.difference.0, y)).collect::<Vec<_>>()
        };
        rows.iter().enumerate().flat_map(in_row).collect()
    };
    let (counted, others) = (of(true), of(false));
    let dots = (!counted.is_empty())
        .then(|| Layer::named("a pair of runs", palette::GREY, Shape::Dots(counted)));
    let rings = (!others.is_empty()).then(|| Layer::unnamed(palette::GREY, Shape::Rings(others)));
    dots.into_iter().chain(rings).collect()
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

    #[test]
    fn of_very_many_pairs_the_first_are_named_and_all_are_counted() {
        let pair = |number: u32| TrialPair {
            block: number,
            difference: Difference(f64::from(number)),
            counts: number > 0,
        };
        let pairs: Vec<TrialPair> = (0..=4000).map(pair).collect();
        let cell = in_a_cell(&pairs);
        assert!(cell.starts_with("+1.0 %, +2.0 %, "), "{cell}");
        assert!(cell.ends_with(", … (4000 pairs)"), "{cell}");
        assert_eq!(cell.split(", ").count(), MAX_PAIRS + 1);
        let just = in_a_cell(&pairs[..=MAX_PAIRS]);
        assert_eq!(just.split(", ").count(), MAX_PAIRS);
        assert!(!just.contains('…'), "{just}");
    }

    fn effect(percent: f64, low_percent: f64, high_percent: f64) -> Effect {
        let judgement = goodput_model::Judgement::Better;
        let (confidence_percent, adjusted_for) = (95.0, Vec::new());
        Effect {
            percent,
            low_percent,
            high_percent,
            confidence_percent,
            n: 3,
            adjusted_for,
            judgement,
        }
    }

    #[test]
    fn each_pair_is_a_dot_above_its_interval_and_one_far_away_is_said() {
        let effect = effect(10.0, 8.0, 12.0);
        let pair =
            |block, percent, counts| TrialPair { block, difference: Difference(percent), counts };
        let pairs =
            vec![pair(0, -9.0, false), pair(1, 8.0, true), pair(2, 12.0, true), pair(3, 9e4, true)];
        let row = |pairs| Row {
            name: "b".into(),
            colour: palette::BLUE,
            effect: &effect,
            burden: None,
            pairs,
        };
        let sketch = forest("effects".into(), "Difference".into(), 3.0, &[row(pairs)]);
        assert!(!sketch.alt.contains("adjusted"), "{}", sketch.alt);
        assert!(
            sketch.alt.ends_with("Of 4 pairs, 1 had no room in the picture."),
            "{}",
            sketch.alt
        );
        assert!(
            sketch.alt.contains("A dot is a pair") && sketch.alt.contains("A ring"),
            "{}",
            sketch.alt
        );
        assert_eq!(sketch.table.rows[0][4], "+8.0 %, +12.0 %, 901 times");
        let plot = sketch.plot.as_ref().unwrap();
        assert!(plot.x.range.end < 50.0 && plot.x.range.start < -9.0, "{:?}", plot.x.range);
        let svg = sketch.figure(crate::figure::Of::All).svg.unwrap();
        // Two pairs, the median, and the ring of the one that does not count.
        assert_eq!(svg.matches("<circle").count(), 4, "{svg}");
        let alone = forest("factors".into(), "Effect".into(), 3.0, &[row(Vec::new())]);
        assert_eq!(alone.table.columns.len(), 4);
        assert!(!alone.alt.contains("pair"), "{}", alone.alt);
        let adjusted = Effect { adjusted_for: vec!["speed".into()], ..effect.clone() };
        let row = Row { effect: &adjusted, ..row(vec![pair(1, 8.0, true)]) };
        let of_adjusted = forest("effects".into(), "Difference".into(), 3.0, &[row]);
        assert!(of_adjusted.alt.contains("are adjusted"), "{}", of_adjusted.alt);
    }
}
