//! The intervals of a measurement, shown while it runs: from the receiver's reports, or from the next best source at
//! this end.

use goodput_model::{EndName, Interval, Plan, Sample, Transport};

use crate::events::{Event, Listener};
use crate::result::acknowledged::acknowledged;
use crate::result::intervals::{Counts, IntervalMaker};
use crate::result::joined_intervals::JoinedIntervals;

/// The intervals of each direction, and where they come from.
pub struct LiveIntervals {
    directions: Vec<DirectionIntervals>,
    without_far: Series,
    /// When the senders were stopped, seconds of the near and of the far end's samples.
    stopped_s: Option<(f64, f64)>,
}

/// One direction.
struct DirectionIntervals {
    sender: EndName,
    series: Series,
    maker: IntervalMaker,
    every_s: f64,
    kept: JoinedIntervals,
}

/// What the intervals of a direction are cut from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Series {
    /// The receiver's count.
    Received,
    /// What the receiver's TCP acknowledged, according to the sender.
    Acknowledged,
    /// What the sender wrote.
    Sent,
}

impl LiveIntervals {
    /// For a plan with a far end that does or does not show what it receives.
    pub fn new(plan: &Plan, far_reports: bool) -> Self {
        // Without observing, samples don't have what TCP acknowledged.
        let without_far = match plan.transport {
            Transport::Tcp if plan.observe => Series::Acknowledged,
            _ => Series::Sent,
        };
        let near = if far_reports { Series::Received } else { without_far };
        let direction = |sender: &EndName| {
            let series = if *sender == EndName::Near { near } else { Series::Received };
            DirectionIntervals::new(*sender, series, plan.interval_s)
        };
        Self {
            directions: plan.direction.senders().iter().map(direction).collect(),
            without_far,
            stopped_s: None,
        }
    }

    /// The next sample of an end.
    pub fn take(&mut self, at: EndName, sample: &Sample, listener: &mut Listener<'_>) {
        // After the senders were stopped, arrivals show queues emptying: no interval covers them.
        let stopped_s = self.stopped_s.map(|(near_s, far_s)| match at {
            EndName::Near => near_s,
            EndName::Far => far_s,
        });
        if stopped_s.is_some_and(|stopped_s| sample.at_s > stopped_s) {
            return;
        }
        for direction in &mut self.directions {
            if direction.is_cut_from(at)
                && let Some(interval) = direction.push(sample)
            {
                direction.show(interval, listener);
            }
        }
    }

    /// The senders were asked to stop at these times of each end's samples, seconds.
    pub fn stop(&mut self, near_s: f64, far_s: f64) {
        self.stopped_s = Some((near_s, far_s));
    }

    /// The far end does not report what it received, or no longer does: cuts the intervals that it has not reported
    /// from the near end's `samples` so far.
    pub fn do_without_far(&mut self, samples: &[Sample], listener: &mut Listener<'_>) {
        let without_far = self.without_far;
        let received_there = |direction: &&mut DirectionIntervals| {
            direction.sender == EndName::Near && direction.series == Series::Received
        };
        for direction in self.directions.iter_mut().filter(received_there) {
            let kept = std::mem::take(&mut direction.kept);
            let reported_s = kept.until_s();
            *direction = DirectionIntervals {
                kept,
                ..DirectionIntervals::new(direction.sender, without_far, direction.every_s)
            };
            for interval in
                samples.iter().filter_map(|sample| direction.push(sample)).collect::<Vec<_>>()
            {
                // Both ends cut at their own samples: an interval that is mostly new is the next one.
                if interval.to_s - reported_s > reported_s - interval.from_s {
                    direction.show(interval, listener);
                }
            }
        }
    }

    /// The rest of each direction up to the last steady sample, if it is long enough to show. Returns all kept
    /// intervals, in the order of their ends, and their length if many were joined.
    pub fn close(
        mut self,
        near: &[Sample],
        far: &[Sample],
        listener: &mut Listener<'_>,
    ) -> (Vec<Interval>, Option<f64>) {
        for direction in &mut self.directions {
            let samples = if direction.is_cut_from(EndName::Near) { near } else { far };
            if let Some(interval) = direction.close(samples) {
                direction.show(interval, listener);
            }
        }
        let every_s = self
            .directions
            .iter()
            .filter_map(|direction| direction.kept.every_s())
            .reduce(f64::max);
        let kept =
            self.directions.into_iter().flat_map(|direction| direction.kept.into_intervals());
        let mut intervals: Vec<_> = kept.collect();
        intervals.sort_by(|a, b| a.to_s.total_cmp(&b.to_s));
        (intervals, every_s)
    }
}

