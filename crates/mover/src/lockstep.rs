//! Several streams that a receiver reads strictly in turn, a whole chunk of each, until one has
//! ended, as nuttcp does (nuttcp-8.2.2.c, line 8285).
//!
//! Senders need not take turns for that: the receive windows hold those back that are ahead, and over
//! UDP the rate, which is the same for all. But whatever one has sent beyond the others' last whole
//! chunk would never be read, so all end after the same number of whole chunks.

use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::stop::Phase;

/// How many chunks the sending flows of one measurement send.
#[derive(Debug, Default)]
pub struct Lockstep(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Chunks that the flow which is ahead has begun.
    begun: u64,
    /// Whether no flow may begin more than that.
    closed: bool,
}

impl Lockstep {
    /// Whether a flow that has sent `chunks` may begin another one. `last` ends it: the
    /// other flows still reach the one that is ahead, and none goes beyond.
    fn may_begin(&self, chunks: u64, last: bool) -> bool {
        // A flow that panicked has left two numbers that are right at any instant.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.closed |= last;
        if !state.closed {
            state.begun = state.begun.max(chunks + 1);
        }
        chunks < state.begun
    }
}

/// One flow's part in the rounds; without any it just goes on until the stop.
#[derive(Debug)]
pub(crate) struct Turn {
    lockstep: Option<Arc<Lockstep>>,
    chunk: usize,
    /// Chunks begun.
    begun: u64,
    /// Bytes that are left of the last of them.
    left: usize,
}

impl Turn {
    /// The part of `flow`, which has not begun.
    pub(crate) fn of(flow: &Flow) -> Self {
        let lockstep = flow.config.lockstep.clone();
        Self { lockstep, chunk: flow.config.chunk, begun: 0, left: 0 }
    }

    /// Whether the flow shall go on sending: beyond the stop only to reach the others, and never
    /// beyond the deadline.
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

    /// Bytes that it may send now, of `want`.
    pub(crate) fn at_most(&self, want: usize) -> usize {
        if self.lockstep.is_some() { want.min(self.left) } else { want }
    }

    /// `bytes` were sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_others_reach_the_one_that_is_ahead_and_none_goes_beyond() {
        let lockstep = Lockstep::default();
        assert!((0..3).all(|chunks| lockstep.may_begin(chunks, false)));
        assert!(lockstep.may_begin(0, false), "another flow");
        assert!(lockstep.may_begin(1, true), "the stop closes the rounds");
        assert!(lockstep.may_begin(2, false));
        assert!(!lockstep.may_begin(3, false), "nobody has begun a fourth chunk");
        assert!(!lockstep.may_begin(3, true));
    }

    #[test]
    fn a_stop_before_the_first_chunk_lets_none_begin() {
        assert!(!Lockstep::default().may_begin(0, true));
    }
}
