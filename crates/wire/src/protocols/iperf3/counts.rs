//! This end's counts, as iperf3 expects them.

use goodput_model::{EndName, FlowSample, Plan, Role, Sample, Transport};

use super::results::{NOT_COUNTED, Results, StreamResult, stream_id};

/// The counts of this end, from the samples that its driver reports.
pub struct Counts {
    end: EndName,
    omit_s: f64,
    /// The first detailed sample after the warm-up. All counts and the time begin with this sample, so that rates are
    /// exact; it comes up to 0.1 s late, or 10 ms for each flow if this is more.
    warm: Option<Sample>,
    last: Option<Sample>,
}

/// The counts of one flow without the warm-up, except where iperf3 includes it.
struct Counted<'a> {
    last: &'a FlowSample,
    warm: Option<&'a FlowSample>,
}

impl Counts {
    /// The counts of `end`, which leave the warm-up out.
    pub fn new(end: EndName, omit_s: f64) -> Self {
        Self { end, omit_s, warm: None, last: None }
    }

    /// Takes a sample of this end.
    pub fn sampled(&mut self, sample: &Sample) {
        let after_warm_up = self.omit_s > 0.0 && sample.at_s >= self.omit_s;
        if after_warm_up && self.warm.is_none() && !sample.flows.is_empty() {
            self.warm = Some(sample.clone());
        }
    }

    /// Takes the last sample of this end.
    pub fn ended(&mut self, last: Sample) {
        self.last = Some(last);
    }

    /// Whether the last sample is there.
    pub fn is_complete(&self) -> bool {
        self.last.is_some()
    }

    /// When payload starts to count, seconds of this end's clock.
    fn begins_at_s(&self) -> f64 {
        self.warm.as_ref().map_or(0.0, |sample| sample.at_s)
    }

    /// The report for the peer. A flow without counts at this end is reported with zeros: readers require every
    /// stream.
    pub fn results(&self, plan: &Plan, output: Option<String>) -> Results {
        let seconds =
            self.last.as_ref().map_or(0.0, |last| last.at_s - self.begins_at_s()).max(0.0);
        let counted: Vec<_> =
            plan.flow_plans().iter().map(|f| (f.id, self.counted(f.id))).collect();
        let cpu_us: u64 = counted.iter().filter_map(|(_, c)| c.as_ref()?.cpu_us()).sum();
        let sends = plan.flow_plans().iter().any(|flow| flow.sender == self.end);
        let tcp = plan.transport == Transport::Tcp;
        Results {
            cpu_util_total: if seconds > 0.0 { cpu_us as f64 / 1e4 / seconds } else { 0.0 },
            cpu_util_user: 0.0,
            cpu_util_system: 0.0,
            sender_has_retransmits: if sends { i64::from(tcp) } else { NOT_COUNTED },
            congestion_used: plan.socket.congestion.clone().filter(|_| tcp),
            server_output_text: output,
            streams: counted.into_iter().map(|(id, c)| stream(id, c.as_ref(), seconds)).collect(),
        }
    }

    fn counted(&self, flow: u16) -> Option<Counted<'_>> {
        let of = |sample: &'_ Option<Sample>| -> Option<usize> {
            sample.as_ref()?.flows.iter().position(|counted| counted.flow == flow)
        };
        let last = &self.last.as_ref()?.flows[of(&self.last)?];
        let warm = of(&self.warm).and_then(|at| self.warm.as_ref()?.flows.get(at));
        Some(Counted { last, warm })
    }
}

impl Counted<'_> {
    /// How much of a count came after the warm-up.
    fn since(&self, count: impl Fn(&FlowSample) -> Option<u64>) -> Option<u64> {
        let before = self.warm.and_then(&count).unwrap_or(0);
        count(self.last).map(|now| now.saturating_sub(before))
    }

    fn cpu_us(&self) -> Option<u64> {
        self.since(|sample| sample.cpu_us.value().copied())
    }

    fn bytes(&self) -> u64 {
        self.since(|sample| Some(sample.bytes)).unwrap_or(0)
    }

    /// Only the sender of a stream counts retransmits.
    fn retransmits(&self) -> i64 {
        let of = |sample: &FlowSample| sample.tcp.value()?.total_retrans_segments;
        let sender = self.last.role == Role::Sender;
        let count = self.since(of).filter(|_| sender);
        count.and_then(|count| i64::try_from(count).ok()).unwrap_or(NOT_COUNTED)
    }
}

fn stream(flow: u16, counted: Option<&Counted<'_>>, seconds: f64) -> StreamResult {
    let last = counted.map(|counted| counted.last);
    let warm = counted.and_then(|counted| counted.warm);
    let datagrams = last.and_then(|sample| sample.datagrams);
    StreamResult {
        id: stream_id(flow),
        bytes: counted.map_or(0, Counted::bytes),
        retransmits: counted.map_or(NOT_COUNTED, Counted::retransmits),
        jitter: datagrams.map_or(0.0, |datagrams| datagrams.jitter_us / 1e6),
        errors: lost(last),
        packets: packets(last),
        omitted_errors: lost(warm),
        omitted_packets: packets(warm),
        start_time: 0.0,
        end_time: seconds,
    }
}

fn lost(sample: Option<&FlowSample>) -> u64 {
    sample.and_then(|sample| sample.datagrams).map_or(0, |datagrams| datagrams.lost)
}

/// Datagrams sent, or the highest number received.
pub(super) fn packets(sample: Option<&FlowSample>) -> u64 {
    let Some((role, counts)) = sample.and_then(|s| Some((s.role, s.datagrams?))) else { return 0 };
    match role {
        Role::Sender => counts.sent,
        Role::Receiver => counts.received.saturating_sub(counts.duplicated) + counts.lost,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{detailed, udp};
    use super::*;
    use goodput_model::Direction;

    #[test]
    fn counts_begin_with_the_first_sample_after_the_warm_up_and_so_does_the_time() {
        let mut counts = Counts::new(EndName::Far, 1.0);
        for (at_s, bytes) in [(0.9, 900), (1.1, 1100), (1.2, 1200)] {
            counts.sampled(&detailed(at_s, Role::Receiver, &[bytes]));
        }
        counts.ended(detailed(3.1, Role::Receiver, &[3100]));
        let stream = &counts.results(&Plan::standard(), None).streams[0];
        assert_eq!((stream.bytes, stream.end_time), (2000, 2.0));
        assert_eq!(stream.retransmits, NOT_COUNTED);
    }

    #[test]
    fn datagrams_are_reported_with_the_warm_up_and_that_apart() {
        let plan = Plan { transport: Transport::Udp, ..Plan::standard() };
        let mut counts = Counts::new(EndName::Far, 1.0);
        counts.sampled(&udp(1.0, 100, 90, 10));
        counts.ended(udp(2.0, 300, 270, 30));
        let results = counts.results(&plan, None);
        let stream = &results.streams[0];
        assert_eq!((stream.packets, stream.omitted_packets), (300, 100));
        assert_eq!((stream.errors, stream.omitted_errors), (30, 10));
        assert_eq!(results.sender_has_retransmits, NOT_COUNTED);
    }

    #[test]
    fn every_stream_is_reported_even_where_nothing_was_counted() {
        let plan = Plan { direction: Direction::Both, flows: 2, ..Plan::standard() };
        let results = Counts::new(EndName::Near, 0.0).results(&plan, None);
        let ids: Vec<_> = results.streams.iter().map(|stream| stream.id).collect();
        assert_eq!((ids, results.sender_has_retransmits), (vec![1, 3, 4, 5], 1));
    }
}
