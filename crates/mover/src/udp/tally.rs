//! A receiver's counts for one flow. Pure.

use goodput_framing::{Datagrams, Framing, Read, Summary};
use goodput_model::{BitRate, DatagramCounts, Role, Transport};

use super::arrival_log::ArrivalLog;
use super::evenness::Evenness;
use super::inbox::Arrival;
use super::jitter::Jitter;
use super::pauses::Pauses;
use super::sequence::Sequence;
use crate::flow::FlowConfig;

/// A receiver's counts for `datagrams` of `chunk` bytes, in this order, from any sender.
pub fn count<'a>(
    framing: &Framing,
    chunk: usize,
    datagrams: impl IntoIterator<Item = &'a [u8]>,
) -> DatagramCounts {
    let config = FlowConfig {
        framing: framing.clone(),
        ..FlowConfig::new(Role::Receiver, Transport::Udp, chunk)
    };
    let mut tally = Tally::new(config.datagrams(), None);
    for (received_ns, datagram) in (1u64..).zip(datagrams) {
        tally.count(&Arrival { datagram, received_ns, is_first: true });
    }
    tally.counts()
}

/// The counts of one flow.
pub(crate) struct Tally {
    pub(crate) datagrams: Box<dyn Datagrams>,
    sequence: Sequence,
    jitter: Jitter,
    evenness: Evenness,
    /// Pauses between packets with payload.
    pub(crate) pauses: Pauses,
    /// When each datagram came, if recorded.
    pub(crate) arrivals: Option<ArrivalLog>,
    /// Datagrams that came joined to the one before.
    pub(crate) joined: u64,
    /// Datagrams that had no number.
    unnumbered: u64,
    /// Datagrams of the batch being read.
    pub(crate) batch: u64,
    /// Their payload bytes.
    pub(crate) bytes: u64,
    /// Payload bytes of all previous batches.
    before: u64,
    /// Bytes of everything that came, payload or not.
    came: u64,
    /// When the first and the last payload came, nanoseconds since 1970.
    times: Option<(u64, u64)>,
    /// Whether the payload's clock was started in this batch.
    pub(crate) begins: bool,
    /// Whether the payload's clock has ended, and how long before the announcement, nanoseconds.
    pub(crate) over: Option<u64>,
    /// Whether the sender has ended.
    pub(crate) ended: bool,
}

impl Tally {
    /// For a flow that is expected to hold `rate`, if it is paced.
    pub(crate) fn new(datagrams: Box<dyn Datagrams>, rate: Option<BitRate>) -> Self {
        Self {
            datagrams,
            sequence: Sequence::default(),
            jitter: Jitter::default(),
            evenness: Evenness::new(rate),
            pauses: Pauses::default(),
            arrivals: None,
            joined: 0,
            unnumbered: 0,
            batch: 0,
            bytes: 0,
            before: 0,
            came: 0,
            times: None,
            begins: false,
            over: None,
            ended: false,
        }
    }

    /// The same, recording each arrival in this log, if there is one.
    pub(crate) fn keeping(mut self, arrivals: Option<ArrivalLog>) -> Self {
        self.arrivals = arrivals;
        self
    }

    /// Begins a batch.
    pub(crate) fn begin_batch(&mut self) {
        self.before += self.bytes;
        (self.batch, self.bytes, self.begins) = (0, 0, false);
    }

