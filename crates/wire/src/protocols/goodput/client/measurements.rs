//! The client's measurements: from a plan to both reports, or to a refusal.

use std::time::Instant;

use goodput_model::{Known, Plan, ReceiveHash};

use super::super::channel::Channel;
use super::super::later;
use super::super::measurements::{Measurements, Side, Stage};
use super::super::messages::{About, Accept, Message, Propose, Refuse};
use super::super::preamble::ticket;
use super::super::running::Running;
use super::super::times::{ACCEPT_TIMEOUT, BEGIN_TIMEOUT, FLOWS_TIMEOUT, GRACE_TIME};
use crate::check;
use crate::error::WireError;
use crate::session::Action;
use crate::ticket::FlowSetup;

/// The measurements that this end has proposed.
pub(super) struct ClientMeasurements {
    /// What is the same at both ends.
    pub(super) common: Measurements<Preparing>,
}

/// How a measurement is prepared.
pub(super) enum Preparing {
    /// The server considers a plan.
    Proposed(Box<Plan>),
    /// Both sides set the data connections up.
    Opening { terms: Terms, near_ready: bool, far_ready: bool },
    /// Both sides are ready; the driver observes, then begins.
    Ready(Terms),
}

/// The server's terms when it accepted a plan.
#[derive(Clone, Default)]
pub(super) struct Terms {
    /// Seconds that payload may move.
    longest_s: f64,
    /// What the user should know; reported when the measurement begins.
    note: Option<String>,
    /// Whether the server captures packets.
    captures: bool,
}

/// Why no goodput server measures a plan, if none does.
pub(super) fn unfit(plan: &Plan) -> Option<String> {
    if let Err(why) = check::sense(plan) {
        return Some(format!("this plan can't be measured: {why}"));
    }
    if plan.peer_output {
        return Some("a goodput server prints nothing; leave out --peer-output, its whole report is in the result".into());
    }
    let ports = "a goodput server chooses the flows' ports; leave out --data-port";
    plan.data_port.map(|_| ports.into())
}

impl ClientMeasurements {
    /// Nothing is measured yet.
    pub(super) fn new() -> Self {
        Self { common: Measurements::new(Side::Client) }
    }

    /// Proposes a plan.
    pub(super) fn propose(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        plan: Box<Plan>,
    ) -> Result<(), WireError> {
        let measurement = self.common.number() + 1;
        self.common.propose(measurement);
        channel.send(now, &Message::Propose(Propose { measurement, plan: plan.clone() }))?;
        // The answer has a cookie for each flow.
        channel.measuring_with_server(plan.flow_plans().len(), plan.far_capture);
        self.common.prepare(Preparing::Proposed(plan), now + ACCEPT_TIMEOUT + GRACE_TIME);
        Ok(())
    }

    /// The server accepts the plan.
    pub(super) fn accepted(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        accept: Accept,
    ) -> Result<(), WireError> {
        if !self.common.is_current(accept.measurement)? {
            return Ok(());
        }
        let Stage::Preparing(Preparing::Proposed(plan)) = self.common.stage() else {
            return Err(WireError::broken("it accepts a plan twice"));
        };
        let longest_s = check::duration_s(plan).unwrap_or(accept.longest_s);
        let flows = plan.flow_plans();
        if flows.len() != accept.cookies.len() {
            let (cookies, flows) = (accept.cookies.len(), flows.len());
            return Err(WireError::broken(format!("{cookies} cookies for {flows} flows")));
        }
        if let Some(why) = later::lacking(plan, &accept.sets) {
            self.common.break_off(now, channel, why.clone())?;
            channel.act(Action::Refused(why));
            return Ok(());
        }
        let tickets = flows.into_iter().zip(&accept.cookies);
        let tickets = tickets.map(|(flow, cookie)| ticket(flow, &cookie.0)).collect();
        if let Some(echo) = accept.echo {
            channel.act(Action::Echo(echo.0));
        }
        if plan.socket.spread_ports {
            channel.act(Action::PeerHash(checked(accept.receive_hash)));
        }
        let capture = plan.far_capture.then(|| accept.capture.unwrap_or_else(not_captured));
        let captures = capture.as_ref().is_some_and(|capture| capture.value().is_some());
        if let Some(capture) = capture {
            channel.act(Action::PeerCaptures(capture));
        }
        let flow_setup = FlowSetup::Connect { port: accept.data_port.map(Into::into), apart: 0 };
        channel.act(Action::OpenFlows { tickets, flow_setup });
        let terms = Terms { longest_s, note: accept.note, captures };
        let opening = Preparing::Opening { terms, near_ready: false, far_ready: false };
        self.common.prepare(opening, now + FLOWS_TIMEOUT + GRACE_TIME);
        Ok(())
    }

