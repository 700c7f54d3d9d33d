//! Retransmitted segments and time-outs over time; of UDP, lost datagrams.

use goodput_model::{End, EndName, Record, Role, Sample, counted};

use super::{Chart, direction_words};
use crate::axis::Axis;
use crate::clip::Point;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::series::{axis_height, axis_length, end, last};
use crate::sketch::Sketch;
use crate::words;

/// Most parts of the time that the picture shows.
const MAX_PARTS: f64 = 80.0;

/// Share of the run from which a part is so long that it no longer says when something happened.
const COARSE_SHARE: f64 = 0.1;

/// What the axis shows at least, as a share of what was sent: a hundredth of that is no reason to look, and would fill the
/// picture. A thousandth leaves one flow with some 40 segments in flight (1.22 / √p; M. Mathis et al., "The Macroscopic
/// Behavior of the TCP Congestion Avoidance Algorithm", 1997).
const LEAST_SHARE: f64 = 1e-3;

/// The same, if nobody knows how much was sent: each second.
const LEAST_PER_S: f64 = 1.0;

/// A part of the time, from one count to another.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    from_s: f64,
    to_s: f64,
    /// By how much the count grew.
    grown: f64,
}

/// The chart.
pub const CHART: Chart = Chart {
    id: "losses",
    shows: "segments sent again, or datagrams lost, over time",
    of: Of::OneRun,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let mut figures = Vec::new();
    for direction in &record.result.directions {
        let Some(Losses { what, counts, sent }) = losses(record, direction.sender) else {
            continue;
        };
        let total = counts.last().map_or(0.0, |(_, count)| *count);
        let (id, of) = direction_words(record, direction.sender);
        let parts = parts(&counts);
        let seconds = words::seconds(last([&counts[..]]));
        let share = sent.filter(|sent| total > 0.0 && *sent > 0.0);
        let share = share.map(|sent| words::percent(total / sent * 100.0));
        let share = share.map_or(String::new(), |share| format!(" ({share} of all)"));
        let (lost, unknown) = (what.counted(total), unknown_when(&parts));
        let alt = format!("{lost} in {seconds}{share}.{unknown}");
        let plot = if total > 0.0 { Some(plot(&what.name(), &parts, sent)) } else { None };
        let mut table = Table::new(["from", "until", &what.name()]);
        for part in parts.iter().filter(|part| part.grown != 0.0) {
            let [from, to] = [part.from_s, part.to_s].map(words::seconds);
            table.row([from, to, format!("{:.0}", part.grown)]);
        }
        let title = format!("Losses over time{of}");
        figures.push(Sketch { id: format!("losses{id}"), title, alt, plot, table });
    }
    figures
}

/// Marks at `height` of when something was lost in a direction; none if nothing was lost or counted. A line, where only
/// the time of its ends is known.
pub fn marks(record: &Record, sender: EndName, height: f64) -> Vec<Layer> {
    let Some(Losses { what, counts, .. }) = losses(record, sender) else { return Vec::new() };
    let parts = parts(&counts);
    let lost = || parts.iter().filter(|part| part.grown > 0.0);
    if lost().next().is_none() {
        return Vec::new();
    }
    let until_s = axis_length([&counts[..]]);
    let known = lost().filter(|part| !part.is_coarse(until_s));
    let dots = known.map(|part| ((part.from_s + part.to_s) / 2.0, height)).collect();
    let line = |part: &Part| {
        let line = Shape::Line(vec![(part.from_s, height), (part.to_s, height)]);
        Layer::unnamed(palette::INK, line)
    };
    let coarse = lost().filter(|part| part.is_coarse(until_s)).map(line);
    let marks = std::iter::once(Layer::named(what.name(), palette::INK, Shape::Dots(dots)));
    marks.chain(coarse).map(Layer::placed).collect()
}

/// What was lost in a direction.
struct Losses {
    what: What,
    /// The count at each time.
    counts: Vec<Point>,
    /// How many were sent in all, if that is known.
    sent: Option<f64>,
}

/// What is counted of the direction in which `sender` sends.
fn losses(record: &Record, sender: EndName) -> Option<Losses> {
    let ends = [(sender, Role::Sender), (sender.other(), Role::Receiver)];
    ends.into_iter().find_map(|(name, role)| lost(end(record, name)?, role))
}

/// A sender counts what it sent again, a receiver of datagrams what never came.
fn lost(end: &End, role: Role) -> Option<Losses> {
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
        Role::Sender => What { noun: "segment", happened: "sent again" },
        Role::Receiver => What { noun: "datagram", happened: "lost" },
    };
    let sent = sent(end, role);
    (!counts.is_empty()).then_some(Losses { what, counts, sent })
}

/// Segments or datagrams that all flows of an end carried, the lost ones included.
fn sent(end: &End, role: Role) -> Option<f64> {
    let each = |sample: &Sample| -> Option<f64> {
        let flows = sample.flows.iter().filter(|flow| flow.role == role);
        let each = flows.map(|flow| match role {
            Role::Sender => Some(flow.tcp.value()?.data_segs_out? as f64),
            Role::Receiver => flow.datagrams.map(|all| all.received as f64 + all.lost as f64),
        });
        each.sum()
    };
    let mut detailed = end.samples.iter().filter(|sample| !sample.flows.is_empty());
    let first = each(detailed.next()?)?;
    // A connection that is only watched had sent before.
    Some(each(detailed.next_back()?)? - first)
}

/// What is counted.
#[derive(Debug, Clone, Copy)]
struct What {
    noun: &'static str,
    happened: &'static str,
}

impl What {
    /// `segments sent again`.
    fn name(self) -> String {
        format!("{}s {}", self.noun, self.happened)
    }

