//! The client's greeting: preamble, handshake, hello; and a guess at a peer that doesn't answer it.

use std::time::Instant;

use super::super::PROTOCOL_VERSION;
use super::super::channel::{Channel, farewell};
use super::super::messages::{Hello, Message};
use super::super::preamble::{Opening, PREAMBLE_BYTES, Role};
use super::super::secure::{
    self, ClientHandshake, Joined, MAX_HANDSHAKE_RECORD_BYTES, NOT_THIS_SERVER,
};
use super::super::times::{FOREIGN_TAIL_TIME, GREETING_TIMEOUT};
use super::questions::Questions;
use super::{ClientSession, State};
use crate::clock_questions::ClockQuestions;
use crate::error::WireError;
use crate::foreign;
use crate::frame::Decoder;
use crate::session::{Action, ClientConfig, ClockOffset};

/// At most this many bytes of a foreign greeting are examined.
const FOREIGN_BYTES: usize = 256;

/// Why a server closes without sending a byte, and what to do.
const TURNED_AWAY: &str = "it may deny your network (--allow, --deny), or be full, or the port belongs to another \
                           program; check the port, ask for the server's log, or try again later";

/// The same for a client that shows a key: a server that doesn't know this role closes as well.
const TURNED_AWAY_WITH_KEY: &str = "it may deny your network (--allow, --deny), or be full, or be too old for keys, \
                                    or the port belongs to another program; check the port, ask for the server's \
                                    log, or try --no-key";

/// How far the greeting has come.
pub(super) enum Greeting {
    /// The server's preamble is awaited; some of its bytes may be there.
    Preamble { seen: Vec<u8>, begun: Option<ClientHandshake> },
    /// The server's part of the handshake is awaited.
    Handshake { begun: ClientHandshake, records: Decoder<2> },
    /// The server's hello is awaited.
    Hello,
    /// The server has no token or knows no keys: wait for its goodbye and believe nothing else.
    Unsecured,
    /// This end could not even begin; the next call that can return the error reports it.
    Failed(WireError),
}

impl Greeting {
    /// The error if nothing more arrived in time.
    pub(super) fn timed_out(&self) -> WireError {
        match self {
            Self::Preamble { seen, .. } if seen.is_empty() => WireError::TimedOut(format!(
                "it accepted the connection and said nothing for {} s; another program may use this port, or \
                 the server is busy; check the port",
                GREETING_TIMEOUT.as_secs()
            )),
            Self::Preamble { seen, .. } => seems(foreign::server(seen)),
            Self::Handshake { .. } | Self::Hello | Self::Unsecured => {
                WireError::TimedOut(format!("no greeting within {} s", GREETING_TIMEOUT.as_secs()))
            }
            Self::Failed(error) => error.clone(),
        }
    }

    /// The error if the server closed the connection.
    pub(super) fn closed(&self, channel: &Channel) -> WireError {
        match self {
            Self::Failed(error) => error.clone(),
            Self::Preamble { seen, begun } if seen.is_empty() => {
                let shows_key = matches!(begun, Some(ClientHandshake::Key(_)));
                let likely = if shows_key { TURNED_AWAY_WITH_KEY } else { TURNED_AWAY };
                WireError::Unanswered { likely }
            }
            Self::Preamble { seen, .. } if !is_start_of_ours(seen) => seems(foreign::server(seen)),
            Self::Hello if !channel.is_inside() => WireError::Closed("before it greeted".into()),
            _ => WireError::Closed("in the middle of its greeting".into()),
        }
    }
}

fn seems(seems: String) -> WireError {
    WireError::Foreign { seems }
}

fn is_start_of_ours(seen: &[u8]) -> bool {
    Opening::read(seen) != Opening::Foreign
}

impl ClientSession {
    /// Opens the conversation.
    pub(in super::super) fn new(now: Instant, config: ClientConfig) -> Self {
        let mut session = Self {
            channel: Channel::new(now),
            config,
            state: State::Idle,
            deadline: None,
            measurement: 0,
            early_plan: None,
            questions: Questions::default(),
            clock_questions: ClockQuestions::default(),
            asked: now,
        };
        let (greeting, deadline) = match session.open(now) {
            Ok(begun) => (Greeting::Preamble { seen: Vec::new(), begun }, now + GREETING_TIMEOUT),
            Err(error) => (Greeting::Failed(error), now),
        };
        session.enter(State::Greeting(greeting), Some(deadline));
        session
    }

    fn open(&mut self, now: Instant) -> Result<Option<ClientHandshake>, WireError> {
        let Some((begun, record)) = secure::begin(&self.config)? else {
            self.channel.send_bytes(now, Role::Control.preamble().to_vec());
            self.say_hello(now)?;
            return Ok(None);
        };
        let opening = [&begun.role().preamble()[..], &record].concat();
        self.channel.send_bytes(now, opening);
        Ok(Some(begun))
    }

    fn say_hello(&mut self, now: Instant) -> Result<(), WireError> {
        let unable = |cause| WireError::Local(format!("can't describe this host: {cause}"));
        let hello = Hello::of(&self.config.host, self.config.clock.unix_us(now)).map_err(unable)?;
        self.asked = now;
        self.channel.send_provoking(now, &Message::Hello(hello))
    }

