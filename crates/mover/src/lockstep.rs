//! Several streams that a receiver reads strictly in turn, a whole chunk of each, until one has
//! ended, as nuttcp does (nuttcp-8.2.2.c, line 8285).
//!
//! Senders need not take turns for this: the receive windows hold back the streams that are ahead, and over UDP the
//! common rate does. But bytes that one stream sent beyond the others' last whole chunk would never be read, so all end
//! after the same number of whole chunks.

use std::sync::{Mutex, PoisonError};

/// How many chunks each sending flow of one measurement sends.
#[derive(Debug, Default)]
pub struct Lockstep(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Chunks begun by the flow that is ahead.
    begun: u64,
    /// Whether no flow may begin more chunks than this.
    closed: bool,
}

impl Lockstep {
    /// Whether a flow that has sent `chunks` may begin another one. `last` ends it: the other flows still catch up with
    /// the flow that is ahead, and none goes further.
    pub(crate) fn may_begin(&self, chunks: u64, last: bool) -> bool {
        // A flow that panicked has left two numbers that are valid at any instant.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.closed |= last;
        if !state.closed {
            state.begun = state.begun.max(chunks + 1);
        }
        chunks < state.begun
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
