//! The loop of every mover that receives datagrams.

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::formats::{Format, with_format};
use super::inbox::{self, Arrival, Inbox, stamp_arrivals};
use super::tally::Tally;
use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::pace::Pacer;
use crate::quiet::Quiet;

/// Receives until the end marker has come, and all the rest or time enough for it, where the flow
/// ends elsewhere until nothing more comes, or until the deadline of the stop. Messages have up to
/// `joined` bytes, where the kernel joins datagrams.
pub(crate) fn receive(flow: &Flow, joined: Option<usize>) -> Result<(), MoveError> {
    stamp_arrivals(flow.socket.as_fd()).map_err(|cause| {
        MoveError::from_system(flow.config.id, "ask for times of arrival", cause)
    })?;
    with_format!(&flow.config, format => {
        let size = joined.unwrap_or(format.longest(flow.config.chunk.max(format.least())));
        Receiver { flow, tally: Tally::new(format), quiet: Quiet::of(flow) }.run(size)
    })
}

/// A receiving flow and what it has counted.
struct Receiver<'a, F> {
    flow: &'a Flow,
    tally: Tally<F>,
    quiet: Option<Quiet>,
}

impl<F: Format> Receiver<'_, F> {
    fn run(&mut self, size: usize) -> Result<(), MoveError> {
        let mut pacer = Pacer::for_datagrams(self.flow, size);
        let mut inbox = Inbox::new(size, if pacer.is_paced() { 1 } else { inbox::BATCH });
        let mut last_call = None;
        self.take_early();
        while self.flow.may_receive()? && !self.is_over(&mut last_call) {
            if !pacer.wait(self.flow)? {
                continue;
            }
            match self.read(&mut inbox) {
                Ok(bytes) => pacer.sent(bytes),
                Err(Errno::AGAIN) => {
                    let until = last_call.or(self.quiet.as_ref().and_then(Quiet::until));
                    self.flow.wait_readable(until)?;
                }
                // An earlier packet of ours was refused; that says nothing about those to come.
                Err(Errno::INTR | Errno::CONNREFUSED) => {}
                Err(cause) => return Err(self.flow.failed("receive a datagram", cause)),
            }
        }
        Ok(())
    }

    /// Counts what came before the flow had a socket. When it did is not known, so it says nothing
    /// about jitter.
    fn take_early(&mut self) {
        self.tally.begin_batch();
        for datagram in &self.flow.config.early.datagrams {
            self.tally.count(&Arrival { datagram, received_ns: 0, is_first: false });
        }
        self.flow.counters.came_early(self.tally.bytes);
        self.flow.counters.show_received(&self.tally.counts());
    }

    /// Reads one batch and counts it; returns its bytes.
    fn read(&mut self, inbox: &mut Inbox) -> Result<usize, Errno> {
        let tally = &mut self.tally;
        tally.begin_batch();
        inbox.receive(self.flow.socket.as_fd(), |arrival| tally.count(&arrival))?;
        if tally.batch > 0 {
            self.flow.counters.moved(tally.bytes);
            self.quiet.iter_mut().for_each(Quiet::heard);
        }
        self.flow.counters.show_received(&tally.counts());
        Ok(tally.bytes as usize)
    }

    /// Whether the end has come, and all the rest, or time enough for it.
    fn is_over(&mut self, last_call: &mut Option<u64>) -> bool {
        if let Some(quiet) = &mut self.quiet {
            return quiet.is_over(self.flow);
        }
        if !self.tally.ended {
            return false;
        }
        self.flow.payload_is_over();
        let until = *last_call.get_or_insert_with(|| now_ns() + self.tally.format.stragglers_ns());
        self.tally.is_complete() || now_ns() >= until
    }
}
