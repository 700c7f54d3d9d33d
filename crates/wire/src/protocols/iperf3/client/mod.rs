//! The connecting side.
//!
//! ```text
//! greeting ──09──▶ idle ──propose──▶ proposed ──0a──▶ opening ──01 02, flows ready──▶ ready
//!                                                                                      │ begin
//! done ◀──0e── listening ◀──results both── ending ◀──finish, sends 04──── running ◀────┘
//! ```
//!
//! `ff`, `fe` and `0b` end a measurement at any point of it. A server runs one measurement per connection.

mod stage;

use std::time::{Duration, Instant};

use goodput_model::{EndName, Host, Known, Plan, Sample, Totals};

use self::stage::State;
use super::control::{Control, MAX_RESULTS_BYTES, broken};
use super::cookie::{cookie, text};
use super::counts::Counts;
use super::errors;
use super::express;
use super::results;
use super::states::{
    ACCESS_DENIED, CLIENT_TERMINATE, CREATE_STREAMS, DISPLAY_RESULTS, EXCHANGE_RESULTS, IPERF_DONE,
    PARAM_EXCHANGE, SERVER_ERROR, SERVER_TERMINATE, TEST_END, TEST_RUNNING, TEST_START,
};
use super::times::{
    BEGIN_TIMEOUT, ERROR_TIMEOUT, GRACE_TIME, GREETING_TIMEOUT, PREPARE_TIMEOUT, RESULTS_TIMEOUT,
    STREAMS_TIMEOUT,
};
use super::{PROGRAM, tickets};
use crate::check;
use crate::error::WireError;
use crate::foreign;
use crate::outbox::Outbox;
use crate::session::{Action, ClientConfig, Input, SettingRefusal};
use crate::state_machine::StateMachine;
use crate::ticket::{FlowSetup, Proof};

/// Why a second measurement isn't possible.
const ONCE: &str = "an iperf3 server runs one measurement per connection; connect again";

/// Why a server with users rejects other clients, and how to log in.
const LOGIN_REQUIRED: &str = "the server requires a login, and none was given; give one with --username and \
     --rsa-public-key (the server's public key), and the password with --password-file or $IPERF3_PASSWORD";

/// A conversation, seen from the connecting side.
pub struct ClientSession {
    control: Control,
    config: ClientConfig,
    cookie: Proof,
    state: State,
    /// When a state of limited time must have ended.
    deadline: Option<Instant>,
    /// A plan that arrived before the server answered.
    early_plan: Option<Box<Plan>>,
}

impl StateMachine for ClientSession {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        match input {
            Input::Received(bytes) => {
                self.control.receive(&bytes);
                self.listen(now)?;
            }
            Input::Closed => self.closed()?,
            Input::Propose(plan) => self.propose(now, plan)?,
            Input::FlowsReady => {
                if let State::Opening { opened, .. } = &mut self.state {
                    *opened = true;
                    self.be_ready(now);
                }
            }
            Input::FlowsFailed(_) => self.break_off(),
            Input::Begin => self.begin(now),
            Input::Sampled(sample) => {
                if let State::Running(run) = &mut self.state {
                    run.counts.sampled(&sample);
                }
            }
            Input::Finish(_) => self.finish(now),
            Input::Ended(last) => self.flows_ended(now, *last)?,
            Input::Leave(_) => {
                self.break_off();
                self.control.close();
            }
            Input::AskSetting(_) => {
                let why = "an iperf3 server has no settings to ask for".into();
                let refusal = SettingRefusal { why, ..Default::default() };
                self.control.act(Action::SettingAnswered(Err(refusal)));
            }
            // iperf3's driver reports nothing more: the session sends its own counts with the results.
            _ => {}
        }
        Ok(())
    }

    fn expire(&mut self, _now: Instant) -> Result<(), WireError> {
        match &self.state {
            State::Failing => self.failed(),
            state => Err(WireError::TimedOut(state.when().into())),
        }
    }

    fn due(&self) -> Option<Instant> {
        self.deadline
    }

    fn fail(&mut self, _now: Instant, _error: &WireError) {
        self.break_off();
        self.control.close();
    }

    fn outbox(&self) -> &Outbox {
        self.control.outbox()
    }

    fn outbox_mut(&mut self) -> &mut Outbox {
        self.control.outbox_mut()
    }
}

