//! The connecting side: one measurement per connection.
//!
//! ```text
//! greeting ──HELO──▶ idle ──propose──▶ agreeing ──OK, flows──▶ ready ──begin──▶ running ──▶ over
//!                                         └──KO──▶ refusing ──reason──▶ over
//! ```
//!
//! This end connects whenever the protocol permits, to pass NAT and firewalls: always over TCP, with the connecting
//! side reversed if the far end sends (`-r -F`, since 3.4.1). Over UDP a far sender begins, so this end must listen on
//! a port before it names the port.

mod agreement;
mod transfer;

use std::time::Instant;

use goodput_model::{Host, Plan};

use self::agreement::Agreement;
use self::transfer::Transfer;
use super::account::Account;
use super::lines::Lines;
use super::version::{HELO, Version};
use super::{GREETING_TIMEOUT, OURS};
use crate::error::WireError;
use crate::foreign;
use crate::outbox::Outbox;
use crate::plain::phrase;
use crate::session::{Action, ClientConfig, Input};
use crate::state_machine::StateMachine;

/// The oldest version that this end supports: Debian's, against which this was tested.
const OLDEST: Version = Version::new(6, 1, 2);

/// A conversation, seen from the connecting side.
pub struct ClientSession {
    out: Outbox,
    lines: Lines,
    state: State,
    /// When a state of limited time must have ended.
    deadline: Option<Instant>,
    /// A plan that arrived before the greeting was over.
    early_plan: Option<Box<Plan>>,
    /// The server's version.
    theirs: Version,
    /// The server's account of itself.
    account: Account,
    /// Whether the driver has received all results.
    reported: bool,
}

/// The state of the conversation.
enum State {
    /// The server's HELO is awaited.
    Greeting,
    /// Nothing is measured yet.
    Idle,
    /// Both sides prepare for a measurement.
    Agreeing(Agreement),
    /// The server gives its reasons.
    Refusing(String),
    /// The driver observes, then begins.
    Ready(Box<Plan>),
    /// Payload moves, or the server's account of it is awaited.
    Running(Transfer),
    /// The one measurement is over.
    Over,
}

impl StateMachine for ClientSession {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        match input {
            Input::Received(bytes) => self.receive(now, &bytes)?,
            Input::Closed => self.closed()?,
            Input::Propose(plan) if matches!(self.state, State::Greeting) => {
                self.early_plan = Some(plan);
            }
            Input::Propose(plan) => self.propose(now, plan),
            Input::Expecting { .. } => self.listening(now),
            Input::FlowsReady => self.flows_ready(now),
            Input::FlowsFailed(_) => self.flows_failed(),
            Input::Leave(_) => self.out.close(),
            Input::Report(_) => {
                self.reported = true;
                if matches!(self.state, State::Over) {
                    self.out.close();
                }
            }
            input => self.take_running(now, input),
        }
        Ok(())
    }

    fn expire(&mut self, _now: Instant) -> Result<(), WireError> {
        let why = match &self.state {
            State::Greeting => match self.lines.rest() {
                [] => return Err(seems_to_be("a service that waits for something else".into())),
                begun => return Err(seems(begun)),
            },
            State::Idle | State::Over => return Ok(()),
            State::Agreeing(agreement) => agreement.lacks(),
            State::Refusing(_) => {
                self.refused();
                return Ok(());
            }
            State::Ready(_) => "this end did not begin in time",
            State::Running(_) => "it did not report its counts in time",
        };
        Err(WireError::TimedOut(why.into()))
    }

    fn due(&self) -> Option<Instant> {
        self.deadline
    }

    /// nuttcp can't report an error.
    fn fail(&mut self, _now: Instant, _error: &WireError) {
        self.out.close();
    }

    fn outbox(&self) -> &Outbox {
        &self.out
    }

    fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.out
    }
}

