//! UDP: numbered datagrams, in batches of one system call, one by one where they are paced.
//!
//! Times of arrival are the kernel's (`SO_TIMESTAMPNS`), so that a late reader adds no jitter. The
//! times of sending are taken once a call; an unpaced batch leaves as one burst, which is what the
//! jitter then shows.

use std::os::fd::AsFd;

use goodput_model::{DatagramCounts, Plan, Transport};
use rustix::io::Errno;

use super::{Mover, check_chunk_within, check_transport};
use crate::clock::now_ns;
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::pace::Pacer;
use crate::stop::Phase;
use crate::udp::header::{self, Header};
use crate::udp::inbox::{self, Arrival, Inbox, stamp_arrivals};
use crate::udp::jitter::Jitter;
use crate::udp::outbox::{self, Outbox};
use crate::udp::sequence::Sequence;

/// End markers of a flow: as any of them may be lost, several, spread over
/// `END_MARKERS * END_GAP_NS`, which stays well below the 100 ms in which a sender must stop.
const END_MARKERS: usize = 5;
/// Time between two end markers, nanoseconds.
const END_GAP_NS: u64 = 10_000_000;
/// How long a receiver reads on after the first end marker while datagrams are missing,
/// nanoseconds: those which took another queue may still come.
const STRAGGLERS_NS: u64 = 50_000_000;
/// Pause after `ENOBUFS`, nanoseconds: a queue below the socket is full, and poll(2) does not
/// tell when it has room again.
const QUEUE_FULL_NS: u64 = 1_000_000;

/// Datagrams of `chunk` bytes with a header each. Memory: one datagram to send, up to 1 MiB to
/// receive.
pub struct Datagram;

impl Mover for Datagram {
    fn id(&self) -> &'static str {
        "datagram"
    }

    fn summary(&self) -> &'static str {
        "numbered datagrams, several in one system call; what `copy` means over UDP"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Udp]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        check_chunk_within(self, plan, header::LEN as u64, header::MAX_DATAGRAM as u64)
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let size = flow.config.chunk.max(header::LEN);
        let mut outbox = Outbox::new(flow.config.id, size);
        send_all(flow, &mut outbox, size)?;
        flow.payload_is_over();
        end(flow, &outbox)
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        stamp_arrivals(flow.socket.as_fd()).map_err(|cause| {
            MoveError::from_system(flow.config.id, "ask for times of arrival", cause)
        })?;
        Receiver::new(flow).run()
    }
}

fn send_all(flow: &Flow, outbox: &mut Outbox, size: usize) -> Result<(), MoveError> {
    let mut left = flow.config.limit_bytes.unwrap_or(u64::MAX);
    let mut pacer = Pacer::for_datagrams(flow, size);
    let most = if pacer.is_paced() { 1 } else { outbox::BATCH };
    while left > 0 && flow.may_send() {
        if !pacer.wait(flow)? {
            continue;
        }
        let (count, size) = next_batch(left, size, most);
        match outbox.send(flow.socket.as_fd(), count, size) {
            Ok(sent) => {
                let bytes = sent * size;
                flow.counters.sent_datagrams(sent as u64);
                flow.counters.moved(bytes as u64);
                left = left.saturating_sub(bytes as u64);
                pacer.sent(bytes);
            }
            Err(cause) => wait_after(flow, cause)?,
        }
    }
    Ok(())
}

/// How many datagrams of which size: full ones as long as there are bytes for them, then one with
/// the rest, which is never smaller than its header.
fn next_batch(left: u64, size: usize, most: usize) -> (usize, usize) {
    let full = left / size as u64;
    match usize::try_from(full).unwrap_or(usize::MAX).min(most) {
        0 => (1, (left as usize).max(header::LEN)),
        count => (count, size),
    }
}

/// Waits until a datagram can be sent again; any other error ends the flow.
fn wait_after(flow: &Flow, cause: Errno) -> Result<(), MoveError> {
    match cause {
        Errno::AGAIN => flow.wait_writable(),
        Errno::NOBUFS => flow.wait_blocked(QUEUE_FULL_NS),
        Errno::INTR => Ok(()),
        cause => Err(flow.failed("send a datagram", cause)),
    }
}

/// Tells the receiver that this was all, as well as that can be done with datagrams.
fn end(flow: &Flow, outbox: &Outbox) -> Result<(), MoveError> {
    for _ in 0..END_MARKERS {
        if flow.stop.phase() == Phase::Abort {
            return Err(flow.aborted());
        }
        // A receiver that has seen the first one may be gone already and refuse the next; one that
        // does not fit into the socket is like one that gets lost.
        let _ = outbox.send_end(flow.socket.as_fd());
        flow.park(None, Some(now_ns() + END_GAP_NS))?;
    }
    debug_assert_eq!(flow.counters.datagrams().sent, outbox.sent());
    Ok(())
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

impl<'a> Receiver<'a> {
    fn new(flow: &'a Flow) -> Self {
        Self { flow, tally: Tally::default() }
    }

    fn run(&mut self) -> Result<(), MoveError> {
        let size = self.flow.config.chunk.max(header::LEN);
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
                self.jitter.arrived(header.sent_ns, arrival.received_ns);
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
    fn the_last_datagram_takes_the_rest() {
        assert_eq!(next_batch(10_000, 1000, 32), (10, 1000));
        assert_eq!(next_batch(100_000, 1000, 32), (32, 1000));
        assert_eq!(next_batch(100_000, 1000, 1), (1, 1000));
        assert_eq!(next_batch(999, 1000, 32), (1, 999));
        assert_eq!(next_batch(5, 1000, 32), (1, header::LEN));
    }
}
