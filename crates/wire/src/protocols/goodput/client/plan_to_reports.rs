//! The client's measurements: from a plan to both reports, or to a refusal.

use std::time::Instant;

use goodput_model::{Known, Plan, ReceiveHash};

use super::super::later;
use super::super::messages::{About, Accept, Message, Propose, Refuse};
use super::super::preamble::ticket;
use super::super::running::Running;
use super::super::times::{ACCEPT_TIMEOUT, BEGIN_TIMEOUT, FLOWS_TIMEOUT, GRACE_TIME};
use super::{ClientSession, State, Terms};
use crate::check;
use crate::error::WireError;
use crate::session::{Action, Input};
use crate::ticket::FlowSetup;

impl ClientSession {
    pub(super) fn propose(&mut self, now: Instant, plan: Box<Plan>) -> Result<(), WireError> {
        if let Err(why) = check::sense(&plan) {
            self.channel.act(Action::Refused(format!("this plan can't be measured: {why}")));
            return Ok(());
        }
        if plan.peer_output {
            let why = "a goodput server prints nothing; leave out --peer-output, its whole report is in the result";
            self.channel.act(Action::Refused(why.into()));
            return Ok(());
        }
        if plan.data_port.is_some() {
            let why = "a goodput server chooses the flows' ports; leave out --data-port";
            self.channel.act(Action::Refused(why.into()));
            return Ok(());
        }
        match self.state {
            State::Greeting(_) if self.early_plan.is_none() => {
                self.early_plan = Some(plan);
                Ok(())
            }
            State::Idle => self.send_plan(now, plan),
            _ => {
                self.channel.act(Action::Refused("another measurement is running".into()));
                Ok(())
            }
        }
    }

    fn send_plan(&mut self, now: Instant, plan: Box<Plan>) -> Result<(), WireError> {
        self.measurement += 1;
        let measurement = self.measurement;
        self.channel.send(now, &Message::Propose(Propose { measurement, plan: plan.clone() }))?;
        // The answer has a cookie for each flow.
        self.channel.measuring_with_server(plan.flow_plans().len());
        self.enter(State::Proposed(plan), Some(now + ACCEPT_TIMEOUT + GRACE_TIME));
        Ok(())
    }

    pub(super) fn accepted(&mut self, now: Instant, accept: Accept) -> Result<(), WireError> {
        if !self.is_current(accept.measurement)? {
            return Ok(());
        }
        let State::Proposed(plan) = &self.state else {
            return Err(WireError::broken("it accepts a plan twice"));
        };
        let longest_s = check::duration_s(plan).unwrap_or(accept.longest_s);
        let flows = plan.flow_plans();
        if flows.len() != accept.cookies.len() {
            let (cookies, flows) = (accept.cookies.len(), flows.len());
            return Err(WireError::broken(format!("{cookies} cookies for {flows} flows")));
        }
        if let Some(why) = later::lacking(plan, &accept.sets) {
            self.break_off(now, why.clone())?;
            self.channel.act(Action::Refused(why));
            return Ok(());
        }
        let tickets = flows.into_iter().zip(&accept.cookies);
        let tickets = tickets.map(|(flow, cookie)| ticket(flow, &cookie.0)).collect();
        if let Some(echo) = accept.echo {
            self.channel.act(Action::Echo(echo.0));
        }
        if plan.socket.spread_ports {
            self.channel.act(Action::PeerHash(told(accept.receive_hash)));
        }
        let flow_setup = FlowSetup::Connect { port: accept.data_port.map(Into::into), apart: 0 };
        self.channel.act(Action::OpenFlows { tickets, flow_setup });
        let terms = Terms { longest_s, note: accept.note };
        let opening = State::Opening { terms, near_ready: false, far_ready: false };
        self.enter(opening, Some(now + FLOWS_TIMEOUT + GRACE_TIME));
        Ok(())
    }