impl ClientSession {
    /// Opens the conversation. The protocol can't carry a token or a description of this host.
    pub fn new(now: Instant, _config: ClientConfig) -> Self {
        let mut out = Outbox::default();
        out.send(OURS.helo());
        Self {
            out,
            lines: Lines::default(),
            state: State::Greeting,
            deadline: Some(now + GREETING_TIMEOUT),
            early_plan: None,
            theirs: OURS,
            account: Account::default(),
            reported: false,
        }
    }

    fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
        self.lines.push(bytes);
        if matches!(self.state, State::Greeting) && !begins_like_helo(self.lines.rest()) {
            return Err(seems(self.lines.rest()));
        }
        while !self.out.is_closed()
            && let Some(line) = self.lines.next()?
        {
            self.hear(now, &line)?;
        }
        Ok(())
    }

    fn hear(&mut self, now: Instant, line: &str) -> Result<(), WireError> {
        match &mut self.state {
            State::Greeting => self.greeted(now, line),
            State::Agreeing(_) => self.answered(now, line),
            State::Refusing(reasons) => {
                if line == "KO" {
                    self.refused();
                } else if reasons.len() < line.len().max(1024) {
                    reasons.push_str(line);
                    reasons.push(' ');
                }
                Ok(())
            }
            State::Running(_) | State::Ready(_) => self.account.hear(line),
            State::Idle | State::Over => Ok(()),
        }
    }

    fn greeted(&mut self, now: Instant, line: &str) -> Result<(), WireError> {
        let Some(theirs) = Version::of_helo(line) else { return Err(seems(line.as_bytes())) };
        if theirs < OLDEST {
            let why = format!("it is nuttcp {theirs}; goodput supports {OLDEST} and later");
            return Err(WireError::Protocol(why));
        }
        self.theirs = theirs;
        self.enter(State::Idle, None);
        let peer = Host::foreign(format!("nuttcp {theirs}"));
        self.out.act(Action::Greeted { peer, secured: false, clock: None });
        if let Some(plan) = self.early_plan.take() {
            self.propose(now, plan);
        }
        Ok(())
    }

    /// The measurement is over, and with it the conversation once the driver has reported.
    fn be_over(&mut self) {
        self.enter(State::Over, None);
        if self.reported {
            self.out.close();
        }
    }

    fn enter(&mut self, state: State, deadline: Option<Instant>) {
        self.state = state;
        self.deadline = deadline;
    }

    /// Aborts the measurement; the server notices when the connection is closed.
    fn break_off(&mut self) {
        if !matches!(self.state, State::Greeting | State::Idle) {
            self.enter(State::Over, None);
        }
    }

    fn closed(&mut self) -> Result<(), WireError> {
        let when = match &mut self.state {
            State::Greeting if self.lines.rest().is_empty() => return Err(seems(&[])),
            State::Greeting => "in the middle of its greeting",
            State::Idle => "while nothing was measured",
            State::Refusing(_) => {
                self.refused();
                return Ok(());
            }
            State::Agreeing(_) | State::Ready(_) => "before the measurement began",
            State::Running(running) if self.account.is_complete() => {
                running.told = true;
                self.conclude();
                return Ok(());
            }
            State::Running(_) => "before it reported all its counts",
            State::Over => return Ok(()),
        };
        Err(WireError::Closed(match self.account.complaint() {
            Some(complaint) => format!("{when}; it reported: {complaint}"),
            None => when.into(),
        }))
    }

    /// The server has given all its reasons.
    fn refused(&mut self) {
        if let State::Refusing(reasons) = &self.state {
            let why = phrase(reasons.trim());
            self.out.act(Action::Refused(why));
            self.enter(State::Over, None);
        }
    }
}

fn begins_like_helo(bytes: &[u8]) -> bool {
    let shorter = bytes.len().min(HELO.len());
    bytes[..shorter] == HELO[..shorter]
}

fn seems(bytes: &[u8]) -> WireError {
    seems_to_be(foreign::server(bytes))
}

fn seems_to_be(seems: String) -> WireError {
    WireError::Foreign { seems }
}

#[cfg(test)]
mod tests;
