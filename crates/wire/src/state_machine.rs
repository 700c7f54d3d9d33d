//! The common part of sessions around their state machines: an ended session takes no input, nothing is done before it
//! is due, and an error ends the session.

use std::time::Instant;

use crate::error::WireError;
use crate::outbox::Outbox;
use crate::session::{Input, Output, Session};

/// One side of a protocol: how it handles inputs and time. Each implementation is also a [`Session`].
pub(crate) trait StateMachine: Send {
    /// Takes one input.
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError>;

    /// Does what is due by now.
    fn expire(&mut self, now: Instant) -> Result<(), WireError>;

    /// When the state must have ended, or something is due in it.
    fn due(&self) -> Option<Instant>;

    /// Ends the session after an error of [`StateMachine::take`] or [`StateMachine::expire`]: asks the host to forget
    /// the running measurement, sends the peer a reason that it can understand, and closes.
    fn fail(&mut self, now: Instant, error: &WireError);

    /// Its outputs.
    fn outbox(&self) -> &Outbox;

    /// Its outputs.
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
