//! What each flow sent, lost and had in flight, round trip by round trip.

use std::collections::HashMap;

use goodput_model::{FlowSample, Missing, Role, Sample, TcpInfo};

use crate::account::{CA_LOSS, in_flight_segments};
use crate::models::kept_at_loss;
use crate::view::View;

/// Steps after the first loss that belong to the overshooting of slow start.
const STEPS_OF_SLOW_START: usize = 3;

/// What one flow did in about a round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LossStep {
    /// Start, seconds by the sender's samples.
    pub from_s: f64,
    /// Length.
    pub seconds: f64,
    /// Segments sent, repeated ones included.
    pub sent: f64,
    /// Segments that were found not to have arrived.
    pub lost: f64,
    /// Whether that is all that was in flight, so that more might have been lost of more.
    pub is_all_lost: bool,
    /// Segments that arrived.
    pub passed: f64,
    /// Most segments that were in flight; if some were lost, when the window was cut for it.
    pub flight: f64,
    /// The same of all flows together.
    pub all_flight: f64,
    /// By how much the longest round trip exceeded the shortest of all.
    pub queue_s: f64,
    /// How much round trips varied.
    pub jitter_s: f64,
    /// Congestion window that the last cut found, segments, if the losses of this step cut it.
    pub cut: Option<f64>,
}

impl LossStep {
    /// Segments that came to where they pass or are lost. Those of one step are not the ones that it sent: what was sent is
    /// known to have passed or not a round trip later.
    pub fn came(&self) -> f64 {
        if self.is_all_lost { self.lost } else { self.passed + self.lost }
    }
}

/// One flow over the whole run.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// Its steps.
    pub steps: Vec<LossStep>,
    /// Segments sent again.
    pub repeated: f64,
    /// Of them, those that the receiver had already.
    pub needless: f64,
    /// Segments that came late, and were not sent again.
    pub late: f64,
    /// Share of its window that a loss leaves, if that is known.
    pub kept: Option<f64>,
}

impl Flow {
    /// Segments sent.
    pub fn sent(&self) -> f64 {
        self.steps.iter().map(|step| step.sent).sum()
    }

    /// Segments lost.
    pub fn lost(&self) -> f64 {
        self.steps.iter().map(|step| step.lost).sum()
    }

    /// The steps after those in which slow start overshot.
    pub fn after_first_loss(&self) -> &[LossStep] {
        let first = self.steps.iter().position(|step| step.lost > 0.0);
        let from = first.map_or(0, |first| first + STEPS_OF_SLOW_START).min(self.steps.len());
        &self.steps[from..]
    }
}

/// What one sample says of one flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Point {
    /// When, seconds.
    pub at_s: f64,
    /// Segments sent until now.
    pub sent: f64,
    /// Segments that arrived until now, those that arrived twice counted twice.
    pub delivered: f64,
    /// Segments in flight.
    pub flight: f64,
    /// Segments in flight of all flows.
    pub all_flight: f64,
    /// Congestion window that the last cut found, segments; 0 before the first.
    pub cut_at: f64,
    /// Smoothed round-trip time.
    pub rtt_s: f64,
    /// How much it varies.
    pub jitter_s: f64,
    /// Segments sent again until now.
    pub repeated: f64,
    /// Of them, those that were needless.
    pub needless: f64,
    /// Segments that came late.
    pub late: f64,
    /// Whether it repairs what was lost until a time-out, which has closed its window.
    pub is_timed_out: bool,
    /// Whether the flow's first episode of losses is over, or it has none.
    pub has_started: bool,
}

/// The points of every flow of the sender, in the order of the flows and of time.
///
/// # Errors
/// If the sender's samples don't say what is needed.
pub fn points(view: &View) -> Result<Vec<Vec<Point>>, Missing> {
    let kept = kept_at_loss(view);
    let mut points: HashMap<u16, Vec<Point>> = HashMap::new();
    for sample in view.sender.end()?.samples.iter().filter(|s| s.at_s.is_finite()) {
        let mine = || sample.flows.iter().filter(|flow| flow.role == Role::Sender);
        let all = mine().map(flight).sum::<Result<f64, Missing>>()?;
        for flow in mine() {
            let (point, points) =
                (Point::of(sample, flow, all, kept)?, points.entry(flow.flow).or_default());
            if points.is_empty() {
                let unseen_s = view.sender.unseen_from_s(sample, flow);
                points.extend(unseen_s.map(|at_s| point.nothing_yet(at_s)));
            }
            points.push(point);
        }
    }
    let mut points: Vec<_> = points.into_iter().collect();
    points.sort_by_key(|(flow, _)| *flow);
    match points.is_empty() {
        true => Err(Missing::because("no flow was sampled")),
        false => Ok(with_starts(points.into_iter().map(|(_, points)| points), view)?),
    }
}

