//! The server's measurements: from a plan to both reports, or to a refusal.

use std::num::NonZeroU16;
use std::time::Instant;

use goodput_model::{Known, Plan, ReceiveHash};

use super::super::channel::Channel;
use super::super::later;
use super::super::measurements::{Measurements, Side, Stage};
use super::super::messages::{About, Accept, HexCookie, Message, Propose, Refuse};
use super::super::preamble::ticket;
use super::super::running::{Longest, Running};
use super::super::times::{ACCEPT_TIMEOUT, BEGIN_TIMEOUT, FLOWS_TIMEOUT, IDLE_TIMEOUT};
use crate::check;
use crate::cookie::CookieMint;
use crate::error::WireError;
use crate::session::{Action, Input, Limits};
use crate::ticket::FlowSetup;

/// The measurements that a client has proposed.
pub(super) struct ServerMeasurements {
    /// What is the same at both ends.
    pub(super) common: Measurements<Preparing>,
    cookies: CookieMint,
    /// How this end's card spreads received packets, for the next [`Accept`].
    receive_hash: Option<Known<Box<ReceiveHash>>>,
    /// The device at which this end captures, for the next [`Accept`].
    capture: Option<Known<String>>,
}

/// How a measurement is prepared.
pub(super) enum Preparing {
    /// A plan is within the limits; the host prepares for its data connections.
    Host { plan: Box<Plan>, cookies: Vec<HexCookie>, echo: Option<HexCookie> },
    /// A plan was accepted; its data connections are awaited.
    Flows(Box<Plan>),
    /// All data connections are there; the client observes, then begins.
    Ready(Box<Plan>),
}

impl ServerMeasurements {
    /// Nothing is measured yet. `seed` makes the cookies.
    pub(super) fn new(seed: [u8; 32]) -> Self {
        let common = Measurements::new(Side::Server);
        Self { common, cookies: CookieMint::new(seed), receive_hash: None, capture: None }
    }

    /// How this end's card spreads received packets, for the next plan.
    pub(super) fn set_receive_hash(&mut self, hash: Known<Box<ReceiveHash>>) {
        self.receive_hash = Some(hash);
    }

    /// The device at which this end captures packets of the next plan, or why it does not.
    pub(super) fn set_capture(&mut self, capture: Known<String>) {
        self.capture = Some(capture);
    }

    /// Whether the client may propose a measurement of this number now.
    pub(super) fn may_propose(&self, measurement: u32) -> Result<(), WireError> {
        if !self.common.is_idle() || measurement <= self.common.number() {
            return Err(WireError::broken("it proposes a plan at the wrong time"));
        }
        Ok(())
    }

    /// The client proposes a plan. Asks the host to expect its flows, if it is within the limits.
    pub(super) fn proposed(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        propose: Propose,
        limits: &Limits,
    ) -> Result<(), WireError> {
        let Propose { measurement, plan } = propose;
        self.common.propose(measurement);
        self.common.stay(now);
        if let Err(why) = check::sense(&plan).and_then(|()| check::within(&plan, limits)) {
            channel.act(Action::Note(format!("refused: {why}")));
            return channel.send(now, &Message::Refuse(Refuse { measurement, why }));
        }
        let flows = plan.flow_plans();
        let cookies: Vec<_> = flows.iter().map(|_| HexCookie(self.cookies.next_cookie())).collect();
        let tickets = flows.into_iter().zip(&cookies).map(|(flow, c)| ticket(flow, &c.0)).collect();
        // Each end's samples are compared with the other's, so the clocks must be compared too.
        let echo = (plan.latency || plan.observe).then(|| HexCookie(self.cookies.next_cookie()));
        if let Some(echo) = &echo {
            channel.act(Action::Echo(echo.0));
        }
        let flow_setup = FlowSetup::Arrive;
        channel.act(Action::ExpectFlows { plan: plan.clone(), tickets, flow_setup });
        self.common.prepare(Preparing::Host { plan, cookies, echo }, now + ACCEPT_TIMEOUT);
        Ok(())
    }

