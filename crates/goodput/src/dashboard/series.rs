//! What one direction did in the last minute, for all flows and for each: rate, round trip, losses, CPU.

use std::collections::{BTreeMap, VecDeque};

use goodput_model::{EndName, FlowSample, Role, Sample};

/// Length of the graphs, seconds.
pub const SHOWN_S: f64 = 60.0;

/// Shortest time between two points, seconds: samples can be closer, and no terminal shows more.
const MIN_STEP_S: f64 = 0.09;

/// A value over time: seconds by the clock of its end, and the value.
#[derive(Debug, Clone, Default)]
pub struct Series(VecDeque<(f64, f64)>);

impl Series {
    /// Adds a value, and forgets those that are no longer shown. A time that steps back takes the place of those behind it.
    pub fn push(&mut self, at_s: f64, value: f64) {
        while self.0.back().is_some_and(|(last_s, _)| *last_s >= at_s) {
            self.0.pop_back();
        }
        while self.0.front().is_some_and(|(first_s, _)| *first_s < at_s - SHOWN_S) {
            self.0.pop_front();
        }
        self.0.push_back((at_s, value));
    }

    /// The points, oldest first.
    pub fn points(&self) -> Vec<(f64, f64)> {
        self.0.iter().copied().collect()
    }

    /// The newest value.
    pub fn last(&self) -> Option<f64> {
        self.0.back().map(|(_, value)| *value)
    }
}

/// What was seen of one flow, or of all flows of a direction.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    /// Payload that the receiver read, bit/s.
    pub received: Series,
    /// Payload that the sender wrote, bit/s.
    pub sent: Series,
    /// Smoothed round trip of the sender's TCP, ms; of all flows, the mean.
    pub round_trip_ms: Series,
    /// Segments that the sender's TCP sent again, per second.
    pub retransmitted: Series,
    /// Datagrams that the receiver missed, per second; only for UDP.
    pub lost: Series,
    /// CPU time of the sender's threads, % of one CPU.
    pub sender_cpu: Series,
    /// CPU time of the receiver's threads, % of one CPU.
    pub receiver_cpu: Series,
    /// Congestion window of the sender's TCP, segments; of all flows, the sum.
    pub window_segments: Option<u64>,
}

impl Lines {
    /// What arrived if the receiver reports it, otherwise what was sent.
    pub fn rate(&self) -> (&Series, &'static str) {
        if self.received.0.is_empty() { (&self.sent, "sent") } else { (&self.received, "received") }
    }

    fn enter(&mut self, at_s: f64, role: Role, step: &Step) {
        let (rate, cpu) = match role {
            Role::Sender => (&mut self.sent, &mut self.sender_cpu),
            Role::Receiver => (&mut self.received, &mut self.receiver_cpu),
        };
        rate.push(at_s, step.bits_per_s);
        if let Some(percent) = step.cpu_percent {
            cpu.push(at_s, percent);
        }
        if role == Role::Sender {
            step.round_trip_ms.into_iter().for_each(|ms| self.round_trip_ms.push(at_s, ms));
            step.retransmitted.into_iter().for_each(|rate| self.retransmitted.push(at_s, rate));
            self.window_segments = step.window_segments.or(self.window_segments);
        } else {
            step.lost.into_iter().for_each(|rate| self.lost.push(at_s, rate));
        }
    }
}

/// One direction: all its flows together, and each.
#[derive(Debug, Clone, Default)]
pub struct DirectionSeries {
    /// All flows.
    pub all: Lines,
    /// Each flow by its number.
    pub flows: BTreeMap<u16, Lines>,
    before: BTreeMap<EndName, Sample>,
}

impl DirectionSeries {
    /// Takes what `end` has counted; `role` is its part in this direction.
    pub fn enter(&mut self, end: EndName, role: Role, sample: &Sample) {
        let since_s = |before: &Sample| sample.at_s - before.at_s;
        let before = self.before.get(&end);
        if before.is_some_and(|before| (0.0..MIN_STEP_S).contains(&since_s(before))) {
            return;
        }
        let before = self.before.insert(end, sample.clone());
        // Of a time that steps back no rate is known.
        if let Some(before) = before.filter(|before| since_s(before) > 0.0) {
            self.step(role, &before, sample);
        }
    }

    fn step(&mut self, role: Role, before: &Sample, now: &Sample) {
        let seconds = now.at_s - before.at_s;
        let moved = |sample: &Sample| match role {
            Role::Sender => sample.sent_bytes,
            Role::Receiver => sample.received_bytes,
        };
        let bytes = moved(now).saturating_sub(moved(before));
        let flows = now.flows.iter().filter(|flow| flow.role == role);
        let pairs = flows.filter_map(|flow| {
            let same = |past: &&FlowSample| past.flow == flow.flow && past.role == role;
            Some((flow.flow, Step::between(before.flows.iter().find(same)?, flow, seconds)))
        });
        let steps: Vec<_> = pairs.collect();
        let all = Step { bits_per_s: bits_per_s(bytes, seconds), ..Step::sum(&steps) };
        self.all.enter(now.at_s, role, &all);
        for (flow, step) in &steps {
            self.flows.entry(*flow).or_default().enter(now.at_s, role, step);
        }
    }
}

