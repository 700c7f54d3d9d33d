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

use std::time::Instant;

use goodput_model::{Direction, Host, Known, Length, Plan, Sample, Transport};

use super::lines::Lines;
use super::plan::{parameters_of, unspoken};
use super::server_report::ServerReport;
use super::version::{HELO, Version};
use super::{
    ACCEPT_TIMEOUT, BEGIN_TIMEOUT, DATA_PORT, DRAIN_TIMEOUT, FLOWS_TIMEOUT, GRACE_TIME,
    GREETING_TIMEOUT, OURS, tickets,
};
use crate::check;
use crate::error::WireError;
use crate::foreign;
use crate::outbox::Outbox;
use crate::plain::phrase;
use crate::protocols::goodput::times::after_s;
use crate::session::{Action, ClientConfig, Input};
use crate::state_machine::StateMachine;
use crate::ticket::FlowSetup;

/// The oldest version that this end supports: Debian's, against which this was tested.
const OLDEST: Version = Version::new(6, 1, 2);

/// Listening attempts of this end until it finds free ports, each one measurement's ports higher.
const MAX_ATTEMPTS: u16 = 8;

/// Why the server's own view is missing.
const UNREPORTED: &str = "a nuttcp server reports only totals";

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
    /// The server's report about itself.
    report: ServerReport,
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
    /// Payload moves, or the server's report is awaited.
    Running(Transfer),
    /// The one measurement is over.
    Over,
}

/// A measurement for which both sides prepare.
struct Agreement {
    plan: Box<Plan>,
    /// Port of the first flow.
    port: u16,
    /// How many times this end has tried to listen.
    tries: u16,
    /// Whether this end awaits the flows, and must have a port before the request is sent.
    listens: bool,
    asked: bool,
    accepted: bool,
    flows_ready: bool,
}

impl Agreement {
    /// What did not arrive in time.
    fn lacks(&self) -> &'static str {
        match (self.asked, self.accepted) {
            (false, _) => "this end did not listen in time",
            (true, false) => "it neither accepts nor refuses the parameters",
            (true, true) => "the data connections were not made in time",
        }
    }
}

/// The transfer of a measurement that has begun.
struct Transfer {
    plan: Box<Plan>,
    finishing: bool,
    /// The last sample of this end, once its flows have ended.
    ended: Option<Box<Sample>>,
    /// Whether the server has reported everything, and closed.
    reported: bool,
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
            report: ServerReport::default(),
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
            State::Running(_) | State::Ready(_) => self.report.hear(line),
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

    fn propose(&mut self, now: Instant, plan: Box<Plan>) {
        let refusal = match self.state {
            State::Idle => check::sense(&plan).err().or_else(|| unspoken(&plan)),
            _ => Some("a nuttcp server runs one measurement per connection".into()),
        };
        if let Some(why) = refusal {
            return self.out.act(Action::Refused(why));
        }
        let listens = parameters_of(&plan, self.theirs, DATA_PORT).connects();
        let port = plan.data_port.unwrap_or(DATA_PORT);
        let agreement = Agreement {
            plan,
            port,
            tries: 0,
            listens,
            asked: false,
            accepted: false,
            flows_ready: false,
        };
        self.enter(State::Agreeing(agreement), Some(now + ACCEPT_TIMEOUT));
        if listens {
            self.listen();
        } else {
            self.ask();
        }
    }

    fn listen(&mut self) {
        let State::Agreeing(agreement) = &mut self.state else { return };
        agreement.tries += 1;
        let first_port = agreement.port;
        self.open_flows(FlowSetup::Listen { first_port });
    }

    /// The flows can't be opened; this may be because the ports are in use, so try others.
    fn flows_failed(&mut self) {
        if let State::Agreeing(agreement) = &mut self.state
            && let Agreement { listens: true, asked: false, tries: ..MAX_ATTEMPTS, .. } = agreement
            // The user's own port is not a guess, so no other is tried.
            && agreement.plan.data_port.is_none()
        {
            agreement.port += agreement.plan.flows;
            return self.listen();
        }
        self.break_off();
    }

    /// Writes the parameters.
    fn ask(&mut self) {
        let State::Agreeing(agreement) = &mut self.state else { return };
        agreement.asked = true;
        let plan = &agreement.plan;
        let parameters = parameters_of(plan, self.theirs, agreement.port);
        let whole = match plan.length {
            Length::Bytes(bytes) => bytes.0 % plan.chunk_bytes.0 == 0,
            Length::Seconds(_) | Length::Auto { .. } | Length::Source => true,
        };
        if !whole && !parameters.client_sends {
            let why = "nuttcp sends only whole chunks, so a little more than requested will arrive";
            self.out.act(Action::Note(why.into()));
        }
        self.out.send(parameters.write());
    }

