//! What the loop of a sender of datagrams needs of a way to send them.

use goodput_framing::{Closing, Datagrams};
use rustix::io::Result as SysResult;

use crate::error::MoveError;
use crate::flow::Flow;

/// Departure times of a batch of datagrams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DepartureTimes {
    /// The first, on the monotonic clock.
    pub(crate) first_ns: u64,
    /// The interval between datagrams.
    pub(crate) gap_ns: f64,
}

impl DepartureTimes {
    /// The departure time of datagram `number` of the batch, counted from 0.
    pub(super) fn at_ns(&self, number: usize) -> u64 {
        self.first_ns + (self.gap_ns * number as f64) as u64
    }
}

/// A way to send the datagrams of one flow, which it numbers.
pub(crate) trait DatagramSender {
    /// The framing's datagrams, for the markers around the payload.
    fn datagrams(&self) -> &dyn Datagrams;

    /// Most datagrams in one call.
    fn batch(&self) -> usize;

    /// Datagrams sent so far.
    fn sent(&self) -> u64;

    /// Sends up to `count` datagrams of `size` bytes, only one if `size` is less than the full size; returns how many
    /// were taken. `EAGAIN` if there is no room.
    fn send(
        &mut self,
        flow: &Flow,
        count: usize,
        size: usize,
        departures: Option<DepartureTimes>,
    ) -> SysResult<usize>;

    /// Numbers up to `count` datagrams that a firewall of this host has just dropped (`EPERM`) as sent, those of one message;
    /// returns how many these are. No way past the firewall has any.
    fn lose(&mut self, _count: usize) -> usize {
        0
    }

    /// Waits for room, after `EAGAIN`. Counts as blocked.
    fn wait(&mut self, flow: &Flow) -> Result<(), MoveError> {
        flow.wait_writable()
    }

    /// Waits, after the last datagram, until all have left this way, for a moment at most: what reports the end goes
    /// through the socket, and must not overtake them.
    fn settle(&mut self, _flow: &Flow) -> Result<(), MoveError> {
        Ok(())
    }

    /// What to send in round `round` to report the end.
    fn closing(&mut self, round: u64) -> Option<(&[u8], Closing)>;
}
