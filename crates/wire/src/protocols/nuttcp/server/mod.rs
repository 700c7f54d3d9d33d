//! The answering side: one measurement per connection.
//!
//! ```text
//! greeting ──HELO──▶ asking ──parameters──▶ preparing ──OK──▶ expecting ──flows──▶ running ──▶ over
//!                       ├────────────────── KO ──────┘
//!                       └──a third party──▶ third party ──OK, lines, DONE──▶ over
//! ```
//!
//! A client sends nothing more after its parameters. If this end sends, anything that the client
//! sends ends the measurement, as in nuttcp.

mod third_party;
mod transfer;

use std::time::Instant;

use goodput_model::{Host, Plan};

use self::transfer::Transfer;
use super::lines::Lines;
use super::parameters::Parameters;
use super::plan::plan_of;
use super::version::Version;
use super::{GREETING_TIMEOUT, OURS, PREPARE_TIMEOUT, tickets};
use crate::error::WireError;
use crate::foreign;
use crate::outbox::Outbox;
use crate::plain::phrase;
use crate::session::{Action, Input, ServerConfig};
use crate::state_machine::StateMachine;
use crate::ticket::FlowSetup;

/// A conversation, seen from the answering side.
pub struct ServerSession {
    out: Outbox,
    config: ServerConfig,
    lines: Lines,
    state: State,
    /// When the state must have ended, or something is due in it.
    deadline: Instant,
}

/// A client's request, and its plan.
pub struct ClientRequest {
    /// The parameters as sent.
    pub parameters: Parameters,
    /// The plan that they mean.
    pub plan: Plan,
}

/// The state of the conversation.
enum State {
    /// The client's first line is awaited.
    Greeting,
    /// Its parameters are awaited.
    Asking,
    /// The host prepares for the data connections.
    Preparing(Box<ClientRequest>),
    /// The client received OK; its data connections are awaited.
    Expecting(Box<ClientRequest>),
    /// Payload moves.
    Running(Box<Transfer>),
    /// The host measures with another server.
    ThirdParty(third_party::Stage),
    /// Everything was sent.
    Over,
}

impl StateMachine for ServerSession {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        match input {
            Input::Received(bytes) => self.receive(now, &bytes)?,
            Input::Closed => self.closed(now)?,
            Input::Expecting { .. } => self.expecting(now),
            Input::FlowsReady => self.flows_ready(now),
            Input::FlowsFailed(why) | Input::Denied(why) => self.refuse(&why),
            Input::ThirdPartyOutput(lines) => self.told(&lines),
            Input::ThirdPartyDone(outcome) => self.third_party_done(outcome),
            Input::Leave(why) => self.leave(&why),
            input => self.take_running(now, input),
        }
        Ok(())
    }

    fn expire(&mut self, now: Instant) -> Result<(), WireError> {
        let why = match &self.state {
            State::Greeting => "it did not name its protocol",
            State::Asking => "it sent no request",
            State::Preparing(_) => "the server did not get ready in time",
            State::Expecting(_) => "not all data connections came in time",
            State::Running(running) if !running.is_finishing() => {
                self.finish(now);
                return Ok(());
            }
            State::Running(_) => "the flows did not end in time",
            State::ThirdParty(_) => "the measurement with the third party did not end in time",
            State::Over => return Ok(()),
        };
        self.abandon();
        self.refuse(why);
        Err(WireError::TimedOut(why.into()))
    }

    fn due(&self) -> Option<Instant> {
        Some(self.deadline)
    }

    fn fail(&mut self, _now: Instant, _error: &WireError) {
        self.abandon();
        self.end();
    }

    fn outbox(&self) -> &Outbox {
        &self.out
    }

    fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.out
    }
}

impl ServerSession {
    /// Waits for a client's first line.
    pub fn new(now: Instant, config: ServerConfig) -> Self {
        Self {
            out: Outbox::default(),
            config,
            lines: Lines::default(),
            state: State::Greeting,
            deadline: now + GREETING_TIMEOUT,
        }
    }

    fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
        if matches!(self.state, State::ThirdParty(_)) {
            // A client that wants no more sends anything at all (nuttcp-6.1.2.c, line 3832).
            return Err(WireError::Closed("in the middle of the measurement".into()));
        }
        if !matches!(self.state, State::Greeting | State::Asking) {
            self.interrupted(now);
            return Ok(());
        }
        self.lines.push(bytes);
        while matches!(self.state, State::Greeting | State::Asking)
            && !self.out.is_closed()
            && let Some(line) = self.lines.next()?
        {
            self.hear(now, &line)?;
        }
        Ok(())
    }

    /// A HELO comes first since 3.1.1; earlier, the parameters did (lines 4180 to 4193).
    fn hear(&mut self, now: Instant, line: &str) -> Result<(), WireError> {
        let greeting = matches!(self.state, State::Greeting);
        if greeting && let Some(theirs) = Version::of_helo(line) {
            self.out.send(OURS.helo());
            self.state = State::Asking;
            self.greeted(theirs);
            return Ok(());
        }
        match Parameters::read(line) {
            Ok(parameters) => {
                if greeting {
                    self.greeted(parameters.version);
                }
                self.asked(now, parameters);
                Ok(())
            }
            Err(why) => {
                self.ko(&why, true);
                let seems = foreign::client(line.as_bytes());
                Err(if greeting { WireError::Foreign { seems } } else { WireError::Protocol(why) })
            }
        }
    }

    fn greeted(&mut self, theirs: Version) {
        let peer = Host::foreign(format!("nuttcp {theirs}"));
        self.out.act(Action::Greeted { peer, secured: false, clock: None });
    }

    fn asked(&mut self, now: Instant, parameters: Parameters) {
        let limits = &self.config.limits;
        if let Some(other) = parameters.third_party.clone() {
            return self.ask_third_party(now, &parameters, &other);
        }
        let plan = match plan_of(&parameters, limits, self.config.local.port()) {
            Ok(plan) => plan,
            Err(why) => return self.turn_away(&why, parameters.client_sends),
        };
        // The port was checked against the limits above.
        let first_port = u16::try_from(parameters.port).unwrap_or(u16::MAX);
        let flow_setup = if parameters.connects() {
            FlowSetup::Connect { port: Some(first_port), apart: 1 }
        } else {
            FlowSetup::Listen { first_port }
        };
        let tickets = tickets(&plan, parameters.interval_s);
        self.out.act(Action::ExpectFlows { plan: Box::new(plan.clone()), tickets, flow_setup });
        self.enter(
            State::Preparing(Box::new(ClientRequest { parameters, plan })),
            now + PREPARE_TIMEOUT,
        );
    }

    fn enter(&mut self, state: State, deadline: Instant) {
        self.state = state;
        self.deadline = deadline;
    }

    /// Sends KO and the reason, and logs the reason.
    fn turn_away(&mut self, why: &str, client_sends: bool) {
        self.ko(why, client_sends);
        self.out.act(Action::Refused(why.into()));
        self.end();
    }

    fn ko(&mut self, why: &str, client_sends: bool) {
        let said = complaint(client_sends, why);
        self.out.send(format!("KO\n{said}KO\n"));
    }

    /// The flows can't be opened, or have failed.
    fn refuse(&mut self, why: &str) {
        match &self.state {
            State::Preparing(asked) => {
                let client_sends = asked.parameters.client_sends;
                self.ko(why, client_sends);
            }
            State::Expecting(asked) => {
                let said = complaint(asked.parameters.client_sends, &format!("Error: {why}"));
                self.out.send(said);
            }
            State::Running(running) => {
                let said = complaint(running.client_sends(), &format!("Error: {why}"));
                self.out.send(said);
            }
            State::ThirdParty(stage) => {
                let said = stage.refusal(why);
                self.out.send(said);
            }
            State::Greeting | State::Asking | State::Over => return,
        }
        self.end();
    }

    fn leave(&mut self, why: &str) {
        self.abandon();
        self.refuse(why);
        self.out.close();
    }

    fn end(&mut self) {
        self.state = State::Over;
        self.out.close();
    }

    fn closed(&mut self, now: Instant) -> Result<(), WireError> {
        let when = match &self.state {
            State::Greeting => "before it greeted",
            State::Asking => "before its request",
            State::Preparing(_) | State::Expecting(_) => "before the measurement began",
            State::Running(running) if running.may_be_interrupted() => {
                self.interrupted(now);
                return Ok(());
            }
            State::Running(_) | State::ThirdParty(_) => "in the middle of the measurement",
            State::Over => return Ok(()),
        };
        Err(WireError::Closed(when.into()))
    }

    /// Tells the host to forget the running measurement, if there is one.
    fn abandon(&mut self) {
        let idle = matches!(self.state, State::Greeting | State::Asking | State::Over);
        if !idle {
            self.out.act(Action::Abandon);
        }
    }
}

/// A complaint in the format of nuttcp's servers; a client shows it.
fn complaint(client_sends: bool, why: &str) -> String {
    let role = if client_sends { 'r' } else { 't' };
    format!("nuttcp-{role}: v{OURS}: {}\n", phrase(why))
}

#[cfg(test)]
mod tests;