    fn open_flows(&mut self, flow_setup: FlowSetup) {
        let State::Agreeing(agreement) = &self.state else { return };
        let parameters = parameters_of(&agreement.plan, self.theirs, DATA_PORT);
        let tickets = tickets(&agreement.plan, parameters.interval_s);
        self.out.act(Action::OpenFlows { tickets, flow_setup });
    }

    /// This end listens, so that the request can name the port.
    fn listening(&mut self, now: Instant) {
        if let State::Agreeing(Agreement { listens: true, asked: false, .. }) = self.state {
            self.deadline = Some(now + ACCEPT_TIMEOUT);
            self.ask();
        }
    }

    /// The server's answer to the parameters.
    fn answered(&mut self, now: Instant, line: &str) -> Result<(), WireError> {
        let State::Agreeing(agreement) = &mut self.state else { return Ok(()) };
        if agreement.accepted {
            // A server of 6.1.2 accepts before it has its ports, and complains later.
            return self.report.hear(line);
        }
        if line.starts_with("KO") {
            self.enter(State::Refusing(String::new()), Some(now + ACCEPT_TIMEOUT));
            return Ok(());
        }
        if !line.starts_with("OK") {
            let why = "it answers the parameters with neither OK nor KO";
            return Err(WireError::Protocol(why.into()));
        }
        agreement.accepted = true;
        let (listens, port) = (agreement.listens, agreement.port);
        self.deadline = Some(now + FLOWS_TIMEOUT);
        if !listens {
            self.open_flows(FlowSetup::Connect { port: Some(port), apart: 1 });
        }
        self.be_ready(now);
        Ok(())
    }

    fn flows_ready(&mut self, now: Instant) {
        if let State::Agreeing(agreement) = &mut self.state {
            agreement.flows_ready = true;
            self.be_ready(now);
        }
    }

    fn be_ready(&mut self, now: Instant) {
        let State::Agreeing(agreement) = &self.state else { return };
        if agreement.accepted && agreement.flows_ready {
            let plan = agreement.plan.clone();
            self.enter(State::Ready(plan), Some(now + BEGIN_TIMEOUT));
            self.out.act(Action::PeerReady);
        }
    }

    /// Takes an input of a measurement that is ready or has begun.
    fn take_running(&mut self, now: Instant, input: Input) {
        match input {
            Input::Begin => self.begin(now),
            Input::Finish(_) => self.finish(),
            Input::Ended(last) => self.ended(now, last),
            // The protocol can't carry samples, reports and questions.
            _ => {}
        }
    }

    fn begin(&mut self, now: Instant) {
        let State::Ready(plan) = &self.state else { return };
        let plan = plan.clone();
        let until =
            after_s(now, check::duration_s(&plan).unwrap_or(f64::MAX)) + DRAIN_TIMEOUT + GRACE_TIME;
        let running = Transfer { plan, finishing: false, ended: None, reported: false };
        self.enter(State::Running(running), Some(until));
        self.out.act(Action::Begin);
    }

    /// The driver ends the payload. A far sender stops at the requested length, or earlier if it
    /// finds something to read on the control connection, such as its end (lines 7391 to 7404).
    fn finish(&mut self) {
        let State::Running(running) = &mut self.state else { return };
        if std::mem::replace(&mut running.finishing, true) {
            return;
        }
        if running.plan.direction == Direction::Reverse && !running.reported {
            self.out.end_sending();
        }
        self.out.act(Action::Finish);
    }

    /// A UDP receiver that has missed every end marker ends with the control connection (lines 1400
    /// to 1408).
    fn ended(&mut self, now: Instant, last: Box<Sample>) {
        let State::Running(running) = &mut self.state else { return };
        if running.ended.is_some() {
            return;
        }
        running.ended = Some(last);
        if running.plan.transport == Transport::Udp && !running.reported {
            self.out.end_sending();
        }
        self.deadline = Some(now + DRAIN_TIMEOUT);
        self.conclude();
    }

    /// Continues when both ends have ended.
    fn conclude(&mut self) {
        let State::Running(Transfer { plan, ended: Some(last), reported: true, .. }) = &self.state
        else {
            return;
        };
        let totals = self.report.totals(plan, self.theirs, last);
        self.out.act(Action::PeerTotals(Box::new(totals)));
        self.out.act(Action::PeerReported(Known::missing(UNREPORTED)));
        self.be_over();
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
            State::Running(running) if self.report.is_complete() => {
                running.reported = true;
                self.conclude();
                return Ok(());
            }
            State::Running(_) => "before it reported all its counts",
            State::Over => return Ok(()),
        };
        Err(WireError::Closed(match self.report.complaint() {
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
