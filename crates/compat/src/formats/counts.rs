//! What each end of each flow counted over the whole run, from the ends' samples or from a foreign peer's report.

use goodput_model::{
    Connection, DirectionResult, End, EndName, FlowPlan, FlowTotals, Record, Role, Sample,
    Transport,
};

use super::cut::{FlowSpan, grown};

/// One flow, from both ends.
#[derive(Debug, Clone)]
pub struct FlowCounts {
    /// Number of the flow in the plan.
    pub flow: u16,
    /// The end that sent.
    pub sender: EndName,
    /// Its addresses.
    pub connection: Option<Connection>,
    /// The sender's count.
    pub sent: Side,
    /// The receiver's count.
    pub received: Side,
}

/// What one end counted. Absent means unknown.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// Payload bytes.
    pub bytes: Option<u64>,
    /// How long it counted, seconds.
    pub seconds: Option<f64>,
    /// Segments retransmitted.
    pub retransmits: Option<u64>,
    /// Datagrams sent, or the sum of received and lost ones.
    pub packets: Option<u64>,
    /// Lost datagrams among these.
    pub lost: Option<u64>,
    /// Datagrams received after one with a higher number.
    pub reordered: Option<u64>,
    /// Interarrival jitter, milliseconds.
    pub jitter_ms: Option<f64>,
}

impl Side {
    /// The rate of the counted bytes, bits per second.
    pub fn bits_per_s(&self) -> Option<f64> {
        match (self.bytes, self.seconds) {
            (Some(bytes), Some(seconds)) if seconds > 0.0 => Some(bytes as f64 * 8.0 / seconds),
            _ => None,
        }
    }

    /// Share of lost datagrams among those that should have come, percent.
    pub fn lost_percent(&self) -> Option<f64> {
        percent(self.lost?, self.packets?)
    }
}

/// `part` of `whole`, percent; unknown if `whole` is zero.
pub fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// Every flow of a record in the order of the plan.
pub fn flows(record: &Record) -> Vec<FlowCounts> {
    let plans = record.plan.flow_plans();
    let counts = plans.into_iter().map(|flow| counts(record, flow));
    let known = |a: &FlowCounts| a.sent.bytes.is_some() || a.received.bytes.is_some();
    counts.filter(known).collect()
}

/// The flows of one direction, taken together.
#[derive(Debug, Clone)]
pub struct DirectionCounts {
    /// The end that sent.
    pub sender: EndName,
    /// The senders' counts.
    pub sent: Side,
    /// The receivers' counts.
    pub received: Side,
}

/// Every direction of a record, the near sender's first.
pub fn directions(record: &Record, flows: &[FlowCounts]) -> Vec<DirectionCounts> {
    let mut senders: Vec<_> = record.plan.flow_plans().iter().map(|flow| flow.sender).collect();
    senders.dedup();
    senders.into_iter().map(|sender| direction(record, flows, sender)).collect()
}

fn direction(record: &Record, flows: &[FlowCounts], sender: EndName) -> DirectionCounts {
    let own: Vec<_> = flows.iter().filter(|flow| flow.sender == sender).collect();
    let mut sum = DirectionCounts {
        sender,
        sent: together(own.iter().map(|flow| &flow.sent)),
        received: together(own.iter().map(|flow| &flow.received)),
    };
    if let Some(result) = record.result.directions.iter().find(|d| d.sender == sender) {
        fill(&mut sum, result, [run_s(record, sender), run_s(record, sender.other())]);
    }
    sum
}

/// How long the whole run took by the samples of `end`, or of the other end if that has none, seconds; the result's
/// bytes cover this time. The result's own time is the window of its goodput, and is used only if nothing was sampled.
fn run_s(record: &Record, end: EndName) -> f64 {
    let last_s = |end| {
        let seen = match end {
            EndName::Near => &record.ends.near,
            EndName::Far => &record.ends.far,
        };
        let run_s = seen.value()?.last_sample()?.at_s - record.plan.omit_s;
        Some(run_s).filter(|seconds| *seconds > 0.0)
    };
    last_s(end).or_else(|| last_s(end.other())).unwrap_or(record.result.duration_s)
}

/// Fills in from the record's own result what no flow reports. The sender and the receiver counted for these `seconds`.
fn fill(sum: &mut DirectionCounts, result: &DirectionResult, seconds: [f64; 2]) {
    let or =
        |known: Option<u64>, other: &goodput_model::Known<u64>| known.or(other.value().copied());
    sum.sent.bytes = or(sum.sent.bytes, &result.sent_bytes);
    sum.sent.retransmits = or(sum.sent.retransmits, &result.retransmits);
    sum.received.bytes = or(sum.received.bytes, &result.received_bytes);
    for (side, seconds) in [&mut sum.sent, &mut sum.received].into_iter().zip(seconds) {
        side.seconds = side.seconds.or_else(|| side.bytes.map(|_| seconds));
    }
}

