//! The loop of every mover that receives datagrams.

use std::mem;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;

use super::answering;
use super::arrival_log::ArrivalLog;
use super::asking::PendingRequest;
use super::inbox::{self, Arrival, Inbox, stamp_arrivals};
use super::tally::Tally;
use crate::clock::{now_ns, wall_ns};
use crate::error::MoveError;
use crate::flow::Flow;
use crate::pace::Pacer;
use crate::quiet::Quiet;

/// How datagrams are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// Most messages in one call.
    batch: usize,
    /// Most bytes of a message, if the kernel joins datagrams.
    joined: Option<usize>,
}

impl Reading {
    /// One datagram per call.
    pub(crate) const ONE: Self = Self { batch: 1, joined: None };
    /// Several datagrams per call.
    pub(crate) const SEVERAL: Self = Self { batch: inbox::BATCH_DATAGRAMS, joined: None };
    /// Several messages per call, each of datagrams that the kernel has joined, up to the length of an IP packet.
    /// Requires [`inbox::join_arrivals`].
    pub(crate) const JOINED: Self = Self { batch: inbox::BATCH_DATAGRAMS, joined: Some(1 << 16) };
}

/// How long the other flows may keep reading after one flow's end has ended all flows.
const OTHER_FLOWS_WAIT: Duration = Duration::from_secs(1);

/// Receives until the end marker has come, and then all missing datagrams, or until they had enough time. If the flow's
/// end is reported elsewhere, receives until nothing more comes, or until the deadline of the stop.
pub(crate) fn receive(flow: &Flow, how: Reading) -> Result<(), MoveError> {
    stamp_arrivals(flow.socket.as_fd()).map_err(|cause| {
        MoveError::from_system(flow.config.id, "ask for times of arrival", cause)
    })?;
    let datagrams = flow.config.datagrams();
    let longest = datagrams.longest(flow.config.chunk.max(datagrams.least()));
    let request = datagrams.request(wall_ns());
    Receiver {
        flow,
        asking: PendingRequest::with(request, datagrams.settling_ns().unwrap_or(0)),
        tally: Tally::new(datagrams, flow.config.expected_rate)
            .keeping(flow.config.keeps_arrivals.then(ArrivalLog::default)),
        quiet: Quiet::of(flow),
        marked_ns: None,
        last_ns: now_ns(),
    }
    .run_and_publish(how.joined.unwrap_or(longest), how.batch)
}

/// A receiving flow and what it has counted.
struct Receiver<'a> {
    flow: &'a Flow,
    asking: PendingRequest,
    tally: Tally,
    quiet: Option<Quiet>,
    /// When the payload's clock was started, if it was started.
    marked_ns: Option<u64>,
    /// When something came last.
    last_ns: u64,
}