impl DirectionIntervals {
    fn new(sender: EndName, series: Series, every_s: f64) -> Self {
        let counts = if series == Series::Sent { Counts::Sent } else { Counts::Received };
        let maker = IntervalMaker::new(sender, counts, every_s);
        Self { sender, series, maker, every_s, kept: JoinedIntervals::default() }
    }

    fn show(&mut self, interval: Interval, listener: &mut Listener<'_>) {
        listener(Event::Interval(interval.clone()));
        self.kept.push(interval);
    }

    /// Whether the intervals are cut from the samples of `end`.
    fn is_cut_from(&self, end: EndName) -> bool {
        match self.series {
            Series::Received => end == self.sender.other(),
            Series::Acknowledged | Series::Sent => end == self.sender,
        }
    }

    fn push(&mut self, sample: &Sample) -> Option<Interval> {
        self.maker.push(&self.counted(sample)?)
    }

    fn close(&mut self, samples: &[Sample]) -> Option<Interval> {
        let last = samples.iter().rev().find_map(|sample| self.counted(sample))?;
        if last.at_s > self.kept.until_s() { self.maker.close(&last) } else { None }
    }

    /// The sample as this direction counts it, if it has enough data.
    fn counted(&self, sample: &Sample) -> Option<Sample> {
        match self.series {
            Series::Acknowledged => acknowledged(std::slice::from_ref(sample)).pop(),
            Series::Received | Series::Sent => Some(Sample { flows: Vec::new(), ..sample.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, sent_bytes: u64, received_bytes: u64) -> Sample {
        Sample { at_s, sent_bytes, received_bytes, flows: Vec::new() }
    }

    fn udp(direction: goodput_model::Direction) -> Plan {
        Plan { transport: Transport::Udp, direction, ..Plan::standard() }
    }

    #[test]
    fn what_a_silent_far_end_receives_is_not_known_and_what_it_sends_is() {
        let mut events = 0;
        let listener = &mut |_| events += 1;
        let mut live = LiveIntervals::new(&udp(goodput_model::Direction::Both), false);
        let near = [sample(1.0, 500, 300), sample(1.5, 800, 400)];
        near.iter().for_each(|sample| live.take(EndName::Near, sample, listener));
        let (intervals, _) = live.close(&near, &[], listener);
        let seen: Vec<_> = intervals
            .iter()
            .map(|i| (i.sender, i.received_bytes.value().copied(), i.sent_bits_per_s.map(|r| r.0)))
            .collect();
        let first = [(EndName::Near, None, Some(4000.0)), (EndName::Far, Some(300), None)];
        let rest = [(EndName::Near, None, Some(4800.0)), (EndName::Far, Some(100), None)];
        assert_eq!(seen, [first, rest].concat());
        assert_eq!(events, 4);
    }

    #[test]
    fn a_far_end_that_falls_silent_leaves_what_was_sent_after_its_last_report() {
        let listener = &mut |_| {};
        let mut live = LiveIntervals::new(&udp(goodput_model::Direction::Send), true);
        live.take(EndName::Far, &sample(1.01, 0, 500), listener);
        live.stop(3.0, 1.01);
        let near = [sample(1.0, 500, 0), sample(2.0, 800, 0), sample(3.0, 900, 0)];
        live.do_without_far(&near, listener);
        let (intervals, _) = live.close(&near, &[], listener);
        let seen: Vec<_> = intervals
            .iter()
            .map(|i| (i.to_s, i.received_bytes.value().copied(), i.sent_bits_per_s.map(|r| r.0)))
            .collect();
        assert_eq!(
            seen,
            [(1.01, Some(500), None), (2.0, None, Some(2400.0)), (3.0, None, Some(800.0))]
        );
    }

    #[test]
    fn a_far_end_that_turns_out_to_be_silent_leaves_what_was_sent() {
        let listener = &mut |_| {};
        let mut live = LiveIntervals::new(&udp(goodput_model::Direction::Send), true);
        let near = [sample(1.0, 500, 0), sample(2.0, 800, 0)];
        near.iter().for_each(|sample| live.take(EndName::Near, sample, listener));
        live.stop(2.0, 2.0);
        live.do_without_far(&near, listener);
        let (intervals, _) = live.close(&near, &[], listener);
        let sent: Vec<_> =
            intervals.iter().filter_map(|i| i.sent_bits_per_s).map(|r| r.0).collect();
        assert_eq!(sent, [4000.0, 2400.0]);
    }
}
