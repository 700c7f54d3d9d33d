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
mod measurements;
mod requests;

use std::sync::Arc;
use std::time::Instant;

use self::greeting::{Greeted, Greeting};
use self::measurements::ServerMeasurements;
use self::requests::Requests;
use super::channel::{Channel, farewell};
use super::end::{End, receive};
use super::measurements::Stage;
use super::messages::{ClockTimes, Code, Goodbye, Message, Ping, Propose};
use crate::error::WireError;
use crate::keys::AuthorizedKey;
use crate::outbox::Outbox;
use crate::session::{Input, Limits, ServerConfig};
use crate::state_machine::StateMachine;

/// A conversation, seen from the answering side.
pub(super) struct ServerSession {
    channel: Channel,
    config: ServerConfig,
    /// Until both sides have identified each other.
    greeting: Option<Greeting>,
    measurements: ServerMeasurements,
    requests: Requests,
    /// The client's entry when it last proposed a plan.
    client: Option<Arc<AuthorizedKey>>,
}

impl StateMachine for ServerSession {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        let limits = self.limits();
        let Self { channel, measurements, requests, .. } = self;
        match input {
            Input::Received(bytes) => receive(self, now, &bytes),
            Input::Closed => Err(self.closed()),
            Input::Expecting { data_port } => {
                measurements.expecting(now, channel, data_port, &limits)
            }
            Input::ReceiveHash(hash) => {
                measurements.set_receive_hash(hash);
                Ok(())
            }
            Input::Capture(capture) => {
                measurements.set_capture(capture);
                Ok(())
            }
            Input::FlowsReady => measurements.flows_ready(now, channel),
            Input::FlowsFailed(why) => measurements.common.break_off(now, channel, why),
            Input::Denied(why) => Err(WireError::NotPermitted(why)),
            Input::SettingDone(answer) => {
                measurements.common.stay(now);
                requests.done(now, channel, answer)
            }
            Input::Leave(why) => {
                measurements.abandon(channel);
                channel.leave(now, Code::Done, why);
                Ok(())
            }
            input => measurements.common.take(now, channel, input),
        }
    }

    fn expire(&mut self, now: Instant) -> Result<(), WireError> {
        match &self.greeting {
            Some(greeting) if now >= greeting.due() => Err(greeting.timed_out()),
            Some(_) => Ok(()),
            None => {
                self.measurements.expire(now, &mut self.channel)?;
                self.channel.keep_alive(now)
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        match &self.greeting {
            Some(greeting) => Some(greeting.due()),
            None => {
                let due = self.measurements.common.due();
                Some(self.channel.next_timeout()).into_iter().chain(due).min()
            }
        }
    }

    fn fail(&mut self, now: Instant, error: &WireError) {
        self.measurements.abandon(&mut self.channel);
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
        self.greeting.is_some()
    }

    fn greet(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
        let Some(greeting) = &mut self.greeting else { return Ok(()) };
        greeting.take(now, &mut self.channel, &self.config, bytes)
    }

    fn hear_greeting(&mut self, now: Instant, message: Message) -> Result<(), WireError> {
        let Some(greeting) = &mut self.greeting else { return Ok(()) };
        let greeted = greeting.hear(now, &mut self.channel, &self.config, message)?;
        let Greeted { proven, client } = greeted;
        self.requests.permit(proven);
        self.client = client;
        self.greeting = None;
        self.measurements.common.be_idle(now, &mut self.channel);
        Ok(())
    }

    fn hear(&mut self, now: Instant, message: Message) -> Result<(), WireError> {
        let limits = self.limits();
        let Self { channel, measurements, requests, .. } = self;
        match message {
            Message::Ping(ping) => self.answer_clock(now, &ping),
            Message::Goodbye(goodbye) => self.left(goodbye),
            Message::Propose(propose) => self.proposed(now, propose),
            Message::Refuse(refuse) => measurements.refused(now, channel, refuse),
            Message::Begin(about) => measurements.begun(now, channel, about.measurement, &limits),
            Message::Setting(question) => {
                measurements.common.stay(now);
                requests.asked(now, channel, question)
            }
            Message::Sample(_) | Message::Finish(_) | Message::Report(_) => {
                measurements.common.hear(now, channel, message)
            }
            Message::Hello(_) => Err(WireError::broken("a second hello")),
            Message::Accept(_)
            | Message::FlowsReady(_)
            | Message::SettingDone(_)
            | Message::Captured(_) => Err(WireError::broken(
                "a client can't accept, report flows ready, answer a setting request or capture",
            )),
        }
    }
}

impl ServerSession {
    pub(super) fn new(now: Instant, config: ServerConfig) -> Self {
        Self {
            channel: Channel::new(now),
            measurements: ServerMeasurements::new(config.seed),
            config,
            greeting: Some(Greeting::new(now)),
            requests: Requests::default(),
            client: None,
        }
    }

    fn proposed(&mut self, now: Instant, propose: Propose) -> Result<(), WireError> {
        self.measurements.may_propose(propose.measurement)?;
        self.renew()?;
        let limits = self.limits();
        self.measurements.proposed(now, &mut self.channel, propose, &limits)
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
        self.measurements.abandon(&mut self.channel);
        self.channel.close();
        Ok(())
    }

    fn closed(&self) -> WireError {
        let when = match (&self.greeting, self.measurements.common.stage()) {
            (Some(_), _) => "before it greeted",
            (None, Stage::Idle) => "without a goodbye",
            (None, _) => "in the middle of a measurement",
        };
        WireError::Closed(when.into())
    }
}

#[cfg(test)]
mod tests;
