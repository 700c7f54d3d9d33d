//! Retransmitted segments and time-outs over time; of UDP, lost datagrams.

use goodput_model::{End, EndName, Record, Role, Sample};

use super::{Chart, direction_words};
use crate::clip::Point;
use crate::figure::{Figure, Table};
use crate::palette;
use crate::plot::{Axis, Layer, Plot, PlotError, Shape};
use crate::series::{end, highest, last};
use crate::words;

/// Bars of the picture.
const MAX_BARS: u32 = 80;

/// The chart.
pub const CHART: Chart =
    Chart { id: "losses", shows: "segments sent again, or datagrams lost, over time", draw };

fn draw(record: &Record) -> Result<Vec<Figure>, PlotError> {
    let mut figures = Vec::new();
    for direction in &record.result.directions {
        let Some((what, counts)) = counted(record, direction.sender) else { continue };
        let total = counts.last().map_or(0.0, |(_, count)| *count);
        let (id, of) = direction_words(record, direction.sender);
        let alt = format!("{total:.0} {what} in {}.", words::seconds(last([&counts[..]])));
        let bars = bars(&counts);
        let svg = if total > 0.0 { Some(plot(&bars).svg(&alt)?) } else { None };
        let mut table = Table::new(["until", what]);
        for [(_, _), (to, count)] in bars.iter().filter(|[_, (_, count)]| *count != 0.0) {
            table.row([words::seconds(*to), format!("{count:.0}")]);
        }
        let title = format!("Losses over time{of}");
        figures.push(Figure { id: format!("losses{id}"), title, alt, svg, table });
    }
    Ok(figures)
}

/// When something was lost in a direction, with the name of what is counted; none if nothing was lost or counted.
pub fn marks(record: &Record, sender: EndName) -> Option<(&'static str, Vec<f64>)> {
    let (what, counts) = counted(record, sender)?;
    let bars = bars(&counts);
    let marks = bars.iter().filter(|[_, (_, count)]| *count > 0.0);
    let times: Vec<f64> = marks.map(|[(from, _), (to, _)]| (from + to) / 2.0).collect();
    (!times.is_empty()).then_some((what, times))
}

/// What is counted of the direction in which `sender` sends, and the count at each time.
fn counted(record: &Record, sender: EndName) -> Option<(&'static str, Vec<Point>)> {
    let ends = [(sender, Role::Sender), (sender.other(), Role::Receiver)];
    ends.into_iter().find_map(|(name, role)| lost(end(record, name)?, role))
}

/// What is counted, and the count at each time. A sender counts what it sent again, a receiver of datagrams what never
/// came.
fn lost(end: &End, role: Role) -> Option<(&'static str, Vec<Point>)> {
    let count = |sample: &Sample| -> Option<f64> {
        let flows: Vec<_> = sample.flows.iter().filter(|flow| flow.role == role).collect();
        let each = flows.iter().map(|flow| match role {
            Role::Sender => flow.tcp.value()?.total_retrans_segments,
            Role::Receiver => Some(flow.datagrams?.lost),
        });
        let counts: Option<Vec<u64>> = each.collect();
        counts
            .filter(|counts| !counts.is_empty())
            .map(|counts| counts.into_iter().map(|count| count as f64).sum())
    };
    let counts: Vec<Point> =
        end.samples.iter().filter_map(|sample| Some((sample.at_s, count(sample)?))).collect();
    // A connection that is only watched had counted before.
    let before = counts.first().map_or(0.0, |(_, count)| *count);
    let counts: Vec<Point> = counts.into_iter().map(|(at, count)| (at, count - before)).collect();
    let what = match role {
        Role::Sender => "segments sent again",
        Role::Receiver => "datagrams lost",
    };
    (!counts.is_empty()).then_some((what, counts))
}

/// How much the count grew in each of equal parts of the time. A datagram that came late takes back a loss, so that it
/// may have become less. What was counted up to a time is in the part that ends there or later, also if times step back.
fn bars(counts: &[Point]) -> Vec<[Point; 2]> {
    let until = last([counts]);
    let edge = |bar: u32| until * f64::from(bar) / f64::from(MAX_BARS);
    let mut bars: Vec<_> =
        (0..MAX_BARS).map(|bar| [(edge(bar), 0.0), (edge(bar + 1), 0.0)]).collect();
    for pair in counts.windows(2) {
        let (at, grown) = (pair[1].0, pair[1].1 - pair[0].1);
        let bar = (at / until * f64::from(MAX_BARS)).ceil() as usize;
        bars[bar.clamp(1, MAX_BARS as usize) - 1][1].1 += grown;
    }
    bars
}

fn plot(bars: &[[Point; 2]]) -> Plot {
    let tops: Vec<Point> = bars.iter().map(|[_, top]| *top).collect();
    let x = Axis { title: "", range: 0.0..last([&tops[..]]), label: words::seconds };
    let y = Axis { title: "", range: 0.0..highest([&tops[..]]) * 1.1, label: words::short };
    let layers = vec![Layer::unnamed(palette::ORANGE, Shape::Boxes(bars.to_vec()))];
    Plot { height: 170, x, y, layers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_add_up_to_the_count() {
        let counts = [(0.0, 0.0), (1.0, 3.0), (2.5, 3.0), (4.0, 10.0)];
        let bars = bars(&counts);
        let sum: f64 = bars.iter().map(|[_, (_, count)]| count).sum();
        assert_eq!((bars.len(), sum), (80, 10.0));
        assert_eq!(bars[19][1], (1.0, 3.0));
    }

    #[test]
    fn no_loss_is_left_out_or_taken_back_if_times_step_back() {
        let counts = [(0.0, 0.0), (2.0, 3.0), (4.0, 5.0), (1.0, 9.0), (3.0, 10.0)];
        let grown: Vec<f64> = bars(&counts).iter().map(|[_, (_, count)]| *count).collect();
        assert_eq!(grown.iter().sum::<f64>(), 10.0);
        assert!(grown.iter().all(|count| *count >= 0.0), "{grown:?}");
    }
}
