//! Several results of one target, by the time at which they began.

use goodput_model::BitRate;
use jiff::Timestamp;

use crate::clip::Point;
use crate::figure::{Figure, Table};
use crate::palette;
use crate::plot::{Axis, Layer, Plot, PlotError, Shape};
use crate::words;

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Its goodput.
    pub goodput: BitRate,
}

/// Shortest time that the axis shows, seconds.
const MIN_SPAN_S: f64 = 3600.0;

/// The goodput of `moments`, in any order; those without a readable time are left out.
///
/// # Errors
/// When nothing can be drawn of these numbers.
pub fn over_time(target: &str, moments: &[Moment]) -> Result<Figure, PlotError> {
    let mut points: Vec<Point> = moments.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rates = || points.iter().map(|(_, rate)| *rate);
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let number = points.len();
    let alt = match number {
        0 => "There is no result with a time.".into(),
        1 => format!("One result: {}.", words::rate(most)),
        _ => {
            format!("{number} results, between {} and {}.", words::rate(least), words::rate(most))
        }
    };
    let svg = if number == 0 { None } else { Some(plot(points, most).svg(&alt)?) };
    let title = format!("Goodput of {target} over time");
    Ok(Figure { id: "over-time".into(), title, alt, svg, table: Table::default() })
}

fn point(moment: &Moment) -> Option<Point> {
    let started: Timestamp = moment.started.parse().ok()?;
    Some((started.as_second() as f64, moment.goodput.0))
}

fn plot(points: Vec<Point>, most: f64) -> Plot {
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    let margin = ((last - first) * 0.03).max((MIN_SPAN_S - (last - first)) / 2.0);
    let x = Axis { title: "", range: first - margin..last + margin, label: minute };
    let y = Axis { title: "", range: 0.0..(most * 1.15).max(1.0), label: words::rate };
    let layers = vec![
        Layer::unnamed(palette::BLUE, Shape::Thin(points.clone())),
        Layer::unnamed(palette::BLUE, Shape::Dots(points)),
    ];
    Plot { height: 280, x, y, layers }
}

/// Seconds since 1970 as a date and a time, UTC.
fn minute(seconds: f64) -> String {
    let time = Timestamp::from_second(seconds as i64);
    time.map_or(String::new(), |time| time.strftime("%m-%d %H:%M").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(started: &str, rate: f64) -> Moment {
        Moment { started: started.into(), goodput: BitRate(rate) }
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
    fn one_result_and_none_have_a_figure_too() {
        let one = over_time("nas", &[moment("2026-01-03T10:00:00Z", 0.0)]).unwrap();
        assert!(one.svg.is_some() && one.alt == "One result: 0 bit/s.", "{}", one.alt);
        assert_eq!(over_time("nas", &[]).unwrap().svg, None);
        let of_rate = |rate| over_time("nas", &[moment("2026-01-03T10:00:00Z", rate)]);
        assert!(of_rate(-1.0).is_ok());
        assert!(of_rate(f64::MAX).is_err(), "an axis would have no end");
    }
}
