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

use std::time::Instant;

use goodput_model::{Host, Known, Sample};

use super::intervals::Intervals;
use super::lines::Lines;
use super::parameters::{Parameters, ThirdParty};
use super::plan::{ClientRequest, plan_of};
use super::third_party::third_party_test;
use super::version::Version;
use super::{
    ACCEPT_TIMEOUT, BEGIN_PAUSE, DRAIN_TIMEOUT, FLOWS_TIMEOUT, GRACE_TIME, GREETING_TIMEOUT, OURS,
    PREPARE_TIMEOUT, report, tickets,
};
use crate::check;
use crate::error::WireError;
use crate::foreign;
use crate::outbox::Outbox;
use crate::plain::phrase;
use crate::protocols::goodput::times::after_s;
use crate::session::{Action, Input, ServerConfig};
use crate::state_machine::StateMachine;
use crate::ticket::FlowSetup;

/// What a client of nuttcp reports about itself.
const UNREPORTED: &str = "a nuttcp client reports nothing about itself";

/// A conversation, seen from the answering side.
pub struct ServerSession {
    out: Outbox,
    config: ServerConfig,
    lines: Lines,
    state: State,
    /// When the state must have ended, or something is due in it.
    deadline: Instant,
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
    ThirdParty(ThirdPartyStage),
    /// Everything was sent.
    Over,
}

/// The transfer of a measurement that has begun.
struct Transfer {
    asked: Box<ClientRequest>,
    intervals: Intervals,
    finishing: bool,
    last: Option<Box<Sample>>,
}

impl Transfer {
    fn new(asked: Box<ClientRequest>) -> Self {
        let intervals = Intervals::new(&asked.parameters);
        Self { asked, intervals, finishing: false, last: None }
    }

    /// Whether the client sends.
    fn client_sends(&self) -> bool {
        self.asked.parameters.client_sends
    }

    /// Whether the host was asked to finish.
    fn is_finishing(&self) -> bool {
        self.finishing
    }

    /// Whether a client may end its half of the control connection: a receiver that wants no more,
    /// or a sender of datagrams that is done.
    fn may_be_interrupted(&self) -> bool {
        self.asked.parameters.udp || !self.client_sends()
    }
}

/// The stages of a measurement with a third party.
enum ThirdPartyStage {
    /// The host has not decided yet.
    ClientRequest {
        /// Whether this end sends to the third party.
        sends: bool,
        /// How long it may take, seconds.
        limit_s: f64,
    },
    /// The client received OK.
    Under {
        /// Whether this end sends to the third party.
        sends: bool,
    },
}

impl ThirdPartyStage {
    /// The message to the client if the measurement ends early.
    fn refusal(&self, why: &str) -> String {
        match self {
            Self::ClientRequest { sends, .. } => format!("KO\n{}KO\n", complaint(!sends, why)),
            Self::Under { sends } => complaint(!sends, &format!("Error: {why}")) + "DONE\n",
        }
    }
}

impl StateMachine for ServerSession {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        match input {
            Input::Received(bytes) => self.receive(now, &bytes)?,
            Input::Closed => self.closed(now)?,
            Input::Expecting { .. } => self.expecting(now),
            Input::FlowsReady => self.flows_ready(now),
            Input::FlowsFailed(why) | Input::Denied(why) => self.refuse(&why),
            Input::ThirdPartyOutput(lines) => self.pass_on(&lines),
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

    fn ask_third_party(&mut self, now: Instant, asked: &Parameters, other: &ThirdParty) {
        let limits = &self.config.limits;
        match third_party_test(asked, other, limits) {
            Err(why) => self.turn_away(&why, !asked.client_sends),
            Ok(test) => {
                // A plan of bytes has no duration.
                let limit_s = check::duration_s(&test.plan).unwrap_or(limits.duration_s);
                let stage = ThirdPartyStage::ClientRequest { sends: asked.client_sends, limit_s };
                self.out.act(Action::MeasureWithThirdParty(Box::new(test)));
                self.enter(State::ThirdParty(stage), now + ACCEPT_TIMEOUT);
            }
        }
    }