/// Points that say whether the start was over, by the episodes of the flows, which are in the same order.
fn with_starts(
    points: impl Iterator<Item = Vec<Point>>,
    view: &View,
) -> Result<Vec<Vec<Point>>, Missing> {
    let over_s = view.sender.episodes()?.starts_over_s();
    let one = |(mut points, over_s): (Vec<Point>, f64)| {
        points.iter_mut().for_each(|point| point.has_started = point.at_s >= over_s);
        points
    };
    Ok(points.zip(over_s).map(one).collect())
}

/// Every flow of the sender.
///
/// # Errors
/// Those of [`points`].
pub fn flows(view: &View) -> Result<Vec<Flow>, Missing> {
    flows_of(view, &points(view)?)
}

/// The same of their [`points`].
///
/// # Errors
/// If the sender reports no round trip.
pub fn flows_of(view: &View, points: &[Vec<Point>]) -> Result<Vec<Flow>, Missing> {
    let (base_s, kept) = (view.sender.min_rtt_s()?, kept_at_loss(view));
    Ok(points.iter().map(|points| flow(points, base_s, kept)).collect())
}

/// Congestion window that the last cut found; 0 before the first, and if none is known.
fn cut_at(tcp: &TcpInfo, kept: Option<f64>) -> Result<f64, Missing> {
    Ok(match (tcp.snd_ssthresh_segments()?, kept) {
        (TcpInfo::INFINITE_SSTHRESH, _) | (_, None) => 0.0,
        (threshold, Some(kept)) => threshold as f64 / kept,
    })
}

fn flight(flow: &FlowSample) -> Result<f64, Missing> {
    in_flight_segments(flow.tcp.get()?)
}

impl Point {
    fn of(
        sample: &Sample,
        flow: &FlowSample,
        all_flight: f64,
        kept: Option<f64>,
    ) -> Result<Self, Missing> {
        let tcp = flow.tcp.get()?;
        let count = |read: fn(&TcpInfo) -> Result<u64, Missing>| Ok(read(tcp)? as f64);
        Ok(Self {
            at_s: sample.at_s,
            sent: count(TcpInfo::data_segs_out)?,
            delivered: count(TcpInfo::delivered_segments)?,
            flight: in_flight_segments(tcp)?,
            all_flight,
            cut_at: cut_at(tcp, kept)?,
            rtt_s: count(TcpInfo::rtt_us)? / 1e6,
            jitter_s: count(TcpInfo::rttvar_us)? / 1e6,
            repeated: count(TcpInfo::total_retrans_segments)?,
            needless: count(TcpInfo::dsack_dups)?,
            late: count(TcpInfo::reord_seen)?,
            is_timed_out: tcp.ca_state == Some(CA_LOSS),
            has_started: false,
        })
    }

    /// The flow at a time before this point, its first, when it had counted nothing.
    fn nothing_yet(self, at_s: f64) -> Self {
        Self { at_s, rtt_s: self.rtt_s, jitter_s: self.jitter_s, ..Self::default() }
    }

    /// Segments that had been sent, had not arrived and were no longer in flight. A segment that was sent again for
    /// nothing is among them until the receiver reports it.
    fn gone(&self) -> f64 {
        self.sent - self.delivered - self.flight
    }
}

/// One flow from its points, in the order of time; `base_s` is the round trip without a queue, and a loss leaves the share
/// `kept` of the window.
pub fn flow(points: &[Point], base_s: f64, kept: Option<f64>) -> Flow {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Flow::default() };
    let lost = lost(points);
    let mut steps = Vec::new();
    let mut from = 0;
    while let Some(to) = a_round_trip_later(points, from) {
        steps.push(step(points, from, to, &lost, base_s));
        from = to;
    }
    keep_new_cuts(&mut steps, base_s);
    let grown = |read: fn(&Point) -> f64| (read(last) - read(first)).max(0.0);
    Flow {
        steps,
        repeated: grown(|point| point.repeated),
        needless: grown(|point| point.needless),
        late: grown(|point| point.late),
        kept,
    }
}

/// Round trips that a recovery from losses hardly outlasts: one for what was lost, and one for what was lost of that again.
const ROUND_TRIPS_OF_RECOVERY: f64 = 3.0;

/// Keeps the cuts that are new: a step that ends with the cut of the one before may be the same recovery, unless it is long
/// enough for another.
fn keep_new_cuts(steps: &mut [LossStep], base_s: f64) {
    let mut before = None;
    for step in steps {
        let cut = step.cut;
        if cut == before && step.seconds <= ROUND_TRIPS_OF_RECOVERY * (base_s + step.queue_s) {
            step.cut = None;
        }
        before = cut;
    }
}

