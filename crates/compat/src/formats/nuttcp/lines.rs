//! The numbers of nuttcp's lines: all streams together, as the receiver counted them.

use goodput_engine::Event;
use goodput_model::{EndName, EndResult, FlowSample, Interval, Record, Role, Sample, Transport};

use crate::formats::counts::{self, DirectionCounts, percent};
use crate::formats::cut::{FlowSpan, grown};
use crate::formats::{Context, Intervals};

/// How to write numbers.
pub struct Spelling {
    /// The line of an interval, without its line end.
    pub interval: fn(&Numbers) -> String,
    /// The line of the whole measurement.
    pub total: fn(&Numbers) -> String,
}

/// The numbers of one line.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    /// Payload bytes.
    pub bytes: u64,
    /// Duration, seconds.
    pub seconds: f64,
    /// CPU of the sender's program, percent of one CPU. 0 if unknown: nuttcp prints its variable's
    /// initial value (nuttcp-6.1.2.c, srvr_cpu_util).
    pub tx_cpu: u64,
    /// CPU of the receiver's program. Absent if the receiver's count is: nuttcp then prints the
    /// transmitter's statistics alone, as with a peer in "classic" mode.
    pub rx_cpu: Option<u64>,
    /// Segments retransmitted.
    pub retransmits: Option<u64>,
    /// Lost datagrams, and those that should have come.
    pub datagrams: Option<(u64, u64)>,
    /// Smallest round-trip time, milliseconds. nuttcp uses the handshake's.
    pub rtt_ms: Option<f64>,
}

impl Numbers {
    /// Payload in units of 2^20 bytes.
    pub fn megabytes(&self) -> f64 {
        self.bytes as f64 / f64::from(1 << 20)
    }

    /// Rate in units of 10^6 bits per second.
    pub fn mbps(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8e-6 / self.seconds } else { 0.0 }
    }

    /// Share of lost datagrams; 0 if none should have come.
    pub fn loss_percent(&self) -> f64 {
        self.datagrams.and_then(|(lost, all)| percent(lost, all)).unwrap_or(0.0)
    }
}

/// The writer of both spellings.
pub struct Lines {
    context: Context,
    spelling: &'static Spelling,
    latest: [Vec<FlowSample>; 2],
    shown: [Vec<FlowSample>; 2],
    printed: bool,
}

impl Lines {
    /// The lines in this spelling.
    pub fn new(context: Context, spelling: &'static Spelling) -> Self {
        let (latest, shown) = Default::default();
        Self { context, spelling, latest, shown, printed: false }
    }

    /// A line at the end of an interval, if intervals were requested.
    pub fn happened(&mut self, event: &Event) -> String {
        match event {
            Event::Sampled { end, sample } => self.sampled(*end, sample),
            Event::Interval(interval) if self.context.style.intervals == Intervals::All => {
                self.printed = true;
                let numbers = self.numbers(interval);
                return self.line(&(self.spelling.interval)(&numbers));
            }
            _ => {}
        }
        String::new()
    }

    fn sampled(&mut self, end: EndName, sample: &Sample) {
        if !sample.flows.is_empty() {
            self.latest[end as usize].clone_from(&sample.flows);
        }
    }

    fn line(&self, text: &str) -> String {
        match &self.context.style.title {
            Some(title) => format!("{title}: {text}\n"),
            None => format!("{text}\n"),
        }
    }

    /// The receiver's bytes, with the additions from the latest samples of both ends.
    fn numbers(&mut self, interval: &Interval) -> Numbers {
        let sent = self.grown(interval.sender, Role::Sender);
        let received = self.grown(interval.sender.other(), Role::Receiver);
        self.note(interval.sender, Role::Sender);
        self.note(interval.sender.other(), Role::Receiver);
        let written = || sent.iter().map(|flow| flow.bytes).sum();
        let udp = self.context.plan.transport == Transport::Udp;
        let retransmits = sent.iter().map(|f| f.retransmits).try_fold(0, |sum, n| Some(sum + n?));
        let datagrams = received.iter().map(|f| f.datagrams).try_fold((0, 0), |(lost, all), d| {
            let d = d?;
            Some((lost + d.lost, all + d.count))
        });
        Numbers {
            // Without the receiver's report, the transmitter's count, as with a peer in "classic" mode.
            bytes: interval.received_bytes.value().copied().unwrap_or_else(written),
            seconds: interval.to_s - interval.from_s,
            retransmits: retransmits.filter(|_| !udp && !sent.is_empty()),
            datagrams: datagrams.filter(|_| udp && !received.is_empty()),
            ..Numbers::default()
        }
    }

    /// From now on, what `end` counts in `role` belongs to the next interval.
    fn note(&mut self, end: EndName, role: Role) {
        let (latest, shown) = (&self.latest[end as usize], &mut self.shown[end as usize]);
        shown.retain(|flow| flow.role != role);
        shown.extend(latest.iter().filter(|flow| flow.role == role).cloned());
    }

    fn grown(&self, end: EndName, role: Role) -> Vec<FlowSpan> {
        let shown = &self.shown[end as usize];
        let before =
            |flow: &FlowSample| shown.iter().find(|f| f.flow == flow.flow && f.role == role);
        let own = self.latest[end as usize].iter().filter(|flow| flow.role == role);
        own.map(|flow| grown(before(flow), flow)).collect()
    }

    /// The last lines, one for each direction.
    pub fn total(&self, record: &Record) -> String {
        let flows = counts::flows(record);
        let mut text = if self.printed { "\n".to_string() } else { String::new() };
        for direction in counts::directions(record, &flows) {
            let numbers = self.direction(record, &direction);
            text += &self.line(&(self.spelling.total)(&numbers));
        }
        text
    }

    fn direction(&self, record: &Record, direction: &DirectionCounts) -> Numbers {
        let DirectionCounts { sender, sent, received } = direction;
        let counted = if received.bytes.is_some() { received } else { sent };
        let rtt = record.result.directions.iter().find(|d| d.sender == *sender);
        Numbers {
            bytes: counted.bytes.unwrap_or(0),
            seconds: counted.seconds.unwrap_or(0.0),
            tx_cpu: cpu(record, *sender),
            rx_cpu: received.bytes.map(|_| cpu(record, sender.other())),
            retransmits: sent.retransmits,
            datagrams: received.lost.zip(received.packets),
            rtt_ms: rtt.and_then(|d| d.min_rtt_us.value()).map(|us| us / 1000.0),
        }
    }
}

/// CPU of one end's program in whole percent; 0 if unknown.
fn cpu(record: &Record, end: EndName) -> u64 {
    let known = |result: &EndResult| result.cpu_percent.value().copied();
    let percent = match end {
        EndName::Near => known(&record.result.near),
        EndName::Far => known(&record.result.far)
            .or_else(|| record.far_totals.as_ref()?.cpu_percent.value().copied()),
    };
    percent.map_or(0, |percent| percent as u64)
}
