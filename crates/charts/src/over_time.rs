//! Several results of one target, by the time at which they began.

use std::collections::BTreeMap;

use goodput_model::BitRate;
use jiff::Timestamp;
use plotters::style::RGBColor;

use crate::axis::{Axis, Ticks};
use crate::clip::Point;
use crate::clock;
use crate::figure::{Figure, Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, PlotError, Shape};
use crate::words;

/// One result, or several of one day.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Its goodput; of several results, their median.
    pub goodput: BitRate,
    /// Which results it can be compared with, in a few words: `TCP forward, 1 flow`. Only these make a line.
    pub series: String,
    /// Number of results.
    pub results: u64,
    /// Their least and most goodput.
    pub range: [BitRate; 2],
}

/// Colours of the series.
const COLOURS: [RGBColor; 5] =
    [palette::BLUE, palette::ORANGE, palette::GREEN, palette::LINES[3], palette::LINES[1]];

/// Shortest time that the axis shows, seconds.
const MIN_SPAN_S: f64 = 600.0;

/// The goodput of `moments`, in any order; those without a readable time are left out.
///
/// # Errors
/// When nothing can be drawn of these numbers.
pub fn over_time(target: &str, moments: &[Moment]) -> Result<Figure, PlotError> {
    let series = in_series(moments);
    let points: Vec<Point> = series.iter().flat_map(|(_, points)| points).copied().collect();
    let highest = points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let alt = said(moments, series.len());
    let svg = if points.is_empty() { None } else { Some(plot(series, highest).svg(&alt)?) };
    let title = format!("Goodput of {target} over time");
    let table = Table::default();
    Ok(Figure { of: Of::All, id: "over-time".into(), title, alt, svg, table })
}

/// How many results the chart is of, and between which goodputs they are.
fn said(moments: &[Moment], kinds: usize) -> String {
    let drawn = || moments.iter().filter(|moment| point(moment).is_some());
    let least = drawn().map(|moment| moment.range[0].0).fold(f64::INFINITY, f64::min);
    let most = drawn().map(|moment| moment.range[1].0).fold(0.0, f64::max);
    match drawn().map(|moment| moment.results).fold(0, u64::saturating_add) {
        0 => "There is no result with a time.".into(),
        1 => format!("One result: {}.", words::rate(most)),
        results => {
            let of_kinds = if kinds > 1 { format!(" of {kinds} kinds") } else { String::new() };
            let [least, most] = [least, most].map(words::rate);
            format!("{results} results{of_kinds}, between {least} and {most}.")
        }
    }
}

fn point(moment: &Moment) -> Option<Point> {
    let started: Timestamp = moment.started.parse().ok()?;
    Some((started.as_second() as f64, moment.goodput.0))
}

/// A series and its points, by time; the series with most of them first.
type Series<'a> = (&'a str, Vec<Point>);

fn in_series(moments: &[Moment]) -> Vec<Series<'_>> {
    let mut by_name: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    for moment in moments {
        by_name.entry(&moment.series).or_default().extend(point(moment));
    }
    let mut all: Vec<Series> =
        by_name.into_iter().filter(|(_, points)| !points.is_empty()).collect();
    all.iter_mut().for_each(|(_, points)| points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    all.sort_by_key(|(_, points)| std::cmp::Reverse(points.len()));
    all
}

