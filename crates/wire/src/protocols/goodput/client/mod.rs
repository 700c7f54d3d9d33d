//! The connecting side.
//!
//! ```text
//! greeting ──hello──▶ idle ──propose──▶ proposed ──accept──▶ opening ──both ready──▶ ready
//!                      ▲                                                               │ begin
//!                      ├──────────────both reports──────────── running ◀───────────────┘
//!                      └── refuse, from either side, at any point of a measurement
//! ```
//!
//! An input that does not fit the state has no effect: it crossed a message of the server.

mod greeting;
mod plan_to_reports;
mod questions;

use std::time::Instant;

use self::greeting::Greeting;
use self::questions::Questions;
use super::channel::{Channel, farewell};
use super::end::{End, receive};
use super::messages::{Code, Message, Ping};
use super::running::Running;
use crate::clock_questions::ClockQuestions;
use crate::error::WireError;
use crate::outbox::Outbox;
use crate::session::{Action, ClientConfig, Input};
use crate::state_machine::StateMachine;
use goodput_model::Plan;

/// A conversation, seen from the connecting side.
pub(super) struct ClientSession {
    channel: Channel,
    config: ClientConfig,
    state: State,
    /// When a state of limited time must have ended.
    deadline: Option<Instant>,
    /// Number of the last measurement that was proposed.
    measurement: u32,
    /// A plan that arrived before the greeting was over.
    early_plan: Option<Box<Plan>>,
    questions: Questions,
    clock_questions: ClockQuestions,
    /// When this end sent its hello.
    asked: Instant,
}

/// The state of the conversation.
enum State {
    /// Both sides identify each other.
    Greeting(Greeting),
    /// Nothing is measured.
    Idle,
    /// The server considers a plan.
    Proposed(Box<Plan>),
    /// Both sides set the data connections up.
    Opening { terms: Terms, near_ready: bool, far_ready: bool },
    /// Both sides are ready; the driver observes, then begins.
    Ready(Terms),
    /// Payload moves, or its reports are on their way.
    Running(Running),
}

/// The server's terms when it accepted a plan.
#[derive(Clone, Default)]
struct Terms {
    /// Seconds that payload may move.
    longest_s: f64,
    /// What the user should know; reported when the measurement begins.
    note: Option<String>,
}

impl StateMachine for ClientSession {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        match input {
            Input::Received(bytes) => receive(self, now, &bytes),
            Input::Closed => Err(self.closed()),
            Input::Propose(plan) => self.propose(now, plan),
            Input::FlowsReady => self.flows_ready(now),
            Input::FlowsFailed(why) => self.break_off(now, why),
            Input::Begin => self.begin(now),
            Input::AskSetting(request) => {
                let greeted = !matches!(self.state, State::Greeting(_));
                self.questions.ask(now, &mut self.channel, request, greeted)
            }
            Input::AskClock => self.ask_clock(now),
            Input::Leave(why) => {
                self.channel.leave(now, Code::Done, why);
                Ok(())
            }
            input => self.take_running(now, input),
        }
    }

    fn expire(&mut self, now: Instant) -> Result<(), WireError> {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.time_out(now)?;
        }
        self.questions.expire(now, &mut self.channel)?;
        match self.state {
            State::Greeting(_) => Ok(()),
            _ => self.channel.keep_alive(now),
        }
    }

    fn due(&self) -> Option<Instant> {
        let alive = match self.state {
            State::Greeting(_) => None,
            _ => Some(self.channel.next_timeout()),
        };
        [self.deadline, alive, self.questions.next_timeout()].into_iter().flatten().min()
    }

    fn fail(&mut self, now: Instant, error: &WireError) {
        self.channel.fail(now, error);
    }

    fn outbox(&self) -> &Outbox {
        self.channel.outbox()
    }

    fn outbox_mut(&mut self) -> &mut Outbox {
        self.channel.outbox_mut()
    }
}

impl End for ClientSession {
    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    fn is_greeting(&self) -> bool {
        matches!(self.state, State::Greeting(_))
    }

    fn greet(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
        self.take_greeting(now, bytes)
    }

    fn hear_greeting(&mut self, now: Instant, message: Message) -> Result<(), WireError> {
        self.take_greeting_message(now, message)
    }

    fn hear(&mut self, now: Instant, message: Message) -> Result<(), WireError> {
        match message {
            Message::Ping(ping) => {
                self.take_clock_times(now, ping);
                Ok(())
            }
            Message::Goodbye(goodbye) => Err(farewell(goodbye)),
            Message::SettingDone(answer) => self.questions.answered(now, &mut self.channel, answer),
            Message::Accept(accept) => self.accepted(now, accept),
            Message::Refuse(refuse) => self.refused(refuse),
            Message::FlowsReady(about) => self.peer_ready(now, about.measurement),
            Message::Sample(_) | Message::Finish(_) | Message::Report(_) => {
                self.hear_running(now, message)
            }
            Message::Hello(_) => Err(WireError::broken("a second hello")),
            Message::Propose(_) | Message::Begin(_) | Message::Setting(_) => {
                Err(WireError::broken("a server can't propose, begin or ask for a setting"))
            }
        }
    }
}

impl ClientSession {
    /// Asks for the server's clock, once it has greeted.
    fn ask_clock(&mut self, now: Instant) -> Result<(), WireError> {
        let Some(sent_ns) = self.config.clock.monotonic_ns(now) else { return Ok(()) };
        if matches!(self.state, State::Greeting(_)) {
            return Ok(());
        }
        let ask = Some(self.clock_questions.ask(sent_ns));
        self.channel.send(now, &Message::Ping(Ping { ask, told: None }))
    }

    /// The server may have reported its clock.
    fn take_clock_times(&mut self, now: Instant, ping: Ping) {
        let (Some(told), Some(back_ns)) = (ping.told, self.config.clock.monotonic_ns(now)) else {
            return;
        };
        let times = (told.received_ns, told.answered_ns);
        let exchange = self.clock_questions.compared(told.number, times, back_ns);
        exchange.into_iter().for_each(|exchange| self.channel.act(Action::ClockCompared(exchange)));
    }

    /// Enters another state, which must have ended by `deadline`.
    fn enter(&mut self, state: State, deadline: Option<Instant>) {
        self.state = state;
        self.deadline = deadline;
    }

    /// The state has lasted too long.
    fn time_out(&mut self, now: Instant) -> Result<(), WireError> {
        let why = match &self.state {
            State::Greeting(greeting) => return Err(greeting.timed_out()),
            State::Idle => return Ok(()),
            State::Proposed(_) => {
                return Err(WireError::TimedOut("it neither accepts nor refuses a plan".into()));
            }
            State::Opening { near_ready: false, .. } => {
                "the data connections were not made in time"
            }
            State::Opening { .. } => "the far end did not see all data connections in time",
            State::Ready(_) => "this end did not begin in time",
            State::Running(_) => "the measurement did not end in time",
        };
        self.channel.act(Action::Refused(why.into()));
        self.break_off(now, why.into())
    }

    fn closed(&self) -> WireError {
        let when = match &self.state {
            State::Greeting(greeting) => return greeting.closed(&self.channel),
            State::Idle => "while nothing was measured",
            State::Proposed(_) | State::Opening { .. } | State::Ready(_) => {
                "before the measurement began"
            }
            State::Running(_) => "in the middle of the measurement",
        };
        WireError::Closed(when.into())
    }
}

#[cfg(test)]
mod tests;