    /// Takes bytes of the greeting, up to the hello; bytes of messages go to the channel.
    pub(super) fn take_greeting(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
        let State::Greeting(greeting) = &mut self.state else { return Ok(()) };
        match greeting {
            Greeting::Preamble { seen, .. } => {
                seen.extend_from_slice(bytes);
                self.read_preamble(now)
            }
            Greeting::Handshake { records, .. } => {
                records.push(bytes);
                self.read_handshake(now)
            }
            Greeting::Hello | Greeting::Unsecured => self.channel.receive(now, bytes),
            Greeting::Failed(error) => Err(error.clone()),
        }
    }

    fn read_preamble(&mut self, now: Instant) -> Result<(), WireError> {
        let State::Greeting(Greeting::Preamble { seen, begun }) = &mut self.state else {
            return Ok(());
        };
        match (Opening::read(seen), begun.as_ref().map(ClientHandshake::role)) {
            (Opening::Incomplete, _) => Ok(()),
            (Opening::Foreign, _) => self.look_at_foreign(now),
            (Opening::Control, _)
            | (Opening::Secured, Some(Role::Secured))
            | (Opening::Keyed, Some(Role::Keyed)) => {
                let (seen, begun) = (std::mem::take(seen), begun.take());
                self.join(now, Opening::read(&seen), begun, &seen[PREAMBLE_BYTES..])
            }
            _ => Err(WireError::broken("its preamble does not match this end's")),
        }
    }

    /// The server speaks our protocol, and `rest` is the input after its preamble.
    fn join(
        &mut self,
        now: Instant,
        opening: Opening,
        begun: Option<ClientHandshake>,
        rest: &[u8],
    ) -> Result<(), WireError> {
        let next = match (opening, begun) {
            (Opening::Secured | Opening::Keyed, Some(begun)) => {
                let records = Decoder::new(MAX_HANDSHAKE_RECORD_BYTES);
                Greeting::Handshake { begun, records }
            }
            (_, None) => {
                self.channel.talk_plainly();
                Greeting::Hello
            }
            (_, Some(_)) => Greeting::Unsecured,
        };
        self.state = State::Greeting(next);
        self.take_greeting(now, rest)
    }

    /// Waits a little for the rest of a foreign greeting, so that it can be named.
    fn look_at_foreign(&mut self, now: Instant) -> Result<(), WireError> {
        let State::Greeting(Greeting::Preamble { seen, .. }) = &mut self.state else {
            return Ok(());
        };
        if seen.len() >= FOREIGN_BYTES || seen.contains(&b'\n') {
            return Err(seems(foreign::server(seen)));
        }
        let until = now + FOREIGN_TAIL_TIME;
        self.deadline = Some(self.deadline.map_or(until, |deadline| deadline.min(until)));
        Ok(())
    }

    fn read_handshake(&mut self, now: Instant) -> Result<(), WireError> {
        let State::Greeting(Greeting::Handshake { records, .. }) = &mut self.state else {
            return Ok(());
        };
        let Some(record) = records.next_body().map_err(WireError::broken)? else { return Ok(()) };
        let done = std::mem::replace(&mut self.state, State::Greeting(Greeting::Hello));
        let State::Greeting(Greeting::Handshake { begun, records }) = done else { return Ok(()) };
        match begun.finish(&record) {
            Ok(joined) => self.go_dark(now, joined),
            Err(error) => {
                self.channel.send_bytes(now, NOT_THIS_SERVER.to_vec());
                return Err(error);
            }
        }
        self.say_hello(now)?;
        self.channel.receive(now, &records.into_rest())
    }

    /// Ends the handshake; everything after this is encrypted.
    fn go_dark(&mut self, now: Instant, joined: Joined) {
        if !joined.last.is_empty() {
            self.channel.send_bytes(now, joined.last);
        }
        if let Some(key) = joined.server {
            self.channel.act(Action::ServerShowed(key));
        }
        self.channel.encrypt(joined.tunnel);
    }

    /// Takes a message before the greeting is over.
    pub(super) fn take_greeting_message(
        &mut self,
        now: Instant,
        message: Message,
    ) -> Result<(), WireError> {
        let unsecured = matches!(self.state, State::Greeting(Greeting::Unsecured));
        match message {
            Message::Goodbye(goodbye) => Err(farewell(goodbye)),
            Message::Hello(hello) if !unsecured => self.greeted(now, hello),
            _ => Err(WireError::broken("its first message is not a hello")),
        }
    }

    fn greeted(&mut self, now: Instant, hello: Hello) -> Result<(), WireError> {
        if hello.version != PROTOCOL_VERSION {
            return Err(WireError::Version { ours: PROTOCOL_VERSION, theirs: hello.version });
        }
        let clock = hello.unix_us.map(|theirs| self.clock_offset(now, theirs));
        let inflates = hello.inflates;
        let peer = hello.host().map_err(WireError::broken)?;
        let secured = self.channel.is_secured();
        self.channel.greeted(inflates);
        self.enter(State::Idle, None);
        self.channel.act(Action::Greeted { peer, secured, clock });
        self.questions.greeted(now, &mut self.channel)?;
        match self.early_plan.take() {
            Some(plan) => self.propose(now, plan),
            None => Ok(()),
        }
    }

    fn clock_offset(&self, now: Instant, theirs: u64) -> ClockOffset {
        let half = now.saturating_duration_since(self.asked).as_secs_f64() * 1e6 / 2.0;
        let ours = self.config.clock.unix_us(self.asked) as f64 + half;
        ClockOffset { ahead_us: theirs as f64 - ours, uncertainty_us: half }
    }
}