impl ClientSession {
    /// Sends its cookie at once.
    pub fn new(now: Instant, config: ClientConfig) -> Self {
        let cookie = cookie(&config.seed);
        let mut control = Control::default();
        control.send(cookie.0.clone());
        let deadline = Some(now + GREETING_TIMEOUT);
        Self { control, config, cookie, state: State::Greeting, deadline, early_plan: None }
    }

    /// Takes the server's bytes, as far as they have arrived.
    fn listen(&mut self, now: Instant) -> Result<(), WireError> {
        loop {
            match &mut self.state {
                State::Listening(run) => {
                    let Some(json) = self.control.next_json(MAX_RESULTS_BYTES)? else {
                        return Ok(());
                    };
                    let totals = results::read(&json, &run.plan, EndName::Far, PROGRAM);
                    self.results_received(now, totals.map_err(broken)?);
                }
                State::Failing if self.control.has_both_words() => self.failed()?,
                State::Failing => return Ok(()),
                State::Over => return self.control.stay_small(),
                _ => {
                    let waiting = self.control.waiting().to_vec();
                    let Some(state) = self.control.next_state() else { return Ok(()) };
                    self.hear(now, state, &waiting)?;
                }
            }
        }
    }

    fn hear(&mut self, now: Instant, state: u8, bytes: &[u8]) -> Result<(), WireError> {
        match (state, &mut self.state) {
            (ACCESS_DENIED, _) => {
                self.refuse("it is busy with another test; try again later".into());
            }
            (SERVER_ERROR, _) => self.enter(State::Failing, Some(now + ERROR_TIMEOUT)),
            (SERVER_TERMINATE, _) => self.refuse("the server was interrupted".into()),
            (PARAM_EXCHANGE, State::Greeting) => self.greeted(now)?,
            (CREATE_STREAMS, State::Proposed(_)) => self.create_streams(now),
            (TEST_START, State::Opening { .. }) => {}
            (TEST_RUNNING, State::Opening { running, .. }) => {
                *running = true;
                self.be_ready(now);
            }
            // The server has closed its streams before (iperf_server_api.c, `TEST_END`).
            (EXCHANGE_RESULTS, State::Ending { asked, .. }) => {
                *asked = true;
                self.control.act(Action::PeerStopped);
                self.send_results()?;
            }
            (EXCHANGE_RESULTS, State::Running(_)) => self.ended_by_server(now)?,
            (DISPLAY_RESULTS, State::ResultsSent) => self.done(),
            (_, State::Greeting) => {
                let seems = foreign::server(bytes);
                return Err(broken(format!("it is not an iperf3 server: it seems to be {seems}")));
            }
            (other, _) => return Err(broken(format!("state {other} at the wrong time"))),
        }
        Ok(())
    }

    fn greeted(&mut self, now: Instant) -> Result<(), WireError> {
        let peer = Host::foreign(PROGRAM);
        self.control.act(Action::Greeted { peer, secured: false, clock: None });
        self.enter(State::Idle, None);
        match self.early_plan.take() {
            Some(plan) => self.propose(now, plan),
            None => Ok(()),
        }
    }

    fn propose(&mut self, now: Instant, plan: Box<Plan>) -> Result<(), WireError> {
        let mut params = match express::checked(&plan) {
            Ok(params) => params,
            Err(why) => {
                self.control.act(Action::Refused(why));
                return Ok(());
            }
        };
        match self.state {
            State::Greeting => self.early_plan = Some(plan),
            State::Idle => {
                if let Some(login) = &self.config.login {
                    let unix_s = self.config.clock.unix_us(now) / 1_000_000;
                    let token = crate::login::token(login, unix_s);
                    params.authtoken = Some(token.map_err(WireError::Local)?);
                }
                self.control.send_json(&params)?;
                self.enter(State::Proposed(plan), Some(now + PREPARE_TIMEOUT));
            }
            _ => self.control.act(Action::Refused(ONCE.into())),
        }
        Ok(())
    }

    fn create_streams(&mut self, now: Instant) {
        let State::Proposed(plan) = &self.state else { return };
        let plan = plan.clone();
        // As `express` requested.
        let tickets = tickets(&plan, &self.cookie, true);
        self.control.act(Action::OpenFlows {
            tickets,
            flow_setup: FlowSetup::Connect { port: None, apart: 0 },
        });
        let opening = State::Opening { plan, opened: false, running: false };
        self.enter(opening, Some(now + STREAMS_TIMEOUT));
    }