    /// The host has begun the measurement.
    fn third_party_begun(&mut self, now: Instant) {
        if let State::ThirdParty(ThirdPartyStage::ClientRequest { sends, limit_s }) = self.state {
            self.out.send(format!("OK v{OURS}\n"));
            // The other conversation has its own time limits; this one outlasts them.
            let until = after_s(now, limit_s) + 4 * DRAIN_TIMEOUT + GRACE_TIME;
            self.enter(State::ThirdParty(ThirdPartyStage::Under { sends }), until);
        }
    }

    /// Passes on the measurement's output, some of which may come from the third party.
    fn pass_on(&mut self, lines: &str) {
        if matches!(self.state, State::ThirdParty(ThirdPartyStage::Under { .. })) {
            self.out.send(lines.lines().map(|line| phrase(line) + "\n").collect::<String>());
        }
    }

    fn third_party_done(&mut self, outcome: Result<(), String>) {
        match outcome {
            Err(why) => self.refuse(&why),
            Ok(()) if matches!(self.state, State::ThirdParty(_)) => {
                self.out.send("DONE\n");
                self.end();
            }
            Ok(()) => {}
        }
    }

    /// The host expects the flows: now the client may send.
    fn expecting(&mut self, now: Instant) {
        self.third_party_begun(now);
        match std::mem::replace(&mut self.state, State::Over) {
            State::Preparing(asked) => {
                self.out.send(format!("OK v{OURS}\n"));
                self.enter(State::Expecting(asked), now + FLOWS_TIMEOUT);
            }
            other => self.state = other,
        }
    }

    fn flows_ready(&mut self, now: Instant) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Expecting(asked) => {
                let until = self.finish_at(now, &asked);
                self.out.act(Action::Begin);
                self.enter(State::Running(Box::new(Transfer::new(asked))), until);
            }
            other => self.state = other,
        }
    }

    /// When this end ends the measurement: a sender when its time is up; a receiver some time after
    /// the client should have ended it.
    fn finish_at(&self, now: Instant, asked: &ClientRequest) -> Instant {
        let own = Some(asked.parameters.timeout_s).filter(|seconds| *seconds > 0.0);
        let longest = self.config.limits.duration_s;
        let seconds = own.or(check::duration_s(&asked.plan)).unwrap_or(longest);
        let at = after_s(now, seconds);
        match (asked.parameters.client_sends, asked.parameters.udp) {
            (true, _) => at + GRACE_TIME,
            (false, true) => at + BEGIN_PAUSE,
            (false, false) => at,
        }
    }

    /// The client sends something although it should be silent.
    fn interrupted(&mut self, now: Instant) {
        if let State::Running(running) = &self.state
            && running.may_be_interrupted()
        {
            self.finish(now);
        }
    }

    fn finish(&mut self, now: Instant) {
        if let State::Running(running) = &mut self.state
            && !std::mem::replace(&mut running.finishing, true)
        {
            self.deadline = now + DRAIN_TIMEOUT;
            self.out.act(Action::Finish);
        }
    }

    /// Takes an input that matters only while payload moves.
    fn take_running(&mut self, now: Instant, input: Input) {
        let State::Running(running) = &mut self.state else { return };
        match input {
            Input::Sampled(sample) => {
                let lines = running.intervals.lines(&sample);
                if !lines.is_empty() {
                    self.out.send(lines);
                }
            }
            Input::Finish(_) => self.finish(now),
            Input::Ended(last) => {
                running.last = Some(last);
                self.deadline = now + DRAIN_TIMEOUT;
            }
            Input::Report(_) => self.report(),
            // Inputs of a client's session don't occur here.
            _ => {}
        }
    }

    /// Reports this end's counts, which is the whole report.
    fn report(&mut self) {
        let State::Running(running) = &mut self.state else { return };
        let Some(last) = running.last.take() else { return };
        let mut text = String::from(running.intervals.close());
        text.push_str(&report::lines(&running.asked, &last, &self.config));
        self.out.send(text);
        self.out.act(Action::PeerReported(Known::missing(UNREPORTED)));
        self.end();
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

    /// Asks the host to forget the running measurement, if there is one.
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