impl Receiver<'_> {
    /// Runs to its end, and publishes the pauses and the arrival log.
    fn run_and_publish(mut self, size: usize, batch: usize) -> Result<(), MoveError> {
        let ended = self.run(size, batch);
        self.flow.counters.keep_gaps(self.tally.pauses.gaps());
        let arrivals = self.tally.arrivals.take();
        arrivals.into_iter().for_each(|log| self.flow.counters.keep_arrivals(log.into_inner()));
        ended
    }

    fn run(&mut self, size: usize, batch: usize) -> Result<(), MoveError> {
        let mut pacer = Pacer::for_reader(self.flow, size);
        let mut inbox = Inbox::new(size, if pacer.is_paced() { 1 } else { batch });
        let (mut last_call, mut is_empty) = (None, false);
        self.take_early(&pacer);
        while self.flow.may_receive()? && !self.is_over(&mut last_call) {
            if !pacer.wait(self.flow)? {
                continue;
            }
            self.asking.ask(self.flow, self.tally.came_bytes() > 0)?;
            // After a batch that was not full, a call would only find that nothing has come.
            let read =
                if mem::take(&mut is_empty) { Err(Errno::AGAIN) } else { self.read(&mut inbox) };
            match read {
                Ok(is_full) => {
                    is_empty = !is_full;
                    pacer.sent(self.flow, self.tally.bytes as usize);
                }
                Err(Errno::AGAIN) => {
                    let quiet = self.quiet.as_ref().and_then(Quiet::until);
                    let times = [last_call, quiet, self.idle_until(), self.asking.until()];
                    self.flow.wait_readable(times.into_iter().flatten().min())?;
                }
                // An earlier packet of ours was refused; this says nothing about later ones.
                Err(Errno::CONNREFUSED) => self.asking.refused(self.flow)?,
                Err(Errno::INTR) => {}
                Err(cause) => return Err(self.flow.failed("receive a datagram", cause)),
            }
        }
        if self.tally.ended && self.flow.config.framing.ends_together() {
            self.flow.stop.finish(OTHER_FLOWS_WAIT);
        }
        if self.tally.ended {
            answering::answer(self.flow, &mut self.tally, &mut inbox)?;
        }
        Ok(())
    }

    /// Counts what came before the flow had a socket. The arrival times are unknown, so it says nothing about jitter.
    /// What exceeds a shared rate would have been lost in the socket, and is lost here.
    fn take_early(&mut self, pacer: &Pacer) {
        self.tally.begin_batch();
        let received_ns = wall_ns();
        let early = self.flow.config.early.datagrams.iter();
        for datagram in early.take_while(|datagram| pacer.admits(datagram.len())) {
            self.tally.count(&Arrival { datagram, received_ns, is_first: false });
        }
        self.tally.joined = 0;
        self.flow.counters.came_early(self.tally.bytes);
        self.note();
    }

    /// Reads one batch and counts it; returns whether it was full.
    fn read(&mut self, inbox: &mut Inbox) -> Result<bool, Errno> {
        let tally = &mut self.tally;
        tally.begin_batch();
        let is_full = inbox.receive(self.flow.socket.as_fd(), |arrival| {
            self.flow.show(arrival.datagram);
            tally.count(&arrival);
        })?;
        if tally.batch > 0 {
            self.flow.counters.moved(tally.bytes);
        }
        self.note();
        Ok(is_full)
    }

    /// Publishes the counts of a batch.
    fn note(&mut self) {
        self.flow.counters.show_received(&self.tally.counts());
        if self.quiet.is_some() {
            self.note_times();
        }
    }

    /// Maintains the clock of a flow that marks its own beginning and end.
    fn note_times(&mut self) {
        self.last_ns = now_ns();
        if self.tally.begins {
            self.marked_ns = Some(self.last_ns);
        }
        if self.tally.batch > 0 {
            self.quiet.iter_mut().for_each(Quiet::heard);
            if self.flow.config.framing.announces_its_beginning() {
                self.flow.payload_began(self.marked_ns.unwrap_or(self.last_ns));
            }
        }
        if let Some(ago_ns) = self.tally.over {
            self.flow.payload_was_over(self.last_ns.saturating_sub(ago_ns));
        }
    }

    /// When to give the sender up.
    fn idle_until(&self) -> Option<u64> {
        self.tally.datagrams.idle_ns().map(|idle| self.last_ns + idle)
    }

    /// Whether the end has come, and then all missing datagrams, or enough time for them.
    fn is_over(&mut self, last_call: &mut Option<u64>) -> bool {
        // If another flow's markers end all flows, this one's payload was over with its last datagram.
        let own = self.flow.config.framing.ends_together().then_some(self.last_ns);
        if self.quiet.as_mut().is_some_and(|quiet| quiet.is_over(self.flow, own)) {
            return true;
        }
        if !self.tally.ended {
            let is_idle = self.idle_until().is_some_and(|until| now_ns() >= until);
            if is_idle {
                self.flow.payload_was_over(self.last_ns);
            }
            return is_idle;
        }
        self.flow.payload_is_over();
        let until =
            *last_call.get_or_insert_with(|| now_ns() + self.tally.datagrams.stragglers_ns());
        self.tally.is_complete() || now_ns() >= until
    }
}