fn together<'a>(sides: impl Iterator<Item = &'a Side> + Clone) -> Side {
    let sum = |read: fn(&Side) -> Option<u64>| -> Option<u64> {
        let mut all = sides.clone().map(read).peekable();
        all.peek()?;
        all.try_fold(0u64, |sum, one| sum.checked_add(one?))
    };
    let jitters: Vec<_> = sides.clone().filter_map(|side| side.jitter_ms).collect();
    Side {
        bytes: sum(|s| s.bytes),
        seconds: sides.clone().filter_map(|s| s.seconds).reduce(f64::max),
        retransmits: sum(|s| s.retransmits),
        packets: sum(|s| s.packets),
        lost: sum(|s| s.lost),
        reordered: sum(|s| s.reordered),
        // The mean, as in iperf3 (iperf_api.c, avg_jitter).
        jitter_ms: (!jitters.is_empty())
            .then(|| jitters.iter().sum::<f64>() / jitters.len() as f64),
    }
}

fn counts(record: &Record, flow: FlowPlan) -> FlowCounts {
    let side = |at: EndName, role: Role| {
        let seen = match at {
            EndName::Near => record.ends.near.value(),
            EndName::Far => record.ends.far.value(),
        };
        seen.and_then(|end| counted(end, record.plan.omit_s, flow.id, role))
            .or_else(|| reported(record, at, flow.id, role))
            .unwrap_or_default()
    };
    let mut sent = side(flow.sender, Role::Sender);
    let mut received = side(flow.sender.other(), Role::Receiver);
    // A peer that reports no time counted as long as this end did.
    sent.seconds = sent.seconds.or(received.seconds);
    received.seconds = received.seconds.or(sent.seconds);
    if record.plan.transport == Transport::Udp {
        sent.retransmits = None;
        received.packets = received.packets.or(sent.packets.filter(|_| received.lost.is_some()));
    }
    let connection = record.connections.iter().find(|c| c.flow == flow.id).copied();
    FlowCounts { flow: flow.id, sender: flow.sender, connection, sent, received }
}

/// What one end counted, starting with the first detailed sample after the warm-up.
fn counted(end: &End, omit_s: f64, flow: u16, role: Role) -> Option<Side> {
    let of = |s: &&'_ Sample| s.flows.iter().position(|f| f.flow == flow && f.role == role);
    let sample = end.samples.iter().rev().find(|s| !s.flows.is_empty())?;
    let seen = &sample.flows[of(&sample)?];
    let warm = end.samples.iter().find(|s| omit_s > 0.0 && s.at_s >= omit_s && of(s).is_some());
    let before = warm.and_then(|warm| warm.flows.get(of(&warm)?));
    let FlowSpan { bytes, retransmits, datagrams, .. } = grown(before, seen);
    let (numbered, timed) = seen.datagrams.map_or((false, false), |d| (d.numbered, d.timed));
    let arrived = datagrams.filter(|_| role == Role::Receiver);
    let ordered = arrived.filter(|_| numbered);
    Some(Side {
        bytes: Some(bytes),
        seconds: Some(sample.at_s - warm.map_or(0.0, |warm| warm.at_s)),
        retransmits: retransmits.filter(|_| role == Role::Sender),
        packets: datagrams.map(|d| d.count),
        // Datagrams without a number or time show nothing about loss, order and jitter.
        lost: ordered.map(|d| d.lost),
        reordered: ordered.map(|d| d.reordered),
        jitter_ms: arrived.filter(|_| timed).map(|d| d.jitter_ms),
    })
}

fn reported(record: &Record, at: EndName, flow: u16, role: Role) -> Option<Side> {
    let totals = record.far_totals.as_ref().filter(|_| at == EndName::Far)?;
    let totals: &FlowTotals = totals.flows.iter().find(|f| f.flow == flow && f.role == role)?;
    Some(Side {
        bytes: totals.bytes.value().copied(),
        seconds: totals.duration_s.value().copied(),
        retransmits: totals.retransmits.value().copied(),
        packets: totals.datagrams.value().copied(),
        lost: totals.lost.value().copied(),
        reordered: totals.reordered.value().copied(),
        jitter_ms: totals.jitter_us.value().map(|us| us / 1000.0),
    })
}