fn plot(series: Vec<Series>, most: f64) -> Plot {
    let times = || series.iter().flat_map(|(_, points)| points).map(|(at, _)| *at);
    let (first, last) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let margin = ((last - first) * 0.03).max((MIN_SPAN_S - (last - first)) / 2.0);
    let across = first - margin..last + margin;
    let title = clock::title(&across);
    let x = Axis::new(across, |_| String::new()).titled(title).with_ticks(Ticks::Clock);
    let y = Axis::new(0.0..(most * 1.15).max(1.0), words::rate);
    // Colours end; what comes after them is grey, and a line of it would join what can't be compared.
    let of_own = series.len().min(COLOURS.len());
    let rest: Vec<Point> =
        series[of_own..].iter().flat_map(|(_, points)| points).copied().collect();
    let mut layers = Vec::new();
    for ((name, points), colour) in series.iter().zip(COLOURS) {
        layers.push(Layer::unnamed(colour, Shape::Thin(points.clone())));
        layers.push(Layer::named(*name, colour, Shape::Dots(points.clone())));
    }
    if !rest.is_empty() {
        layers.push(Layer::named("others", palette::GREY, Shape::Dots(rest)));
    }
    Plot { height: 304, x, y, layers }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(started: &str, rate: f64) -> Moment {
        let (started, series) = (started.into(), "TCP forward".into());
        let (goodput, range) = (BitRate(rate), [BitRate(rate); 2]);
        Moment { started, goodput, series, results: 1, range }
    }

    #[test]
    fn results_are_drawn_in_the_order_of_their_times() {
        let moments = [
            moment("2026-01-03T10:00:00Z", 2e6),
            moment("2026-01-02T10:00:00Z", 1e6),
            moment("yesterday", 9e6),
        ];
        let figure = over_time("<nas>", &moments).unwrap();
        assert_eq!(figure.alt, "2 results, between 1 Mbit/s and 2 Mbit/s.");
        let svg = figure.svg.unwrap();
        assert!(svg.matches("<circle").count() == 2 && svg.contains("01-02"), "{svg}");
    }

    #[test]
    fn all_results_of_a_day_are_counted_and_in_the_range() {
        let range = [5e5, 8e6].map(BitRate);
        let day = || Moment { results: 96, range, ..moment("2026-01-02T12:00:00Z", 1e6) };
        let words = |moments: &[Moment]| over_time("nas", moments).unwrap().alt;
        assert_eq!(words(&[day()]), "96 results, between 500 kbit/s and 8 Mbit/s.");
        let both = words(&[day(), moment("2026-01-03T10:00:00Z", 9e6)]);
        assert_eq!(both, "97 results, between 500 kbit/s and 9 Mbit/s.");
    }

    #[test]
    fn days_of_several_years_have_their_year() {
        let figure = over_time(
            "nas",
            &[moment("2026-01-02T10:00:00Z", 1e6), moment("2036-01-02T10:00:00Z", 1e6)],
        );
        let svg = figure.unwrap().svg.unwrap();
        assert!(svg.contains("\n2030\n") && !svg.contains(":00"), "{svg}");
    }

    #[test]
    fn only_results_of_one_kind_make_a_line() {
        let of = |number: u32, series: String| {
            let started = format!("2026-01-{:02}T10:00:00Z", number + 1);
            Moment { series, ..moment(&started, 1e6) }
        };
        let kinds = |count: u32| (0..24).map(|n| of(n, format!("kind {}", n % count))).collect();
        let drawn = |moments: Vec<Moment>| over_time("nas", &moments).unwrap();
        let lines = |figure: &Figure| figure.svg.as_ref().unwrap().matches("<polyline").count();
        let (one, two, many) = (drawn(kinds(1)), drawn(kinds(2)), drawn(kinds(8)));
        assert_eq!(lines(&two), lines(&one) + 1);
        assert_eq!(lines(&many), lines(&one) + COLOURS.len() - 1);
        assert!(two.alt.starts_with("24 results of 2 kinds"), "{}", two.alt);
        assert!(many.svg.unwrap().contains("others"));
    }

    #[test]
    fn one_result_and_none_have_a_figure_too() {
        let one = over_time("nas", &[moment("2026-01-03T10:00:00Z", 0.0)]).unwrap();
        assert!(one.svg.is_some() && one.alt == "One result: 0 bit/s.", "{}", one.alt);
        assert_eq!(over_time("nas", &[]).unwrap().svg, None);
        let of_rate = |rate| over_time("nas", &[moment("2026-01-03T10:00:00Z", rate)]);
        assert!(of_rate(-1.0).is_ok());
        assert!(of_rate(f64::MAX).is_err(), "an axis would have no end");
    }
}
