//! From a plan to flows that are open at both ends.

use std::time::Instant;

use goodput_model::{Length, Plan};

use super::super::plan::{parameters_of, unspoken};
use super::super::{ACCEPT_TIMEOUT, BEGIN_TIMEOUT, DATA_PORT, FLOWS_TIMEOUT, tickets};
use super::{ClientSession, State};
use crate::check;
use crate::error::WireError;
use crate::session::Action;
use crate::ticket::FlowSetup;

/// Listening attempts of this end until it finds free ports, each one measurement's ports higher.
const MAX_ATTEMPTS: u16 = 8;

/// A measurement for which both sides prepare.
pub struct Agreement {
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
    pub fn lacks(&self) -> &'static str {
        match (self.asked, self.accepted) {
            (false, _) => "this end did not listen in time",
            (true, false) => "it neither accepts nor refuses the parameters",
            (true, true) => "the data connections were not made in time",
        }
    }
}

impl ClientSession {
    pub(super) fn propose(&mut self, now: Instant, plan: Box<Plan>) {
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
    pub(super) fn flows_failed(&mut self) {
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
    pub(super) fn listening(&mut self, now: Instant) {
        if let State::Agreeing(Agreement { listens: true, asked: false, .. }) = self.state {
            self.deadline = Some(now + ACCEPT_TIMEOUT);
            self.ask();
        }
    }

    /// The server's answer to the parameters.
    pub(super) fn answered(&mut self, now: Instant, line: &str) -> Result<(), WireError> {
        let State::Agreeing(agreement) = &mut self.state else { return Ok(()) };
        if agreement.accepted {
            // A server of 6.1.2 accepts before it has its ports, and complains later.
            return self.account.hear(line);
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

    pub(super) fn flows_ready(&mut self, now: Instant) {
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
}
