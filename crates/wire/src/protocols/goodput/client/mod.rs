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
mod measurements;
mod questions;

use std::time::Instant;

use self::greeting::Greeting;
use self::measurements::{ClientMeasurements, unfit};
use self::questions::Questions;
use super::channel::{Channel, farewell};
use super::end::{End, receive};
use super::messages::{Code, Message, Ping};
use crate::clock_questions::ClockQuestions;
use crate::error::WireError;
use crate::outbox::Outbox;
use crate::session::{Action, ClientConfig, HostClock, Input};
use crate::state_machine::StateMachine;
use goodput_model::Plan;

/// A conversation, seen from the connecting side.
pub(super) struct ClientSession {
    channel: Channel,
    clock: HostClock,
    /// Until both sides have identified each other.
    greeting: Option<Greeting>,
    /// A plan that arrived before the greeting was over.
    early_plan: Option<Box<Plan>>,
    measurements: ClientMeasurements,
    questions: Questions,
    clock_questions: ClockQuestions,
}

impl StateMachine for ClientSession {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        let Self { channel, measurements, questions, greeting, .. } = self;
        match input {
            Input::Received(bytes) => receive(self, now, &bytes),
            Input::Closed => Err(match greeting {
                Some(greeting) => greeting.closed(channel),
                None => measurements.closed(),
            }),
            Input::Propose(plan) => self.propose(now, plan),
            Input::FlowsReady => {
                measurements.flows_ready(now, channel);
                Ok(())
            }
            Input::FlowsFailed(why) => measurements.common.break_off(now, channel, why),
            Input::Begin => measurements.begin(now, channel),
            Input::AskSetting(request) => questions.ask(now, channel, request, greeting.is_none()),
            Input::AskClock => self.ask_clock(now),
            Input::Leave(why) => {
                channel.leave(now, Code::Done, why);
                Ok(())
            }
            input => measurements.common.take(now, channel, input),
        }
    }

    fn expire(&mut self, now: Instant) -> Result<(), WireError> {
        match &self.greeting {
            Some(greeting) if now >= greeting.due() => return Err(greeting.timed_out()),
            Some(_) => {}
            None => self.measurements.expire(now, &mut self.channel)?,
        }
        self.questions.expire(now, &mut self.channel)?;
        match self.greeting {
            Some(_) => Ok(()),
            None => self.channel.keep_alive(now),
        }
    }

    fn due(&self) -> Option<Instant> {
        let (end, alive) = match &self.greeting {
            Some(greeting) => (Some(greeting.due()), None),
            None => (self.measurements.common.due(), Some(self.channel.next_timeout())),
        };
        [end, alive, self.questions.next_timeout()].into_iter().flatten().min()
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
        self.greeting.is_some()
    }

    fn greet(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
        let Some(greeting) = &mut self.greeting else { return Ok(()) };
        greeting.take(now, &mut self.channel, bytes)
    }

    fn hear_greeting(&mut self, now: Instant, message: Message) -> Result<(), WireError> {
        let Some(greeting) = &mut self.greeting else { return Ok(()) };
        greeting.hear(now, &mut self.channel, message)?;
        let knows = greeting.knows;
        self.greeting = None;
        self.questions.greeted(now, &mut self.channel, knows)?;
        match self.early_plan.take() {
            Some(plan) => self.measurements.propose(now, &mut self.channel, plan),
            None => Ok(()),
        }
    }

    fn hear(&mut self, now: Instant, message: Message) -> Result<(), WireError> {
        let Self { channel, measurements, questions, .. } = self;
        match message {
            Message::Ping(ping) => {
                self.take_clock_times(now, ping);
                Ok(())
            }
            Message::Goodbye(goodbye) => Err(farewell(goodbye)),
            Message::SettingDone(answer) => questions.answered(now, channel, answer),
            Message::Accept(accept) => measurements.accepted(now, channel, accept),
            Message::Refuse(refuse) => measurements.refused(now, channel, refuse),
            Message::FlowsReady(about) => measurements.peer_ready(now, channel, about.measurement),
            Message::Sample(_) | Message::Finish(_) | Message::Report(_) | Message::Captured(_) => {
                measurements.common.hear(now, channel, message)
            }
            Message::Hello(_) => Err(WireError::broken("a second hello")),
            Message::Propose(_) | Message::Begin(_) | Message::Setting(_) => {
                Err(WireError::broken("a server can't propose, begin or ask for a setting"))
            }
        }
    }
}

impl ClientSession {
    /// Opens the conversation.
    pub(super) fn new(now: Instant, config: ClientConfig) -> Self {
        let mut channel = Channel::new(now);
        let clock = config.clock;
        let greeting = Some(Greeting::new(now, &mut channel, config));
        Self {
            channel,
            clock,
            greeting,
            early_plan: None,
            measurements: ClientMeasurements::new(),
            questions: Questions::default(),
            clock_questions: ClockQuestions::default(),
        }
    }

    /// Proposes a plan, as soon as both ends have greeted.
    fn propose(&mut self, now: Instant, plan: Box<Plan>) -> Result<(), WireError> {
        let is_busy = self.early_plan.is_some() || !self.measurements.common.is_idle();
        let busy = || is_busy.then(|| "another measurement is running".into());
        if let Some(why) = unfit(&plan).or_else(busy) {
            self.channel.act(Action::Refused(why));
            return Ok(());
        }
        if self.greeting.is_some() {
            self.early_plan = Some(plan);
            return Ok(());
        }
        self.measurements.propose(now, &mut self.channel, plan)
    }

    /// Asks for the server's clock, once it has greeted.
    fn ask_clock(&mut self, now: Instant) -> Result<(), WireError> {
        let Some(sent_ns) = self.clock.monotonic_ns(now) else { return Ok(()) };
        if self.greeting.is_some() {
            return Ok(());
        }
        let ask = Some(self.clock_questions.ask(sent_ns));
        self.channel.send(now, &Message::Ping(Ping { ask, told: None }))
    }

    /// The server may have reported its clock.
    fn take_clock_times(&mut self, now: Instant, ping: Ping) {
        let (Some(told), Some(back_ns)) = (ping.told, self.clock.monotonic_ns(now)) else {
            return;
        };
        let times = (told.received_ns, told.answered_ns);
        let exchange = self.clock_questions.compared(told.number, times, back_ns);
        exchange.into_iter().for_each(|exchange| self.channel.act(Action::ClockCompared(exchange)));
    }
}

#[cfg(test)]
mod tests;
