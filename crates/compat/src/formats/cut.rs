//! Cuts this end's samples into intervals for each flow, as the clients of other programs count theirs.

use goodput_model::{FlowSample, Plan, Role, Sample, TcpInfo};

use super::Intervals;

/// How early a sample may close the interval, seconds: half a millisecond, as in the engine's own
/// intervals.
const GRACE_S: f64 = 0.0005;
/// Share of an interval below which the rest at the end is not an interval of its own (iperf3 3.12,
/// iperf_print_intermediate).
const MIN_REST_SHARE: f64 = 0.1;

/// What the flows of one end counted between two instants.
#[derive(Debug, Clone)]
pub struct Span {
    /// Start, seconds since payload began to move; once an omitted warm-up is over, since its end.
    pub from_s: f64,
    /// End, seconds.
    pub to_s: f64,
    /// Whether it belongs to the omitted warm-up.
    pub omitted: bool,
    /// Each flow.
    pub flows: Vec<FlowSpan>,
}

/// What one flow counted between two instants.
#[derive(Debug, Clone)]
pub struct FlowSpan {
    /// Number of the flow in the plan.
    pub flow: u16,
    /// Whether this end sent or received on it.
    pub role: Role,
    /// Payload bytes.
    pub bytes: u64,
    /// Segments retransmitted.
    pub retransmits: Option<u64>,
    /// The kernel's state at the end.
    pub tcp: Option<TcpInfo>,
    /// Datagrams; only for UDP.
    pub datagrams: Option<Datagrams>,
}

/// Datagrams of one flow, as its sender or as its receiver counts them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Datagrams {
    /// Datagrams sent, or the sum of received and lost ones.
    pub count: u64,
    /// Lost.
    pub lost: u64,
    /// Datagrams received after one with a higher number.
    pub reordered: u64,
    /// Interarrival jitter at the end, milliseconds.
    pub jitter_ms: f64,
}

impl Span {
    /// Its length, seconds.
    pub fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// Cuts intervals as samples come in.
pub struct IntervalCutter {
    every_s: f64,
    omit_s: f64,
    /// When the warm-up was over.
    zero_s: Option<f64>,
    from: Option<Sample>,
    latest: Option<Sample>,
    cut: bool,
}

impl IntervalCutter {
    /// The intervals of a plan. The end of a warm-up cuts its last interval short.
    pub fn new(plan: &Plan) -> Self {
        let omit_s = plan.omit_s;
        let zero_s = (omit_s <= 0.0).then_some(0.0);
        Self { every_s: plan.interval_s, omit_s, zero_s, from: None, latest: None, cut: false }
    }

    /// The same as in iperf3: `-i 0` makes one interval of the whole run.
    pub fn of_iperf3(plan: &Plan, intervals: Intervals) -> Self {
        let cutter = Self::new(plan);
        match intervals {
            Intervals::None => Self { every_s: f64::INFINITY, ..cutter },
            Intervals::Usual | Intervals::All => cutter,
        }
    }

    /// Takes the next sample. Returns an interval, if the sample completes one. Samples without the
    /// detail of flows are skipped.
    pub fn push(&mut self, sample: &Sample) -> Option<Span> {
        if sample.flows.is_empty() {
            return None;
        }
        self.latest = Some(sample.clone());
        let due = sample.at_s - self.begun_s() >= self.every_s - GRACE_S;
        if self.zero_s.is_none() && sample.at_s >= self.omit_s - GRACE_S {
            let span = self.take();
            self.zero_s = Some(sample.at_s);
            return span;
        }
        due.then(|| self.take()).flatten()
    }

    /// The rest at the end, if it is long enough or the only interval.
    pub fn close(&mut self) -> Option<Span> {
        let left = self.latest.as_ref()?.at_s - self.begun_s();
        let all = !self.cut || self.every_s.is_infinite();
        (left >= self.every_s * MIN_REST_SHARE || left > 0.0 && all).then(|| self.take()).flatten()
    }

    fn begun_s(&self) -> f64 {
        self.from.as_ref().map_or(0.0, |sample| sample.at_s)
    }

    fn take(&mut self) -> Option<Span> {
        let to = self.latest.clone()?;
        let flows = to.flows.iter().map(|flow| grown(self.before(flow), flow)).collect();
        let (omitted, zero_s) = (self.zero_s.is_none(), self.zero_s.unwrap_or(0.0));
        let (from_s, to_s) = (self.begun_s() - zero_s, to.at_s - zero_s);
        let span = Span { from_s, to_s, omitted, flows };
        self.from = Some(to);
        self.cut = true;
        Some(span)
    }

    fn before(&self, flow: &FlowSample) -> Option<&FlowSample> {
        let same = |f: &&FlowSample| f.flow == flow.flow && f.role == flow.role;
        self.from.as_ref()?.flows.iter().find(same)
    }
}

/// A flow from `before`, or from its beginning, to `now`. Counters never run backwards, so a negative
/// difference counts as none.
pub fn grown(before: Option<&FlowSample>, now: &FlowSample) -> FlowSpan {
    let retransmits = |flow: &FlowSample| flow.tcp.value()?.total_retrans_segments;
    FlowSpan {
        flow: now.flow,
        role: now.role,
        bytes: now.bytes.saturating_sub(before.map_or(0, |b| b.bytes)),
        retransmits: retransmits(now)
            .map(|n| n.saturating_sub(before.and_then(retransmits).unwrap_or(0))),
        tcp: now.tcp.value().cloned(),
        datagrams: datagrams(before, now),
    }
}

fn datagrams(before: Option<&FlowSample>, now: &FlowSample) -> Option<Datagrams> {
    let now_counts = now.datagrams?;
    let earlier = before.and_then(|b| b.datagrams).unwrap_or_default();
    let lost = now_counts.lost.saturating_sub(earlier.lost);
    let count = match now.role {
        Role::Sender => now_counts.sent.saturating_sub(earlier.sent),
        Role::Receiver => now_counts.received.saturating_sub(earlier.received) + lost,
    };
    Some(Datagrams {
        count,
        lost,
        reordered: now_counts.reordered.saturating_sub(earlier.reordered),
        jitter_ms: now_counts.jitter_us / 1000.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64) -> Sample {
        let flow = FlowSample::unreported(0, Role::Sender, 0, "of no matter here");
        Sample { at_s, sent_bytes: 0, received_bytes: 0, flows: vec![flow] }
    }

    #[test]
    fn an_omitted_warm_up_is_cut_where_it_ends_and_time_begins_again() {
        let plan = Plan { omit_s: 1.5, ..Plan::standard() };
        let mut cutter = IntervalCutter::new(&plan);
        let spans = (0..=35u32).filter_map(|tenth| cutter.push(&sample(f64::from(tenth) / 10.0)));
        let spans: Vec<_> = spans.map(|span| (span.from_s, span.to_s, span.omitted)).collect();
        let wanted = [(0.0, 1.0, true), (1.0, 1.5, true), (0.0, 1.0, false), (1.0, 2.0, false)];
        assert_eq!(spans, wanted);
        assert!(cutter.close().is_none());
    }
}
