//! How a flow waits for its bodies: its stop ends the wait.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rustix::event::PollFlags;

use crate::body_source::{BodyError, Pause};
use crate::clock::now_ns;
use crate::flow::Flow;
use crate::stop::Phase;

/// The pause of one flow.
pub(super) struct FlowPause<'a> {
    flow: &'a Flow,
    /// The last phase in which the wait goes on.
    through: Phase,
}

impl<'a> FlowPause<'a> {
    /// A pause that the flow's stop ends.
    pub(super) fn of(flow: &'a Flow) -> Self {
        Self { flow, through: Phase::Run }
    }

    /// A pause that lasts to the deadline of the stop.
    pub(super) fn to_deadline(flow: &'a Flow) -> Self {
        Self { flow, through: Phase::Finish }
    }

    fn park(
        &self,
        socket: BorrowedFd<'_>,
        events: Option<PollFlags>,
        until: Instant,
    ) -> Result<(), BodyError> {
        let flow = self.flow;
        let left = until.saturating_duration_since(Instant::now());
        let until_ns = now_ns().saturating_add(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
        let parked = flow.counters.blocked.during(|| flow.park_on(socket, events, Some(until_ns)));
        parked.map_err(|why| BodyError::Own(why.to_string()))?;
        let is_late = || flow.stop.deadline_ns().is_some_and(|end| now_ns() >= end);
        match flow.stop.phase() {
            Phase::Run => Ok(()),
            phase if phase <= self.through && !is_late() => Ok(()),
            _ => Err(BodyError::Stopped),
        }
    }
}

impl Pause for FlowPause<'_> {
    fn on(
        &self,
        socket: BorrowedFd<'_>,
        events: PollFlags,
        until: Instant,
    ) -> Result<(), BodyError> {
        self.park(socket, Some(events), until)
    }

    fn rest(&self, until: Instant) -> Result<(), BodyError> {
        self.park(self.flow.socket.as_fd(), None, until)
    }
}