    /// The host expects the flows.
    pub(super) fn expecting(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        data_port: Option<u16>,
        limits: &Limits,
    ) -> Result<(), WireError> {
        let Some(Preparing::Host { plan, cookies, echo }) = self.common.preparing() else {
            return Ok(());
        };
        let (plan, cookies, echo) = (plan.clone(), std::mem::take(cookies), echo.take());
        let accept = Accept {
            measurement: self.common.number(),
            cookies,
            data_port: data_port.and_then(NonZeroU16::new),
            echo,
            receive_hash: self.receive_hash.take().filter(|_| plan.socket.spread_ports),
            capture: self.capture.take().filter(|_| plan.far_capture),
            sets: later::options(&plan).map(Into::into).collect(),
            longest_s: longest_s(&plan, limits),
            note: check::note(&plan, limits),
        };
        channel.measuring_with_client(plan.flow_plans().len());
        channel.send(now, &Message::Accept(accept))?;
        self.common.prepare(Preparing::Flows(plan), now + FLOWS_TIMEOUT);
        Ok(())
    }

    /// All flows are there.
    pub(super) fn flows_ready(
        &mut self,
        now: Instant,
        channel: &mut Channel,
    ) -> Result<(), WireError> {
        let Some(Preparing::Flows(plan)) = self.common.preparing() else { return Ok(()) };
        let plan = plan.clone();
        let measurement = self.common.number();
        channel.send(now, &Message::FlowsReady(About { measurement }))?;
        self.common.prepare(Preparing::Ready(plan), now + BEGIN_TIMEOUT);
        Ok(())
    }

    /// The client begins.
    pub(super) fn begun(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        measurement: u32,
        limits: &Limits,
    ) -> Result<(), WireError> {
        if !self.common.is_current(measurement)? {
            return Ok(());
        }
        let Some(Preparing::Ready(plan)) = self.common.preparing() else {
            return Err(WireError::broken("it begins at the wrong time"));
        };
        let longest =
            check::duration_s(plan).map_or(Longest::Allowed(limits.duration_s), Longest::Planned);
        let running = Running::at_server(measurement, now, longest);
        channel.act(Action::Begin);
        self.common.run(running);
        Ok(())
    }

    /// The client aborted the measurement.
    pub(super) fn refused(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        refuse: Refuse,
    ) -> Result<(), WireError> {
        if self.common.is_current(refuse.measurement)? {
            channel.act(Action::Note(refuse.why));
            self.abandon(channel);
            self.common.be_idle(now, channel);
        }
        Ok(())
    }

    /// Asks the host to forget the running measurement, if there is one.
    pub(super) fn abandon(&self, channel: &mut Channel) {
        if !self.common.is_idle() {
            channel.act(Action::Abandon);
        }
    }

    /// Does what is due: ends payload that the client did not end in time, or gives up what has lasted too long.
    pub(super) fn expire(&mut self, now: Instant, channel: &mut Channel) -> Result<(), WireError> {
        if self.common.due().is_none_or(|due| now < due) {
            return Ok(());
        }
        let why = match self.common.stage() {
            Stage::Idle => {
                let minutes = IDLE_TIMEOUT.as_secs() / 60;
                let why = format!("it requested nothing for {minutes} minutes");
                return Err(WireError::TimedOut(why));
            }
            Stage::Running(running) if let Some(why) = running.overdue(now) => {
                return self.common.take(now, channel, Input::Finish(Some(why.into())));
            }
            Stage::Preparing(Preparing::Host { .. }) => "the server did not get ready in time",
            Stage::Preparing(Preparing::Flows(_)) => "not all data connections arrived in time",
            Stage::Preparing(Preparing::Ready(_)) => "the client did not begin in time",
            Stage::Running(_) => "the measurement did not end in time",
        };
        self.abandon(channel);
        self.common.break_off(now, channel, why.into())
    }
}

/// Seconds that payload may move.
fn longest_s(plan: &Plan, limits: &Limits) -> f64 {
    check::duration_s(plan).unwrap_or(limits.duration_s)
}
