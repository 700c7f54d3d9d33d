//! What sessions have in common, around the state machine that each of them is: nothing is taken
//! once it has ended, nothing is due before its time, and an error ends it.

use std::time::Instant;

use crate::error::WireError;
use crate::outbox::Outbox;
use crate::session::{Input, Output, Session};

/// One side of a protocol: what it does with inputs and with time. Each implementation is also a [`Session`].
pub(crate) trait StateMachine: Send {
    /// Takes one input.
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError>;

    /// Does what is due by now.
    fn expire(&mut self, now: Instant) -> Result<(), WireError>;

    /// When the state must have ended, or something is due in it.
    fn due(&self) -> Option<Instant>;

    /// Ends the session for an error of [`StateMachine::take`] or [`StateMachine::expire`]: has the
    /// host forget what is in progress, sends the peer a reason that it can understand, and closes.
    fn fail(&mut self, now: Instant, error: &WireError);

    /// What it wants done.
    fn outbox(&self) -> &Outbox;

    /// What it wants done.
    fn outbox_mut(&mut self) -> &mut Outbox;
}

impl<M: StateMachine> Session for M {
    fn handle(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        if self.outbox().is_closed() {
            return Ok(());
        }
        let outcome = self.take(now, input);
        settle(self, now, outcome)
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), WireError> {
        if self.next_timeout().is_none_or(|due| now < due) {
            return Ok(());
        }
        let outcome = self.expire(now);
        settle(self, now, outcome)
    }

    fn poll(&mut self) -> Option<Output> {
        self.outbox_mut().poll()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.due().filter(|_| !self.outbox().is_closed())
    }
}

fn settle(
    machine: &mut impl StateMachine,
    now: Instant,
    outcome: Result<(), WireError>,
) -> Result<(), WireError> {
    outcome.inspect_err(|error| machine.fail(now, error))
}