    /// `1 segment sent again`.
    fn counted(self, count: f64) -> String {
        format!("{} {}", counted(count, self.noun), self.happened)
    }
}

impl Part {
    /// Whether it is so long a part of the run that it doesn't say when something happened.
    fn is_coarse(&self, until_s: f64) -> bool {
        self.to_s - self.from_s > COARSE_SHARE * until_s
    }
}

/// How much the count grew from each count to the next, joined to parts of which none is much shorter than the picture
/// can show. A datagram that came late takes back a loss, so that a count may become less. Where times step back, nothing
/// is left out.
fn parts(counts: &[Point]) -> Vec<Part> {
    let until_s = axis_length([counts]);
    let least_s = until_s / MAX_PARTS * 0.999;
    let mut parts: Vec<Part> = Vec::new();
    let mut open =
        Part { from_s: counts.first().map_or(0.0, |(at, _)| *at), to_s: 0.0, grown: 0.0 };
    for pair in counts.windows(2) {
        open = Part { to_s: pair[1].0, grown: open.grown + pair[1].1 - pair[0].1, ..open };
        if open.to_s - open.from_s >= least_s {
            parts.push(open);
            open = Part { from_s: open.to_s, grown: 0.0, ..open };
        }
    }
    let rest = Part { to_s: until_s, ..open };
    match parts.last_mut() {
        Some(last) if rest.to_s - rest.from_s < least_s => {
            *last = Part { from_s: last.from_s, to_s: rest.to_s, grown: last.grown + rest.grown };
        }
        _ => parts.push(rest),
    }
    parts
}

/// Between which times nothing says when something was lost.
fn unknown_when(parts: &[Part]) -> String {
    let until_s = parts.last().map_or(0.0, |part| part.to_s);
    let coarse = parts.iter().filter(|part| part.grown > 0.0 && part.is_coarse(until_s));
    let one = |part: &Part| {
        let [from, to] = [part.from_s, part.to_s].map(words::seconds);
        format!("{:.0} between {from} and {to}", part.grown)
    };
    match &coarse.map(one).collect::<Vec<_>>()[..] {
        [] => String::new(),
        all => format!(
            " Of some it is not known when, as they were counted too seldom: {}.",
            all.join(", ")
        ),
    }
}

/// The number in each second; the area of a box is what was counted.
fn plot(what: &str, parts: &[Part], sent: Option<f64>) -> Plot {
    let each =
        |part: &Part| [(part.from_s, 0.0), (part.to_s, part.grown / (part.to_s - part.from_s))];
    let boxes: Vec<[Point; 2]> = parts.iter().map(each).collect();
    let tops: Vec<Point> = boxes.iter().map(|[_, top]| *top).collect();
    let until_s = axis_length([&tops[..]]);
    let least = LEAST_PER_S.max(sent.unwrap_or(0.0) * LEAST_SHARE / until_s);
    let x = Axis::new(0.0..until_s, words::seconds);
    let y = Axis::new(0.0..(axis_height([&tops[..]]) * 1.1).max(least), words::short);
    let name = format!("{what}, each second");
    let layers = vec![Layer::named(name, palette::ORANGE, Shape::Boxes(boxes))];
    Plot { height: 194, x, y, layers }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(counts: &[Point]) -> Vec<f64> {
        parts(counts).iter().map(|part| part.grown).collect()
    }

    #[test]
    fn parts_add_up_to_the_count_and_have_the_times_of_the_counts() {
        let counts = [(0.0, 0.0), (1.0, 3.0), (2.5, 3.0), (4.0, 10.0), (4.01, 11.0)];
        let parts = parts(&counts);
        assert_eq!(grown(&counts), [3.0, 0.0, 8.0], "a short last part joins the one before");
        assert_eq!((parts[2].from_s, parts[2].to_s), (2.5, 4.01));
        let many: Vec<Point> = (0..=6000).map(|n| (f64::from(n) / 10.0, f64::from(n))).collect();
        assert_eq!(grown(&many).iter().sum::<f64>(), 6000.0);
        assert!((75..=80).contains(&grown(&many).len()), "{}", grown(&many).len());
    }

    #[test]
    fn few_losses_of_many_segments_do_not_fill_the_picture() {
        let parts = parts(&[(0.0, 0.0), (1.0, 1.0), (10.0, 10.0)]);
        let top = |sent| plot("segments sent again", &parts, sent).y.range.end;
        assert_eq!(top(Some(1e6)), 100.0, "a thousandth of 100 000 each second");
        assert!((top(Some(1e3)) - 1.1).abs() < 1e-9, "one each second is the most");
        assert!((top(None) - 1.1).abs() < 1e-9);
    }

    #[test]
    fn no_loss_is_left_out_or_taken_back_if_times_step_back() {
        let counts = [(0.0, 0.0), (2.0, 3.0), (4.0, 5.0), (1.0, 9.0), (3.0, 10.0)];
        assert_eq!(grown(&counts).iter().sum::<f64>(), 10.0);
        assert!(grown(&counts).iter().all(|count| *count >= 0.0), "{:?}", grown(&counts));
    }

    #[test]
    fn a_loss_of_which_only_the_ends_of_a_long_time_are_known_is_said_to_be_so() {
        let counts = [(0.0, 0.0), (0.75, 15_167.0), (1.5, 16_724.0), (60.0, 393_378.0)];
        let parts = parts(&counts);
        let said = unknown_when(&parts);
        assert!(said.ends_with(": 376654 between 1.50 s and 60 s."), "{said}");
        let even: Vec<Point> = (0..=60).map(|n| (f64::from(n), f64::from(n))).collect();
        assert_eq!(unknown_when(&super::parts(&even)), "");
    }
}