/// What happened between two samples.
#[derive(Debug, Clone, Default)]
struct Step {
    bits_per_s: f64,
    round_trip_ms: Option<f64>,
    retransmitted: Option<f64>,
    lost: Option<f64>,
    cpu_percent: Option<f64>,
    window_segments: Option<u64>,
}

impl Step {
    fn between(before: &FlowSample, now: &FlowSample, seconds: f64) -> Self {
        let tcp = now.tcp.value();
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let again = |flow: &FlowSample| flow.tcp.value()?.total_retrans_segments().ok();
        let lost = |flow: &FlowSample| flow.datagrams?.lost().ok();
        Self {
            bits_per_s: bits_per_s(now.bytes.saturating_sub(before.bytes), seconds),
            round_trip_ms: tcp.and_then(|tcp| tcp.rtt_us().ok()).map(|us| us as f64 / 1e3),
            retransmitted: again(now).zip(again(before)).map(|(now, past)| since(now, past)),
            // One that came late after all makes them fewer.
            lost: lost(now).zip(lost(before)).map(|(now, past)| since(now, past)),
            cpu_percent: now
                .cpu_us
                .value()
                .zip(before.cpu_us.value())
                .map(|(now, before)| since(*now, *before) / 1e6 * 100.0),
            window_segments: tcp.and_then(|tcp| tcp.snd_cwnd_segments().ok()),
        }
    }

    /// All flows together; what no flow reports is absent.
    fn sum(steps: &[(u16, Self)]) -> Self {
        let sum = |of: fn(&Self) -> Option<f64>| {
            steps.iter().filter_map(|(_, step)| of(step)).reduce(|sum, more| sum + more)
        };
        let round_trips = steps.iter().filter(|(_, step)| step.round_trip_ms.is_some()).count();
        Self {
            bits_per_s: 0.0,
            round_trip_ms: sum(|step| step.round_trip_ms).map(|sum| sum / round_trips as f64),
            retransmitted: sum(|step| step.retransmitted),
            lost: sum(|step| step.lost),
            cpu_percent: sum(|step| step.cpu_percent),
            window_segments: steps
                .iter()
                .filter_map(|(_, step)| step.window_segments)
                .reduce(u64::saturating_add),
        }
    }
}

fn bits_per_s(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / seconds
}

#[cfg(test)]
mod tests {
    use goodput_model::DatagramCounts;

    use super::*;

    fn sample(at_s: f64, bytes: u64) -> Sample {
        let flow = |flow, bytes| FlowSample::unreported(flow, Role::Sender, bytes, "of a test");
        let flows = vec![flow(0, bytes / 4), flow(1, bytes - bytes / 4)];
        Sample { at_s, sent_bytes: bytes, received_bytes: 0, flows }
    }

    #[test]
    fn rates_are_what_was_counted_in_between() {
        let mut direction = DirectionSeries::default();
        for (at_s, bytes) in [(0.0, 0), (0.05, 1), (0.1, 1000), (0.2, 5000)] {
            direction.enter(EndName::Near, Role::Sender, &sample(at_s, bytes));
        }
        let (rate, which) = direction.all.rate();
        assert_eq!(which, "sent", "no receiver reports");
        let rates: Vec<_> = rate.points().iter().map(|(_, rate)| rate.round()).collect();
        assert_eq!(rates, [80e3, 320e3], "the sample after 0.05 s is too close");
        assert_eq!(direction.flows[&0].rate().0.last().map(f64::round), Some(80e3));
        assert!(direction.all.round_trip_ms.last().is_none(), "absent is not zero");
    }

    #[test]
    fn lost_datagrams_are_those_that_the_receiver_missed() {
        let mut direction = DirectionSeries::default();
        for (at_s, lost) in [(0.0, 0), (1.0, 5), (2.0, 4)] {
            let counts = DatagramCounts { lost, ..DatagramCounts::default() };
            let flow = FlowSample::unreported(0, Role::Receiver, 0, "of a test");
            let flows = vec![FlowSample { datagrams: Some(counts), ..flow }];
            let seen = Sample { at_s, sent_bytes: 0, received_bytes: 0, flows };
            direction.enter(EndName::Far, Role::Receiver, &seen);
        }
        assert_eq!(direction.all.lost.points(), [(1.0, 5.0), (2.0, 0.0)], "none is taken back");
        assert!(direction.all.retransmitted.last().is_none());
    }

    #[test]
    fn a_time_that_steps_back_has_no_rate_and_the_next_ones_have_theirs() {
        let mut direction = DirectionSeries::default();
        for (at_s, bytes) in [(0.0, 0), (1.0, 1000), (2.0, 2000), (0.5, 3000), (1.5, 5000)] {
            direction.enter(EndName::Near, Role::Sender, &sample(at_s, bytes));
        }
        let (rate, _) = direction.all.rate();
        assert_eq!(rate.points(), [(1.0, 8e3), (1.5, 16e3)]);
    }

    #[test]
    fn only_the_last_minute_is_kept() {
        let mut series = Series::default();
        (0..2000).for_each(|tenth| series.push(f64::from(tenth) / 10.0, 1.0));
        assert!(series.points().len() <= 601, "{}", series.points().len());
        assert!(series.points()[0].0 >= 199.9 - SHOWN_S);
    }
}