fn a_round_trip_later(points: &[Point], from: usize) -> Option<usize> {
    let start = points.get(from)?;
    let is_later = |point: &Point| {
        let seconds = point.at_s - start.at_s;
        seconds > 0.0 && seconds >= start.rtt_s
    };
    points.get(from + 1..)?.iter().position(is_later).map(|after| from + 1 + after)
}

/// Between two of the points.
fn step(points: &[Point], start: usize, end: usize, lost: &[f64], base_s: f64) -> LossStep {
    let (from, to) = (points[start], points[end]);
    let lost = lost[end] - lost[start];
    // A loss is known a round trip after the segment was sent.
    let first = if lost > 0.0 { start.saturating_sub(1) } else { start };
    let most = |read: fn(&Point) -> f64| points[first..=end].iter().map(read).fold(0.0, f64::max);
    // A window that a time-out had closed was not found at the size of the cut before.
    let was_cut = lost > 0.0 && to.cut_at > 0.0 && !from.is_timed_out;
    LossStep {
        from_s: from.at_s,
        seconds: to.at_s - from.at_s,
        sent: (to.sent - from.sent).max(0.0),
        lost,
        is_all_lost: false,
        passed: (to.delivered - from.delivered).max(0.0),
        flight: if was_cut { to.cut_at } else { most(|point| point.flight) },
        all_flight: most(|point| point.all_flight),
        queue_s: (most(|point| point.rtt_s) - base_s).max(0.0),
        jitter_s: most(|point| point.jitter_s),
        cut: was_cut.then_some(to.cut_at),
    }
}

/// Segments that never arrived, until each point. What is gone at a time and comes back later was not lost: what stays
/// is the least from there to the end.
pub fn lost(points: &[Point]) -> Vec<f64> {
    let mut least = f64::INFINITY;
    let from_the_end = points.iter().rev().map(|point| {
        least = least.min(point.gone());
        least
    });
    let mut lost: Vec<f64> = from_the_end.collect();
    lost.reverse();
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 segments sent, 85 delivered, 20 of them sent again and 5 of these for nothing.
    #[test]
    fn what_was_sent_and_neither_arrived_nor_flies_is_lost() {
        let before = Point { rtt_s: 0.02, sent: 10.0, flight: 10.0, ..Point::default() };
        let after = Point { at_s: 0.1, sent: 110.0, delivered: 85.0, ..before };
        let end = Point { at_s: 0.2, ..after };
        let flow = flow(&[before, after, end], 0.02, Some(0.7));
        assert_eq!(flow.lost(), 15.0);
        assert_eq!(flow.sent(), 100.0);
    }

    /// 3 segments lost in each of three steps, the first two of which are one recovery.
    #[test]
    fn a_recovery_is_one_cut() {
        let at = |at_s: f64, lost: f64, cut_at: f64| Point {
            at_s,
            sent: 1000.0 * at_s,
            delivered: 1000.0 * at_s - lost,
            repeated: lost,
            cut_at,
            rtt_s: 0.09,
            ..Point::default()
        };
        let points =
            [at(0.0, 0.0, 0.0), at(0.1, 3.0, 50.0), at(0.2, 6.0, 50.0), at(0.3, 9.0, 60.0)];
        let cuts: Vec<_> =
            flow(&points, 0.1, Some(0.7)).steps.iter().map(|step| step.cut).collect();
        assert_eq!(cuts, [Some(50.0), None, Some(60.0)]);
    }

    /// Of a flow that never recovers from the first window, single segments get lost that time-outs send again.
    #[test]
    fn what_is_lost_after_a_time_out_was_not_lost_of_the_window_before() {
        let at = |at_s: f64, lost: f64| Point {
            at_s,
            sent: 10.0 + lost,
            delivered: 0.0,
            flight: if at_s > 0.0 { 1.0 } else { 10.0 },
            cut_at: 10.0,
            rtt_s: 0.05,
            is_timed_out: at_s > 0.0,
            ..Point::default()
        };
        let points = [at(0.0, 0.0), at(0.1, 0.0), at(0.5, 1.0), at(1.1, 2.0)];
        let flights: Vec<_> =
            flow(&points, 0.05, Some(0.7)).steps.iter().map(|s| s.flight).collect();
        assert_eq!(flights[2..], [1.0]);
    }

    #[test]
    fn what_comes_back_was_not_lost() {
        let at = |at_s: f64, sent: f64, delivered: f64| Point {
            at_s,
            sent,
            delivered,
            rtt_s: 0.02,
            ..Point::default()
        };
        // 30 seem lost and are sent again for nothing; then all of them are reported.
        let points = [at(0.0, 0.0, 0.0), at(0.1, 100.0, 70.0), at(0.2, 130.0, 130.0)];
        assert_eq!(flow(&points, 0.02, Some(0.7)).lost(), 0.0);
    }
}