    pub(super) fn refused(&mut self, refuse: Refuse) -> Result<(), WireError> {
        if self.is_current(refuse.measurement)? {
            self.enter(State::Idle, None);
            self.channel.act(Action::Refused(refuse.why));
        }
        Ok(())
    }

    pub(super) fn flows_ready(&mut self, now: Instant) -> Result<(), WireError> {
        if let State::Opening { near_ready, .. } = &mut self.state {
            *near_ready = true;
            self.be_ready(now);
        }
        Ok(())
    }

    pub(super) fn peer_ready(&mut self, now: Instant, measurement: u32) -> Result<(), WireError> {
        if !self.is_current(measurement)? {
            return Ok(());
        }
        let State::Opening { far_ready, .. } = &mut self.state else {
            return Err(WireError::broken("it reports the flows ready at the wrong time"));
        };
        *far_ready = true;
        self.be_ready(now);
        Ok(())
    }

    fn be_ready(&mut self, now: Instant) {
        if let State::Opening { terms, near_ready: true, far_ready: true } = &mut self.state {
            let terms = std::mem::take(terms);
            self.enter(State::Ready(terms), Some(now + BEGIN_TIMEOUT));
            self.channel.act(Action::PeerReady);
        }
    }

    pub(super) fn begin(&mut self, now: Instant) -> Result<(), WireError> {
        let State::Ready(terms) = &mut self.state else { return Ok(()) };
        let (terms, measurement) = (std::mem::take(terms), self.measurement);
        self.channel.send(now, &Message::Begin(About { measurement }))?;
        self.channel.act(Action::Begin);
        if let Some(note) = terms.note {
            self.channel.act(Action::Note(note));
        }
        let running = Running::at_client(measurement, now, terms.longest_s);
        let until = running.until();
        self.enter(State::Running(running), Some(until));
        Ok(())
    }

    /// Tells the server that the measurement is off.
    pub(super) fn break_off(&mut self, now: Instant, why: String) -> Result<(), WireError> {
        if matches!(self.state, State::Greeting(_) | State::Idle) {
            return Ok(());
        }
        let measurement = self.measurement;
        self.enter(State::Idle, None);
        self.channel.send(now, &Message::Refuse(Refuse { measurement, why }))
    }

    /// Takes an input that matters only while payload moves.
    pub(super) fn take_running(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        let State::Running(running) = &mut self.state else { return Ok(()) };
        running.take(now, &mut self.channel, input)?;
        self.conclude();
        Ok(())
    }

    /// Takes a message about a measurement that has begun.
    pub(super) fn hear_running(&mut self, now: Instant, message: Message) -> Result<(), WireError> {
        let Some(measurement) = Running::number_in(&message) else { return Ok(()) };
        if !self.is_current(measurement)? {
            return Ok(());
        }
        let State::Running(running) = &mut self.state else {
            return Err(WireError::broken("it reports payload before the measurement began"));
        };
        running.hear(now, &mut self.channel, message)?;
        self.conclude();
        Ok(())
    }

    fn conclude(&mut self) {
        if matches!(&self.state, State::Running(running) if running.is_over()) {
            self.enter(State::Idle, None);
        }
    }

    /// Whether a message is about the running measurement, rather than one that was over when the
    /// message arrived.
    fn is_current(&self, measurement: u32) -> Result<bool, WireError> {
        if measurement > self.measurement {
            return Err(WireError::broken(format!("there is no measurement {measurement}")));
        }
        Ok(measurement == self.measurement && !matches!(self.state, State::Idle))
    }
}

/// The server's report of its card, made safe to show and to compute with.
fn told(hash: Option<Known<Box<ReceiveHash>>>) -> Known<Box<ReceiveHash>> {
    match hash {
        Some(Known::Value(hash)) if hash.is_sound() => Known::Value(hash),
        Some(Known::Value(_)) => Known::missing("it reports a hash that makes no sense"),
        Some(Known::Missing(why)) => Known::Missing(why),
        None => Known::missing("it does not report how its card spreads flows over receive queues"),
    }
}
