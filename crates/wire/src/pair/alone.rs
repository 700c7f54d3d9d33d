//! One session alone: a test plays the other end.

use std::time::{Duration, Instant};

use super::origin;
use crate::error::WireError;
use crate::session::{Action, Input, Output, Session};

/// A session, its time, and all its outputs.
pub struct Alone<S> {
    /// The session.
    pub session: S,
    /// The session's present time.
    pub now: Instant,
    /// The bytes that it sent; a test may clear them.
    pub said: Vec<u8>,
    /// What it asked its host to do, in order.
    pub did: Vec<Action>,
    /// Whether it half-closed the connection.
    pub ended_sending: bool,
    /// Whether it closed the connection.
    pub closed: bool,
}

impl<S: Session> Alone<S> {
    /// A session that began at [`origin`] and has sent its first bytes.
    pub fn new(session: S) -> Self {
        let (said, did) = (Vec::new(), Vec::new());
        let now = origin();
        let mut alone = Self { session, now, said, did, ended_sending: false, closed: false };
        alone.collect();
        alone
    }

    /// Passes these bytes to the session.
    pub fn hear(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), WireError> {
        self.feed(Input::Received(bytes.as_ref().to_vec()))
    }

    /// Passes an input to the session.
    pub fn feed(&mut self, input: Input) -> Result<(), WireError> {
        let outcome = self.session.handle(self.now, input);
        self.collect();
        outcome
    }

    /// Lets time pass.
    pub fn wait(&mut self, time: Duration) -> Result<(), WireError> {
        self.now += time;
        let outcome = self.session.handle_timeout(self.now);
        self.collect();
        outcome
    }

    /// Lets time pass until the session has something to do.
    pub fn wait_until_due(&mut self) -> Result<(), WireError> {
        let due = self.session.next_timeout().expect("an open session has a deadline");
        self.wait(due - self.now)
    }

    /// The bytes that it sent, as text, for a protocol of lines.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.said).expect("what it says is text")
    }

    /// Whether it asked for such an action.
    pub fn did(&self, is: impl Fn(&Action) -> bool) -> bool {
        self.did.iter().any(is)
    }

    /// Why it refused a measurement; empty if it did not.
    pub fn refusal(&self) -> &str {
        let refused = self.did.iter().rev().find_map(|action| match action {
            Action::Refused(why) => Some(why.as_str()),
            _ => None,
        });
        refused.unwrap_or_default()
    }

    fn collect(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Send(bytes) => self.said.extend(bytes),
                Output::Do(action) => self.did.push(action),
                Output::EndSending => self.ended_sending = true,
                Output::Close => self.closed = true,
            }
        }
    }
}
