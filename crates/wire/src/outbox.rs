//! The outputs of a session, until the driver polls them.

use std::collections::VecDeque;

use crate::session::{Action, Output, Session};

/// Outputs in order; nothing after the end.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Output>,
    closed: bool,
}

impl Outbox {
    /// Sends bytes, if there are any.
    pub(crate) fn send(&mut self, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.push(Output::Send(bytes));
        }
    }

    /// Asks the host to act.
    pub(crate) fn act(&mut self, action: Action) {
        self.push(Output::Do(action));
    }

    /// Announces that nothing more will be sent.
    pub(crate) fn end_sending(&mut self) {
        self.push(Output::EndSending);
    }

    /// Closes the connection once everything is sent, and ends the session.
    pub(crate) fn close(&mut self) {
        self.push(Output::Close);
    }

    /// Takes over another session's outputs.
    pub(crate) fn carry(&mut self, other: &mut dyn Session) {
        while let Some(output) = other.poll() {
            self.push(output);
        }
    }

    /// Whether the session has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The next output.
    pub(crate) fn poll(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    fn push(&mut self, output: Output) {
        if !self.closed {
            self.closed = matches!(output, Output::Close);
            self.queue.push_back(output);
        }
    }
}
