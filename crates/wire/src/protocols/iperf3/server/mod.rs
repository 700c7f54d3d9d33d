//! The answering side.
//!
//! ```text
//! greeting ──cookie──▶ awaiting ──params──▶ preparing ──0a──▶ gathering ──all flows, 01 02──▶ running
//!                         └──not let in──▶ denied                                              │ 04
//! over ◀──10── parting ◀──results both── asking ◀──flows ended, sends 0d── ending ◀────────────┘
//! ```
//!
//! The client ends the test; this end does so only if it lasts far longer than the client announced.

mod stage;

use std::time::{Duration, Instant};

use goodput_model::{EndName, Host, Known, Pin, Sample, Totals};

use self::stage::{Run, Stage};
use super::agree::{Agreed, agree};
use super::control::{Control, MAX_PARAMS_BYTES, MAX_RESULTS_BYTES, broken};
use super::cookie::{COOKIE_BYTES, read as read_cookie, text};
use super::errors::number;
use super::params::Params;
use super::results;
use super::states::{
    CLIENT_TERMINATE, CREATE_STREAMS, DISPLAY_RESULTS, EXCHANGE_RESULTS, IPERF_DONE,
    PARAM_EXCHANGE, SERVER_TERMINATE, TEST_END, TEST_RUNNING, TEST_START,
};
use super::times::{
    DENIAL_DELAY, GOODBYE_TIMEOUT, GRACE_TIME, GREETING_TIMEOUT, LOGIN_TIMEOUT, PARAMS_TIMEOUT,
    PREPARE_TIMEOUT, RESULTS_TIMEOUT, STREAMS_TIMEOUT,
};
use super::{PROGRAM, tickets};
use crate::error::WireError;
use crate::outbox::Outbox;
use crate::plain::phrase;
use crate::protocols::goodput::times::MAX_PLAN_S;
use crate::session::{Action, Credential, Input, ServerConfig};
use crate::state_machine::StateMachine;
use crate::ticket::{FlowSetup, Proof};

/// A conversation, seen from the answering side.
pub struct ServerSession {
    control: Control,
    config: ServerConfig,
    cookie: Proof,
    stage: Stage,
    /// When the client sent its login.
    asked: Instant,
    /// When the stage must have ended, or something is due in it.
    deadline: Instant,
}

impl StateMachine for ServerSession {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        match input {
            Input::Received(bytes) => {
                self.control.receive(&bytes);
                self.listen(now)?;
            }
            Input::Closed => return Err(WireError::Closed(self.stage.when().into())),
            // iperf3 can't name a port for data connections: they come to the usual one.
            Input::Expecting { .. } => self.expecting(now),
            Input::LoginChecked(user) => self.judged(now, user),
            Input::FlowsReady => self.begin(now),
            Input::FlowsFailed(why) => self.flows_failed(why),
            Input::Denied(why) => {
                self.abandon();
                self.control.fail(number::AUTH);
                return Err(WireError::NotPermitted(why));
            }
            Input::Sampled(sample) => {
                // Bytes drained after the end are in the last sample, and in no interval of their own.
                if let Stage::Running(run) = &mut self.stage {
                    run.sampled(&sample);
                }
            }
            Input::Ended(last) => self.flows_ended(now, *last),
            Input::Finish(why) => self.terminate(why.unwrap_or_default()),
            Input::Leave(why) => self.terminate(why),
            _ => {}
        }
        Ok(())
    }

    /// The stage has lasted too long.
    fn expire(&mut self, _now: Instant) -> Result<(), WireError> {
        let number = match &self.stage {
            Stage::Denied => {
                self.control.fail(number::AUTH);
                return Err(WireError::NotPermitted("not a user of this server".into()));
            }
            Stage::Judging(_) => Some(number::AUTH),
            Stage::Greeting => None,
            Stage::Awaiting => Some(number::RECEIVE_PARAMS),
            Stage::Preparing(_) => Some(number::CREATE_STREAM),
            Stage::Gathering(_) => Some(number::STREAM_ACCEPT),
            Stage::Running(_) => Some(number::DURATION_EXPIRED),
            Stage::Ending(_) | Stage::Asking(_) => Some(number::RECEIVE_RESULTS),
            Stage::Parting => None,
        };
        self.abandon();
        if let Some(number) = number {
            self.control.fail(number);
        }
        Err(WireError::TimedOut(self.stage.when().into()))
    }

    fn due(&self) -> Option<Instant> {
        Some(self.deadline)
    }

    /// Sends iperf3's number of the error if the client listens for one.
    fn fail(&mut self, _now: Instant, error: &WireError) {
        let number = self.stage.number_of_nonsense();
        self.abandon();
        if let (WireError::Protocol(_), Some(number)) = (error, number) {
            self.control.fail(number);
        }
        self.control.close();
    }

    fn outbox(&self) -> &Outbox {
        self.control.outbox()
    }

    fn outbox_mut(&mut self) -> &mut Outbox {
        self.control.outbox_mut()
    }
}

