//! The loop of every mover that receives datagrams, and what it counts.

use std::os::fd::AsFd;

use goodput_model::DatagramCounts;
use rustix::io::Errno;

use super::header::Header;
use super::inbox::{self, Arrival, Inbox, stamp_arrivals};
use super::jitter::Jitter;
use super::sequence::Sequence;
use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::pace::Pacer;

/// How long a receiver reads on after the first end marker while datagrams are missing,
/// nanoseconds: those which took another queue may still come.
const STRAGGLERS_NS: u64 = 50_000_000;

/// Receives messages of up to `size` bytes until the end marker has come, and all the rest or time
/// enough for it, or until the deadline of the stop.
pub(crate) fn receive(flow: &Flow, size: usize) -> Result<(), MoveError> {
    stamp_arrivals(flow.socket.as_fd()).map_err(|cause| {
        MoveError::from_system(flow.config.id, "ask for times of arrival", cause)
    })?;
    Receiver { flow, tally: Tally::default() }.run(size)
}

/// A receiving flow and what it has counted.
struct Receiver<'a> {
    flow: &'a Flow,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    sequence: Sequence,
    jitter: Jitter,
    /// Datagrams of the batch being read.
    batch: u64,
    bytes: u64,
    ended: bool,
}

impl Receiver<'_> {
    fn run(&mut self, size: usize) -> Result<(), MoveError> {
        let mut pacer = Pacer::for_datagrams(self.flow, size);
        let mut inbox = Inbox::new(size, if pacer.is_paced() { 1 } else { inbox::BATCH });
        let mut last_call = None;
        while self.flow.may_receive()? && !self.is_over(&mut last_call) {
            if !pacer.wait(self.flow)? {
                continue;
            }
            match self.read(&mut inbox) {
                Ok(bytes) => pacer.sent(bytes),
                Err(Errno::AGAIN) => self.flow.wait_readable(last_call)?,
                // An earlier packet of ours was refused; that says nothing about those to come.
                Err(Errno::INTR | Errno::CONNREFUSED) => {}
                Err(cause) => return Err(self.flow.failed("receive a datagram", cause)),
            }
        }
        Ok(())
    }

    /// Reads one batch and counts it; returns its bytes.
    fn read(&mut self, inbox: &mut Inbox) -> Result<usize, Errno> {
        let (tally, id) = (&mut self.tally, self.flow.config.id);
        (tally.batch, tally.bytes) = (0, 0);
        inbox.receive(self.flow.socket.as_fd(), |arrival| tally.count(id, &arrival))?;
        if tally.batch > 0 {
            self.flow.counters.moved(tally.bytes);
        }
        self.flow.counters.show_received(&tally.counts());
        Ok(tally.bytes as usize)
    }

    /// Whether the end marker has come, and all the rest, or time enough for it.
    fn is_over(&self, last_call: &mut Option<u64>) -> bool {
        if !self.tally.ended {
            return false;
        }
        self.flow.payload_is_over();
        let until = *last_call.get_or_insert_with(|| now_ns() + STRAGGLERS_NS);
        self.tally.sequence.lost() == 0 || now_ns() >= until
    }
}

impl Tally {
    /// Counts one datagram. Those which are not of this flow are strangers, and count nothing.
    fn count(&mut self, flow: u16, arrival: &Arrival<'_>) {
        match Header::decode(arrival.datagram) {
            Some(header) if header.flow == flow && header.end => {
                self.sequence.ended(header.sequence);
                self.ended = true;
            }
            Some(header) if header.flow == flow => {
                self.sequence.arrived(header.sequence);
                if arrival.is_first {
                    self.jitter.arrived(header.sent_ns, arrival.received_ns);
                }
                self.bytes += arrival.datagram.len() as u64;
                self.batch += 1;
            }
            _ => {}
        }
    }

    fn counts(&self) -> DatagramCounts {
        DatagramCounts {
            sent: 0,
            received: self.sequence.received(),
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

    #[test]
    fn jitter_is_between_packets_and_not_within_them() {
        let mut tally = Tally::default();
        let times = [(0, 10, true), (0, 10, false), (1_000, 1_010, true), (1_000, 1_010, false)];
        for (sequence, (sent_ns, received_ns, is_first)) in times.into_iter().enumerate() {
            let header = Header { flow: 1, end: false, sequence: sequence as u64, sent_ns };
            tally.count(1, &Arrival { datagram: &header.encode(), received_ns, is_first });
        }
        assert_eq!((tally.counts().received, tally.counts().jitter_us), (4, 0.0));
        tally.count(2, &Arrival { datagram: &[0; 40], received_ns: 0, is_first: true });
        assert_eq!((tally.counts().received, tally.bytes), (4, 128));
    }
}
