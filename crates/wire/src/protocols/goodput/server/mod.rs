//! The answering side.
//!
//! ```text
//! greeting ──hello──▶ idle ──propose──▶ preparing ──accept──▶ expecting ──all flows──▶ ready
//!                      ▲                                                                │ begin
//!                      ├────────────────────both reports─────────── running ◀───────────┘
//!                      └── refuse, from either side, at any point of a measurement
//! ```
//!
//! An input that does not fit the state has no effect: it crossed a message of the client.

mod greeting;
mod plan_to_reports;
mod requests;

use std::sync::Arc;
use std::time::Instant;

use goodput_model::{Known, Plan, ReceiveHash};

use self::greeting::Greeting;
use self::requests::Requests;
use super::channel::{Channel, farewell};
use super::end::{End, receive};
use super::messages::{ClockTimes, Code, Goodbye, HexCookie, Message, Ping};
use super::running::Running;
use super::times::{GREETING_TIMEOUT, IDLE_TIMEOUT};
use crate::cookie::CookieMint;
use crate::error::WireError;
use crate::keys::AuthorizedKey;
use crate::outbox::Outbox;
use crate::session::{Action, Credential, Input, ServerConfig};
use crate::state_machine::StateMachine;

/// A conversation, seen from the answering side.
pub(super) struct ServerSession {
    channel: Channel,
    config: ServerConfig,
    cookies: CookieMint,
    state: State,
    /// When the state must have ended, or something is due in it.
    deadline: Instant,
    /// Number of the last measurement that was proposed.
    measurement: u32,
    /// How this end's card spreads received packets, for the next [`Accept`](super::messages::Accept).
    receive_hash: Option<Known<Box<ReceiveHash>>>,
    requests: Requests,
    /// The identity that the greeting proves when it is over.
    proves: Option<Credential>,
    /// The client's entry when it last proposed a plan.
    client: Option<Arc<AuthorizedKey>>,
}

/// The state of the conversation.
enum State {
    /// Both sides identify each other.
    Greeting(Greeting),
    /// Nothing is measured.
    Idle,
    /// A plan is within the limits; the host prepares for its data connections.
    Preparing { plan: Box<Plan>, cookies: Vec<HexCookie>, echo: Option<HexCookie> },
    /// A plan was accepted; its data connections are awaited.
    Expecting(Box<Plan>),
    /// All data connections are there; the client observes, then begins.
    Ready(Box<Plan>),
    /// Payload moves, or its reports are on their way.
    Running(Running),
}

impl StateMachine for ServerSession {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        match input {
            Input::Received(bytes) => receive(self, now, &bytes),
            Input::Closed => Err(self.closed()),
            Input::Expecting { data_port } => self.expecting(now, data_port),
            Input::ReceiveHash(hash) => {
                self.receive_hash = Some(hash);
                Ok(())
            }
            Input::FlowsReady => self.flows_ready(now),
            Input::FlowsFailed(why) => self.break_off(now, why),
            Input::Denied(why) => Err(WireError::NotPermitted(why)),
            Input::SettingDone(answer) => {
                self.stay(now);
                self.requests.done(now, &mut self.channel, answer)
            }
            Input::Leave(why) => {
                self.abandon();
                self.channel.leave(now, Code::Done, why);
                Ok(())
            }
            input => self.take_running(now, input),
        }
    }

    fn expire(&mut self, now: Instant) -> Result<(), WireError> {
        if now >= self.deadline {
            self.time_out(now)?;
        }
        match self.state {
            State::Greeting(_) => Ok(()),
            _ => self.channel.keep_alive(now),
        }
    }

    fn due(&self) -> Option<Instant> {
        Some(match self.state {
            State::Greeting(_) => self.deadline,
            _ => self.deadline.min(self.channel.next_timeout()),
        })
    }

    fn fail(&mut self, now: Instant, error: &WireError) {
        self.abandon();
        self.channel.fail(now, error);
    }

    fn outbox(&self) -> &Outbox {
        self.channel.outbox()
    }

    fn outbox_mut(&mut self) -> &mut Outbox {
        self.channel.outbox_mut()
    }
}

impl End for ServerSession {
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
            Message::Ping(ping) => self.answer_clock(now, &ping),
            Message::Goodbye(goodbye) => self.left(goodbye),
            Message::Propose(propose) => self.proposed(now, propose),
            Message::Refuse(refuse) => self.refused(now, refuse),
            Message::Begin(about) => self.begun(now, about.measurement),
            Message::Setting(question) => {
                self.stay(now);
                self.requests.asked(now, &mut self.channel, question)
            }
            Message::Sample(_) | Message::Finish(_) | Message::Report(_) => {
                self.hear_running(now, message)
            }
            Message::Hello(_) => Err(WireError::broken("a second hello")),
            Message::Accept(_) | Message::FlowsReady(_) | Message::SettingDone(_) => {
                Err(WireError::broken(
                    "a client can't accept, report flows ready or answer a setting request",
                ))
            }
        }
    }
}

impl ServerSession {
    pub(super) fn new(now: Instant, config: ServerConfig) -> Self {
        Self {
            channel: Channel::new(now),
            cookies: CookieMint::new(config.seed),
            config,
            state: State::Greeting(Greeting::default()),
            deadline: now + GREETING_TIMEOUT,
            measurement: 0,
            receive_hash: None,
            requests: Requests::default(),
            proves: None,
            client: None,
        }
    }

    /// Answers a question for this host's clock, unless the server keeps its clock private.
    fn answer_clock(&mut self, now: Instant, ping: &Ping) -> Result<(), WireError> {
        let (Some(number), Some(now_ns)) = (ping.ask, self.config.clock.monotonic_ns(now)) else {
            return Ok(());
        };
        // The question came before it was read, and the answer leaves after this: both bounds hold.
        let told = Some(ClockTimes { number, received_ns: now_ns, answered_ns: now_ns });
        self.channel.send(now, &Message::Ping(Ping { ask: None, told }))
    }

    /// The client says goodbye.
    fn left(&mut self, goodbye: Goodbye) -> Result<(), WireError> {
        if goodbye.code != Code::Done {
            return Err(farewell(goodbye));
        }
        self.abandon();
        self.channel.close();
        Ok(())
    }

    /// The state has lasted too long, or something is due in it.
    fn time_out(&mut self, now: Instant) -> Result<(), WireError> {
        let why = match &self.state {
            State::Greeting(greeting) => return Err(greeting.timed_out()),
            State::Idle => {
                let minutes = IDLE_TIMEOUT.as_secs() / 60;
                let why = format!("it requested nothing for {minutes} minutes");
                return Err(WireError::TimedOut(why));
            }
            State::Running(running) if running.is_overdue(now) => return self.finish_overdue(now),
            State::Preparing { .. } => "the server did not get ready in time",
            State::Expecting(_) => "not all data connections arrived in time",
            State::Ready(_) => "the client did not begin in time",
            State::Running(_) => "the measurement did not end in time",
        };
        self.abandon();
        self.break_off(now, why.into())
    }

    fn closed(&self) -> WireError {
        WireError::Closed(match &self.state {
            State::Greeting(_) => "before it greeted".into(),
            State::Idle => "without a goodbye".into(),
            _ => "in the middle of a measurement".into(),
        })
    }

    /// Tells the host to forget the running measurement, if there is one.
    fn abandon(&mut self) {
        if !matches!(self.state, State::Greeting(_) | State::Idle) {
            self.channel.act(Action::Abandon);
        }
    }
}

#[cfg(test)]
mod tests;