    /// Counts one datagram. Foreign datagrams, those of other flows, do not count.
    pub(crate) fn count(&mut self, arrival: &Arrival<'_>) {
        self.came += arrival.datagram.len() as u64;
        match self.datagrams.read(arrival.datagram) {
            Read::Payload { number, sent_ns } => {
                self.payload(arrival, number);
                if let (Some(log), Some(number), Some(sent_ns)) =
                    (&mut self.arrivals, number, sent_ns)
                {
                    log.note(number, sent_ns, arrival.received_ns);
                }
                if let Some(sent_ns) = sent_ns.filter(|_| arrival.is_first) {
                    self.jitter.arrived(sent_ns, arrival.received_ns);
                }
            }
            Read::Begin => self.begins = true,
            Read::Over => self.over = self.over.or(Some(0)),
            Read::End { sent, is_payload, ago_ns } => {
                // A repetition says nothing new, though its number may differ.
                if !self.ended {
                    if is_payload {
                        self.payload(arrival, sent.and_then(|sent| sent.checked_sub(1)));
                    }
                    sent.into_iter().for_each(|sent| self.sequence.ended(sent));
                    self.over = self.over.or(Some(ago_ns));
                    self.ended = true;
                }
            }
            Read::Foreign => {}
        }
    }

    /// Counts a datagram that came after the end.
    pub(crate) fn overhear(&mut self, arrival: &Arrival<'_>) {
        self.came += arrival.datagram.len() as u64;
    }

    fn payload(&mut self, arrival: &Arrival<'_>, number: Option<u64>) {
        self.batch += 1;
        self.bytes += arrival.datagram.len() as u64;
        self.joined += u64::from(!arrival.is_first);
        self.pauses.arrived(arrival);
        match number {
            Some(number) => {
                self.sequence.arrived(number);
                self.evenness.arrived(number, arrival);
            }
            None => self.unnumbered += 1,
        }
        let (first, _) = self.times.unwrap_or((arrival.received_ns, 0));
        self.times = Some((first, arrival.received_ns));
    }

    /// Bytes of everything that came, payload or not.
    pub(crate) fn came_bytes(&self) -> u64 {
        self.came
    }

    /// The report to the sender at the end.
    pub(crate) fn summary(&self) -> Summary {
        let (first, last) = self.times.unwrap_or_default();
        Summary {
            bytes: self.before + self.bytes,
            took_ns: last.saturating_sub(first),
            lost: self.sequence.lost(),
            reordered: self.sequence.reordered(),
            datagrams: self.sequence.known(),
            jitter_us: self.jitter.us(),
        }
    }

    /// Whether every number up to the highest known has come.
    pub(crate) fn is_complete(&self) -> bool {
        self.sequence.lost() == 0
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> DatagramCounts {
        DatagramCounts {
            received: self.sequence.received() + self.unnumbered,
            lost: self.sequence.lost(),
            reordered: self.sequence.reordered(),
            duplicated: self.sequence.duplicated(),
            jitter_us: self.jitter.us(),
            joined: self.joined,
            gaps: self.evenness.gaps,
            even_gaps: self.evenness.even,
            ..DatagramCounts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_framing::Sent;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_that_comes_breaks_any_of_them(
            datagrams in proptest::collection::vec(proptest::collection::vec(
                prop_oneof![Just(0u8), Just(255), Just(b'0'), any::<u8>()], 0..40), 0..40),
        ) {
            for framing in goodput_framing::examples() {
                let counts = count(&framing, 32, datagrams.iter().map(Vec::as_slice));
                prop_assert!(counts.received <= datagrams.len() as u64);
            }
        }
    }

    #[test]
    fn jitter_is_between_packets_and_not_within_them() {
        let own = || goodput_framing::goodput().datagrams(1, 32);
        let mut tally = Tally::new(own(), None);
        let times = [(0, 10, true), (0, 10, false), (1_000, 1_010, true), (1_000, 1_010, false)];
        for (number, (at_ns, received_ns, is_first)) in times.into_iter().enumerate() {
            let mut datagram = [0; 32];
            own().write(&mut datagram, Sent { number: number as u64, bytes: 0, at_ns });
            tally.count(&Arrival { datagram: &datagram, received_ns, is_first });
        }
        assert_eq!((tally.counts().received, tally.counts().jitter_us), (4, 0.0));
        tally.count(&Arrival { datagram: &[0; 40], received_ns: 0, is_first: true });
        assert_eq!((tally.counts().received, tally.bytes), (4, 128));
    }
}