impl ServerSession {
    /// Waits for a cookie.
    pub fn new(now: Instant, config: ServerConfig) -> Self {
        Self {
            control: Control::default(),
            config,
            cookie: Proof::default(),
            stage: Stage::Greeting,
            asked: now,
            deadline: now + GREETING_TIMEOUT,
        }
    }

    /// Takes the client's bytes, as far as they have arrived.
    fn listen(&mut self, now: Instant) -> Result<(), WireError> {
        while !self.control.is_closed() {
            match &mut self.stage {
                Stage::Greeting => {
                    let Some(bytes) = self.control.take(COOKIE_BYTES) else { return Ok(()) };
                    self.greet(now, &bytes)?;
                }
                Stage::Awaiting => {
                    let Some(json) = self.control.next_json(MAX_PARAMS_BYTES)? else {
                        return Ok(());
                    };
                    self.proposed(now, Params::read(&json));
                }
                Stage::Asking(run) => {
                    let Some(json) = self.control.next_json(MAX_RESULTS_BYTES)? else {
                        return Ok(());
                    };
                    let program = run.program();
                    let totals = results::read(&json, &run.agreed.plan, EndName::Near, &program);
                    let cookie = text(&self.cookie);
                    let totals = Totals { cookie, ..totals.map_err(broken)? };
                    self.control.act(Action::PeerTotals(Box::new(totals)));
                    self.send_results(now)?;
                }
                Stage::Judging(_) | Stage::Denied => return self.control.stay_small(),
                _ => {
                    let Some(state) = self.control.next_state() else { return Ok(()) };
                    self.hear(now, state)?;
                }
            }
        }
        Ok(())
    }

    fn hear(&mut self, now: Instant, state: u8) -> Result<(), WireError> {
        match (state, &self.stage) {
            (TEST_END, Stage::Running(_)) => self.end(now),
            (IPERF_DONE, Stage::Parting) => self.control.close(),
            (CLIENT_TERMINATE | IPERF_DONE, _) => {
                self.control.act(Action::Note("the client was interrupted".into()));
                self.abandon();
                self.control.close();
            }
            (other, _) => return Err(broken(format!("state {other} at the wrong time"))),
        }
        Ok(())
    }

    fn greet(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
        self.cookie = read_cookie(bytes).ok_or_else(|| broken("it has no cookie"))?;
        let peer = Host::foreign(PROGRAM);
        self.control.act(Action::Greeted { peer, secured: false, clock: None });
        self.control.send(vec![PARAM_EXCHANGE]);
        self.enter(Stage::Awaiting, now + PARAMS_TIMEOUT);
        Ok(())
    }

    /// Checks the login, if this server has users.
    fn proposed(&mut self, now: Instant, mut params: Params) {
        if self.config.users.is_none() {
            return self.allowed(now, &params);
        }
        let token = params.authtoken.take().unwrap_or_default();
        self.control.act(Action::CheckLogin(token));
        self.asked = now;
        self.enter(Stage::Judging(Box::new(params)), now + LOGIN_TIMEOUT);
    }

    /// The host has checked the login.
    fn judged(&mut self, now: Instant, user: Option<String>) {
        match (std::mem::replace(&mut self.stage, Stage::Denied), user) {
            (Stage::Judging(params), Some(name)) => {
                self.control.act(Action::Proven(Credential::User(phrase(&name))));
                self.allowed(now, &params);
            }
            (Stage::Judging(_), None) => {
                self.enter(Stage::Denied, next_denial(self.asked, now));
            }
            (other, _) => self.stage = other,
        }
    }

    /// The login, if any, permits the client to measure.
    fn allowed(&mut self, now: Instant, params: &Params) {
        match agree(params, &self.config.limits) {
            Ok(agreed) => {
                self.control.act(Action::ExpectFlows {
                    plan: Box::new(agreed.plan.clone()),
                    tickets: tickets(&agreed.plan, &self.cookie, agreed.wide),
                    flow_setup: FlowSetup::Arrive,
                });
                let peer = self.config.peer;
                let run = Run::new(agreed, peer);
                self.enter(Stage::Preparing(Box::new(run)), now + PREPARE_TIMEOUT);
            }
            Err((number, why)) => {
                self.control.act(Action::Refused(why));
                self.control.fail(number);
            }
        }
    }