    /// The server refuses the plan, or aborts the measurement.
    pub(super) fn refused(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        refuse: Refuse,
    ) -> Result<(), WireError> {
        if self.common.is_current(refuse.measurement)? {
            self.common.be_idle(now, channel);
            channel.act(Action::Refused(refuse.why));
        }
        Ok(())
    }

    /// This end's flows are open.
    pub(super) fn flows_ready(&mut self, now: Instant, channel: &mut Channel) {
        if let Some(Preparing::Opening { near_ready, .. }) = self.common.preparing() {
            *near_ready = true;
            self.be_ready(now, channel);
        }
    }

    /// The server has seen all flows.
    pub(super) fn peer_ready(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        measurement: u32,
    ) -> Result<(), WireError> {
        if !self.common.is_current(measurement)? {
            return Ok(());
        }
        let Some(Preparing::Opening { far_ready, .. }) = self.common.preparing() else {
            return Err(WireError::broken("it reports the flows ready at the wrong time"));
        };
        *far_ready = true;
        self.be_ready(now, channel);
        Ok(())
    }

    fn be_ready(&mut self, now: Instant, channel: &mut Channel) {
        let opening = self.common.preparing();
        if let Some(Preparing::Opening { terms, near_ready: true, far_ready: true }) = opening {
            let terms = std::mem::take(terms);
            self.common.prepare(Preparing::Ready(terms), now + BEGIN_TIMEOUT);
            channel.act(Action::PeerReady);
        }
    }

    /// The driver begins.
    pub(super) fn begin(&mut self, now: Instant, channel: &mut Channel) -> Result<(), WireError> {
        let Some(Preparing::Ready(terms)) = self.common.preparing() else { return Ok(()) };
        let (terms, measurement) = (std::mem::take(terms), self.common.number());
        channel.send(now, &Message::Begin(About { measurement }))?;
        channel.act(Action::Begin);
        if let Some(note) = terms.note {
            channel.act(Action::Note(note));
        }
        let Terms { longest_s, captures, .. } = terms;
        self.common.run(Running::at_client(measurement, now, longest_s, captures));
        Ok(())
    }

    /// Gives up a measurement whose stage has lasted too long.
    pub(super) fn expire(&mut self, now: Instant, channel: &mut Channel) -> Result<(), WireError> {
        if self.common.due().is_none_or(|due| now < due) {
            return Ok(());
        }
        let why = match self.common.stage() {
            Stage::Idle => return Ok(()),
            Stage::Preparing(Preparing::Proposed(_)) => {
                return Err(WireError::TimedOut("it neither accepts nor refuses a plan".into()));
            }
            Stage::Preparing(Preparing::Opening { near_ready: false, .. }) => {
                "the data connections were not made in time"
            }
            Stage::Preparing(Preparing::Opening { .. }) => {
                "the far end did not see all data connections in time"
            }
            Stage::Preparing(Preparing::Ready(_)) => "this end did not begin in time",
            Stage::Running(_) => "the measurement did not end in time",
        };
        channel.act(Action::Refused(why.into()));
        self.common.break_off(now, channel, why.into())
    }

    /// The error if the server closed the connection.
    pub(super) fn closed(&self) -> WireError {
        let when = match self.common.stage() {
            Stage::Idle => "while nothing was measured",
            Stage::Preparing(_) => "before the measurement began",
            Stage::Running(_) => "in the middle of the measurement",
        };
        WireError::Closed(when.into())
    }
}

/// What a server says about a capture if it does not know captures.
fn not_captured() -> Known<String> {
    Known::missing("its goodput is older and captures nothing: update it")
}

/// The server's report of its card, made safe to show and to compute with.
fn checked(hash: Option<Known<Box<ReceiveHash>>>) -> Known<Box<ReceiveHash>> {
    match hash {
        Some(Known::Value(hash)) if hash.is_sound() => Known::Value(hash),
        Some(Known::Value(_)) => Known::missing("it reports a hash that makes no sense"),
        Some(Known::Missing(why)) => Known::Missing(why),
        None => Known::missing("it does not report how its card spreads flows over receive queues"),
    }
}
