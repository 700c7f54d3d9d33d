//! What a session wants done, until it is polled for.

use std::collections::VecDeque;

use crate::session::{Action, Output};

/// Outputs in order; nothing after the end.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: VecDeque<Output>,
    closed: bool,
}

impl Outbox {
    /// Sends text.
    pub fn send(&mut self, text: impl Into<String>) {
        self.push(Output::Send(text.into().into_bytes()));
    }

    /// Has the host act.
    pub fn act(&mut self, action: Action) {
        self.push(Output::Do(action));
    }

    /// Says that nothing more will be said.
    pub fn end_sending(&mut self) {
        self.push(Output::EndSending);
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.push(Output::Close);
        self.closed = true;
    }

    /// Whether the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The next output.
    pub fn poll(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    fn push(&mut self, output: Output) {
        if !self.closed {
            self.queue.push_back(output);
        }
    }
}