    fn expecting(&mut self, now: Instant) {
        match std::mem::replace(&mut self.stage, Stage::Parting) {
            Stage::Preparing(run) => {
                self.control.send(vec![CREATE_STREAMS]);
                self.enter(Stage::Gathering(run), now + STREAMS_TIMEOUT);
            }
            other => self.stage = other,
        }
    }

    fn begin(&mut self, now: Instant) {
        match std::mem::replace(&mut self.stage, Stage::Parting) {
            Stage::Gathering(run) => {
                let lasts = self.lasts(&run.agreed);
                self.control.act(Action::Begin);
                self.control.send(vec![TEST_START, TEST_RUNNING]);
                self.enter(Stage::Running(run), now + lasts);
            }
            other => self.stage = other,
        }
    }

    /// How long payload may move before this end ends it.
    fn lasts(&self, agreed: &Agreed) -> Duration {
        let planned = agreed.lasts_s.map(|seconds| Duration::from_secs_f64(seconds) + GRACE_TIME);
        let limit = self.config.limits.duration_s.min(MAX_PLAN_S);
        planned.unwrap_or(Duration::from_secs_f64(limit))
    }

    /// The client's end condition is reached.
    fn end(&mut self, now: Instant) {
        match std::mem::replace(&mut self.stage, Stage::Parting) {
            Stage::Running(run) => {
                self.control.act(Action::Finish);
                let complete = run.is_complete();
                self.enter(Stage::Ending(run), now + RESULTS_TIMEOUT);
                if complete {
                    self.ask(now);
                }
            }
            other => self.stage = other,
        }
    }

    /// Our flows have ended, but only the client ends the test.
    fn flows_ended(&mut self, now: Instant, last: Sample) {
        if let Some(run) = self.stage.run() {
            run.ended(last);
        }
        if matches!(self.stage, Stage::Ending(_)) {
            self.ask(now);
        }
    }

    /// Asks for the client's results.
    fn ask(&mut self, now: Instant) {
        match std::mem::replace(&mut self.stage, Stage::Parting) {
            Stage::Ending(run) => {
                self.control.send(vec![EXCHANGE_RESULTS]);
                self.enter(Stage::Asking(run), now + RESULTS_TIMEOUT);
            }
            other => self.stage = other,
        }
    }

    fn send_results(&mut self, now: Instant) -> Result<(), WireError> {
        let why = "an iperf3 client reports only totals";
        self.control.act(Action::PeerReported(Known::missing(why)));
        if let Stage::Asking(run) = &self.stage {
            self.control.send_json(&run.results())?;
            self.control.send(vec![DISPLAY_RESULTS]);
        }
        self.enter(Stage::Parting, now + GOODBYE_TIMEOUT);
        Ok(())
    }

    /// The data connections can't be made, or broke.
    fn flows_failed(&mut self, why: String) {
        let busy = why.starts_with(BUSY);
        self.control.act(Action::Refused(why));
        match &self.stage {
            Stage::Preparing(_) if busy => self.control.deny(),
            Stage::Preparing(run) | Stage::Gathering(run)
                if run.agreed.plan.pin.far != Pin::None =>
            {
                self.control.fail(number::AFFINITY);
            }
            Stage::Preparing(run) if run.agreed.plan.socket.congestion.is_some() => {
                self.control.fail(number::CONGESTION);
            }
            Stage::Preparing(_) => self.control.fail(number::CREATE_STREAM),
            Stage::Gathering(_) => self.control.fail(number::STREAM_ACCEPT),
            _ => self.control.fail(number::STREAM_CLOSE),
        }
    }

    /// This end is about to exit.
    fn terminate(&mut self, why: String) {
        if self.stage.is_measuring() {
            self.control.act(Action::Note(why));
            self.control.send(vec![SERVER_TERMINATE]);
        }
        self.abandon();
        self.control.close();
    }

    /// Asks the host to forget the running measurement, if there is one.
    fn abandon(&mut self) {
        if self.stage.is_measuring() {
            self.control.act(Action::Abandon);
            self.stage = Stage::Parting;
        }
    }

    fn enter(&mut self, stage: Stage, deadline: Instant) {
        self.stage = stage;
        self.deadline = deadline;
    }
}

/// The next multiple of [`DENIAL_DELAY`] after the login was sent. However long the check takes, the time of the
/// answer reveals nothing finer.
fn next_denial(asked: Instant, now: Instant) -> Instant {
    let mut at = asked + DENIAL_DELAY;
    while at <= now {
        at += DENIAL_DELAY;
    }
    at
}

/// Prefix of the reasons for which this end has no room for a measurement now.
const BUSY: &str = "busy: ";

#[cfg(test)]
mod tests;
