//! The server's measurements: from a plan to both reports, or to a refusal.

use std::num::NonZeroU16;
use std::time::Instant;

use super::super::later;
use super::super::messages::{About, Accept, HexCookie, Message, Propose, Refuse};
use super::super::preamble::ticket;
use super::super::running::Running;
use super::super::times::{ACCEPT_TIMEOUT, BEGIN_TIMEOUT, FLOWS_TIMEOUT, IDLE_TIMEOUT};
use super::{ServerSession, State};
use crate::check;
use crate::error::WireError;
use crate::session::{Action, Input, Limits};
use crate::ticket::FlowSetup;
use goodput_model::Plan;

impl ServerSession {
    /// Enters another state, in which something is due at `deadline`.
    pub(super) fn enter(&mut self, state: State, deadline: Instant) {
        if matches!(state, State::Idle) {
            self.channel.quiet();
        }
        self.state = state;
        self.deadline = deadline;
    }

    /// The client did something: it is not idle.
    pub(super) fn stay(&mut self, now: Instant) {
        if matches!(self.state, State::Idle) {
            self.deadline = now + IDLE_TIMEOUT;
        }
    }

    pub(super) fn proposed(&mut self, now: Instant, propose: Propose) -> Result<(), WireError> {
        let Propose { measurement, plan } = propose;
        if !matches!(self.state, State::Idle) || measurement <= self.measurement {
            return Err(WireError::broken("it proposes a plan at the wrong time"));
        }
        self.measurement = measurement;
        self.stay(now);
        self.renew()?;
        let limits = self.limits();
        match check::sense(&plan).and_then(|()| check::within(&plan, &limits)) {
            Ok(()) => self.prepare(now, plan),
            Err(why) => self.channel.send(now, &Message::Refuse(Refuse { measurement, why })),
        }
    }

    /// Looks the client's key up again: during the connection its limits may change, and it may be revoked.
    fn renew(&mut self) -> Result<(), WireError> {
        if let (Some(client), Some(keys)) = (&self.client, &self.config.keys) {
            let known = keys.clients.again(client, self.config.peer.ip());
            self.client = Some(known.map_err(WireError::NotPermitted)?);
        }
        Ok(())
    }

    /// What the client may ask for.
    fn limits(&self) -> Limits {
        let limits = self.config.limits;
        self.client.as_ref().map_or(limits, |client| client.limits(limits))
    }

    /// Asks the host to expect the flows of a plan that is within the limits.
    fn prepare(&mut self, now: Instant, plan: Box<Plan>) -> Result<(), WireError> {
        let flows = plan.flow_plans();
        let cookies: Vec<_> = flows.iter().map(|_| HexCookie(self.cookies.next_cookie())).collect();
        let tickets = flows.into_iter().zip(&cookies).map(|(flow, c)| ticket(flow, &c.0)).collect();
        // Each end's samples are compared with the other's, so the clocks must be compared too.
        let echo = (plan.latency || plan.observe).then(|| HexCookie(self.cookies.next_cookie()));
        if let Some(echo) = &echo {
            self.channel.act(Action::Echo(echo.0));
        }
        let flow_setup = FlowSetup::Arrive;
        self.channel.act(Action::ExpectFlows { plan: plan.clone(), tickets, flow_setup });
        self.enter(State::Preparing { plan, cookies, echo }, now + ACCEPT_TIMEOUT);
        Ok(())
    }

    /// The host expects the flows.
    pub(super) fn expecting(
        &mut self,
        now: Instant,
        data_port: Option<u16>,
    ) -> Result<(), WireError> {
        let State::Preparing { plan, cookies, echo } = &mut self.state else { return Ok(()) };
        let (plan, cookies, echo) = (plan.clone(), std::mem::take(cookies), echo.take());
        let accept = Accept {
            measurement: self.measurement,
            cookies,
            data_port: data_port.and_then(NonZeroU16::new),
            echo,
            receive_hash: self.receive_hash.take().filter(|_| plan.socket.spread_ports),
            sets: later::options(&plan).map(Into::into).collect(),
            longest_s: self.longest_s(&plan),
            note: check::note(&plan, &self.limits()),
        };
        self.channel.measuring_with_client(plan.flow_plans().len());
        self.channel.send(now, &Message::Accept(accept))?;
        self.enter(State::Expecting(plan), now + FLOWS_TIMEOUT);
        Ok(())
    }

    /// Seconds that payload may move.
    fn longest_s(&self, plan: &Plan) -> f64 {
        check::duration_s(plan).unwrap_or(self.limits().duration_s)
    }

    pub(super) fn flows_ready(&mut self, now: Instant) -> Result<(), WireError> {
        let State::Expecting(plan) = &self.state else { return Ok(()) };
        let plan = plan.clone();
        let measurement = self.measurement;
        self.channel.send(now, &Message::FlowsReady(About { measurement }))?;
        self.enter(State::Ready(plan), now + BEGIN_TIMEOUT);
        Ok(())
    }

    pub(super) fn begun(&mut self, now: Instant, measurement: u32) -> Result<(), WireError> {
        if !self.is_current(measurement)? {
            return Ok(());
        }
        let State::Ready(plan) = &self.state else {
            return Err(WireError::broken("it begins at the wrong time"));
        };
        let running = Running::at_server(measurement, now, self.longest_s(plan));
        self.channel.act(Action::Begin);
        self.run(running);
        Ok(())
    }

    fn run(&mut self, running: Running) {
        let due = running.next_timeout();
        self.enter(State::Running(running), due);
    }

    /// The client aborted the measurement.
    pub(super) fn refused(&mut self, now: Instant, refuse: Refuse) -> Result<(), WireError> {
        if self.is_current(refuse.measurement)? {
            self.channel.act(Action::Note(refuse.why));
            self.abandon();
            self.enter(State::Idle, now + IDLE_TIMEOUT);
        }
        Ok(())
    }

    /// Tells the client that the measurement is off.
    pub(super) fn break_off(&mut self, now: Instant, why: String) -> Result<(), WireError> {
        if matches!(self.state, State::Greeting(_) | State::Idle) {
            return Ok(());
        }
        let measurement = self.measurement;
        self.enter(State::Idle, now + IDLE_TIMEOUT);
        self.channel.send(now, &Message::Refuse(Refuse { measurement, why }))
    }

    /// Ends payload that the client did not end in time.
    pub(super) fn finish_overdue(&mut self, now: Instant) -> Result<(), WireError> {
        let why = "the server's time limit for payload is over";
        self.take_running(now, Input::Finish(Some(why.into())))
    }

    /// Takes an input that matters only while payload moves.
    pub(super) fn take_running(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        let State::Running(running) = &mut self.state else { return Ok(()) };
        running.take(now, &mut self.channel, input)?;
        self.conclude(now);
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
        self.conclude(now);
        Ok(())
    }

    /// Continues after anything that may have brought a measurement closer to its end.
    fn conclude(&mut self, now: Instant) {
        match &self.state {
            State::Running(running) if running.is_over() => {
                self.enter(State::Idle, now + IDLE_TIMEOUT)
            }
            State::Running(running) => self.deadline = running.next_timeout(),
            _ => {}
        }
    }

    /// Whether a message is about the running measurement, rather than one that was over when the message arrived.
    fn is_current(&self, measurement: u32) -> Result<bool, WireError> {
        if measurement > self.measurement {
            return Err(WireError::broken(format!("there is no measurement {measurement}")));
        }
        Ok(measurement == self.measurement && !matches!(self.state, State::Idle))
    }
}
