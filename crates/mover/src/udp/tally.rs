//! What a receiver has counted of one flow. Pure.

use goodput_model::DatagramCounts;

use super::formats::{Format, Read};
use super::inbox::Arrival;
use super::jitter::Jitter;
use super::sequence::Sequence;

/// The counts of one flow whose datagrams have the format `F`.
pub(crate) struct Tally<F> {
    pub(crate) format: F,
    sequence: Sequence,
    jitter: Jitter,
    /// Datagrams that had no number.
    unnumbered: u64,
    /// Datagrams of the batch being read.
    pub(crate) batch: u64,
    /// Their payload bytes.
    pub(crate) bytes: u64,
    /// Whether the sender has ended.
    pub(crate) ended: bool,
}

impl<F: Format> Tally<F> {
    pub(crate) fn new(format: F) -> Self {
        Self {
            format,
            sequence: Sequence::default(),
            jitter: Jitter::default(),
            unnumbered: 0,
            batch: 0,
            bytes: 0,
            ended: false,
        }
    }

    /// Begins a batch.
    pub(crate) fn begin_batch(&mut self) {
        (self.batch, self.bytes) = (0, 0);
    }

    /// Counts one datagram. Those which are not of this flow are strangers, and count nothing.
    pub(crate) fn count(&mut self, arrival: &Arrival<'_>) {
        match self.format.read(arrival.datagram) {
            Read::Payload { number, sent_ns } => {
                self.batch += 1;
                self.bytes += arrival.datagram.len() as u64;
                match number {
                    Some(number) => self.sequence.arrived(number),
                    None => self.unnumbered += 1,
                }
                if let Some(sent_ns) = sent_ns.filter(|_| arrival.is_first) {
                    self.jitter.arrived(sent_ns, arrival.received_ns);
                }
            }
            Read::End { sent } => {
                sent.into_iter().for_each(|sent| self.sequence.ended(sent));
                self.ended = true;
            }
            Read::Stranger => {}
        }
    }

    /// Whether every number up to the highest known has come.
    pub(crate) fn is_complete(&self) -> bool {
        self.sequence.lost() == 0
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> DatagramCounts {
        DatagramCounts {
            sent: 0,
            received: self.sequence.received() + self.unnumbered,
            lost: self.sequence.lost(),
            reordered: self.sequence.reordered(),
            duplicated: self.sequence.duplicated(),
            jitter_us: self.jitter.us(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::formats::Sent;
    use crate::udp::formats::goodput::Goodput;

    #[test]
    fn jitter_is_between_packets_and_not_within_them() {
        let mut tally = Tally::new(Goodput::new(1));
        let times = [(0, 10, true), (0, 10, false), (1_000, 1_010, true), (1_000, 1_010, false)];
        for (number, (at_ns, received_ns, is_first)) in times.into_iter().enumerate() {
            let mut datagram = [0; 32];
            Goodput::new(1).write(&mut datagram, Sent { number: number as u64, bytes: 0, at_ns });
            tally.count(&Arrival { datagram: &datagram, received_ns, is_first });
        }
        assert_eq!((tally.counts().received, tally.counts().jitter_us), (4, 0.0));
        tally.count(&Arrival { datagram: &[0; 40], received_ns: 0, is_first: true });
        assert_eq!((tally.counts().received, tally.bytes), (4, 128));
    }
}