    fn be_ready(&mut self, now: Instant) {
        if let State::Opening { plan, opened: true, running: true } = &self.state {
            let plan = plan.clone();
            self.control.act(Action::PeerReady);
            self.enter(State::Ready(plan), Some(now + BEGIN_TIMEOUT));
        }
    }

    fn begin(&mut self, now: Instant) {
        let State::Ready(plan) = &self.state else { return };
        let run = stage::Run::new(plan.clone(), Counts::new(EndName::Near, plan.omit_s));
        let longest = check::duration_s(&run.plan).map(Duration::from_secs_f64);
        self.control.act(Action::Begin);
        self.enter(State::Running(run), longest.map(|longest| now + longest + GRACE_TIME));
    }

    /// The driver ends the measurement; the server stops when it learns of this.
    fn finish(&mut self, now: Instant) {
        if matches!(self.state, State::Running(_)) {
            self.end(now, false);
            self.control.send(vec![TEST_END]);
        }
    }

    /// Our flows have ended. If they ended on their own, this end must announce the end of the test.
    fn flows_ended(&mut self, now: Instant, last: Sample) -> Result<(), WireError> {
        if let State::Running(run) | State::Ending { run, .. } = &mut self.state {
            run.counts.ended(last);
        }
        self.finish(now);
        self.send_results()
    }

    /// The server ends the test because of its own limit.
    fn ended_by_server(&mut self, now: Instant) -> Result<(), WireError> {
        self.control.act(Action::PeerStopped);
        self.control.act(Action::Note("the server ended the measurement".into()));
        self.end(now, true);
        self.send_results()
    }

    fn end(&mut self, now: Instant, asked: bool) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Running(run) => {
                self.control.act(Action::Finish);
                self.enter(State::Ending { run, asked }, Some(now + RESULTS_TIMEOUT));
            }
            other => self.state = other,
        }
    }

    /// Called once the server asks for our results and our flows have ended.
    fn send_results(&mut self) -> Result<(), WireError> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Ending { run, asked: true } if run.counts.is_complete() => {
                self.control.send_json(&run.counts.results(&run.plan, None))?;
                self.state = State::Listening(run);
            }
            other => self.state = other,
        }
        Ok(())
    }

    fn results_received(&mut self, now: Instant, totals: Totals) {
        let totals = Totals { cookie: text(&self.cookie), ..totals };
        self.control.act(Action::PeerTotals(Box::new(totals)));
        self.enter(State::ResultsSent, Some(now + RESULTS_TIMEOUT));
    }

    /// Both have the other's results.
    fn done(&mut self) {
        let why = "an iperf3 server reports only totals";
        self.control.act(Action::PeerReported(Known::missing(why)));
        self.control.send(vec![IPERF_DONE]);
        self.enter(State::Over, None);
        self.control.close();
    }

    /// The words after an error have arrived, or won't.
    fn failed(&mut self) -> Result<(), WireError> {
        let words = self.control.error_words();
        let why = words.number.map_or_else(
            || "it reports a failure without a reason".into(),
            |number| errors::words(number, words.errno),
        );
        match words.number {
            Some(errors::number::AUTH) if self.config.login.is_none() => {
                Err(WireError::NotPermitted(LOGIN_REQUIRED.into()))
            }
            Some(errors::number::AUTH) => Err(WireError::NotPermitted(why)),
            _ => {
                self.refuse(why);
                Ok(())
            }
        }
    }

    /// The server no longer wants this measurement.
    fn refuse(&mut self, why: String) {
        self.control.act(Action::Refused(why));
        self.enter(State::Over, None);
        self.control.close();
    }

    /// Informs the server that the measurement is aborted, if there is one.
    fn break_off(&mut self) {
        if self.state.is_measuring() {
            self.control.send(vec![CLIENT_TERMINATE]);
            self.enter(State::Over, None);
        }
    }

    fn closed(&mut self) -> Result<(), WireError> {
        match &self.state {
            State::Over => {
                self.control.close();
                Ok(())
            }
            // Version 3.12 omits the second word of a failed authentication, and 3.21 both words.
            State::Failing => self.failed(),
            State::Proposed(_) if self.config.login.is_some() => Err(WireError::NotPermitted(
                "it closed the connection after the user name and password".into(),
            )),
            state => Err(WireError::Closed(state.when().into())),
        }
    }

    fn enter(&mut self, state: State, deadline: Option<Instant>) {
        self.state = state;
        self.deadline = deadline;
    }
}

#[cfg(test)]
mod tests;
