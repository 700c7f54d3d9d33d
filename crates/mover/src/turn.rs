//! A flow's turn to send, if a receiver reads all streams in turn.

use std::sync::Arc;

use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::lockstep::Lockstep;
use crate::stop::Phase;

/// One flow's part in the rounds; without rounds, it just continues until the stop.
#[derive(Debug)]
pub(crate) struct Turn {
    lockstep: Option<Arc<Lockstep>>,
    chunk: usize,
    /// Chunks begun.
    begun: u64,
    /// Bytes left of the last of them.
    left: usize,
}

impl Turn {
    /// The part of `flow`, which has not begun.
    pub(crate) fn of(flow: &Flow) -> Self {
        let lockstep = flow.config.lockstep.clone();
        Self { lockstep, chunk: flow.config.chunk, begun: 0, left: 0 }
    }

    /// Whether the flow is to continue sending: after the stop only to catch up with the others, and never beyond the
    /// deadline.
    pub(crate) fn may_send(&mut self, flow: &Flow) -> Result<bool, MoveError> {
        let runs = flow.may_send();
        let Some(lockstep) = &self.lockstep else { return Ok(runs) };
        if flow.stop.phase() == Phase::Abort {
            return Err(flow.aborted());
        }
        if !runs && flow.stop.deadline_ns().is_some_and(|end| now_ns() >= end) {
            return Ok(false);
        }
        if self.left == 0 && lockstep.may_begin(self.begun, !runs) {
            (self.begun, self.left) = (self.begun + 1, self.chunk);
        }
        Ok(self.left > 0)
    }

    /// How many of `want` bytes it may send now.
    pub(crate) fn at_most(&self, want: usize) -> usize {
        if self.lockstep.is_some() { want.min(self.left) } else { want }
    }

    /// `bytes` were sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}
