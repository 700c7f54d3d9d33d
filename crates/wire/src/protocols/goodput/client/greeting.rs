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
use super::questions::Knows;
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
enum Stage {
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

/// The greeting, seen from the connecting side.
pub(super) struct Greeting {
    config: ClientConfig,
    stage: Stage,
    /// When it must have ended.
    deadline: Instant,
    /// When this end sent its hello.
    asked: Instant,
    /// What the server has said that it knows about settings.
    pub(super) knows: Knows,
}

impl Greeting {
    /// Opens the conversation.
    pub(super) fn new(now: Instant, channel: &mut Channel, config: ClientConfig) -> Self {
        let (stage, deadline, asked) = (Stage::Hello, now + GREETING_TIMEOUT, now);
        let mut greeting = Self { config, stage, deadline, asked, knows: Knows::default() };
        match greeting.open(now, channel) {
            Ok(begun) => greeting.stage = Stage::Preamble { seen: Vec::new(), begun },
            Err(error) => {
                greeting.stage = Stage::Failed(error);
                greeting.deadline = now;
            }
        }
        greeting
    }

    fn open(
        &mut self,
        now: Instant,
        channel: &mut Channel,
    ) -> Result<Option<ClientHandshake>, WireError> {
        let Some((begun, record)) = secure::begin(&self.config)? else {
            channel.send_bytes(now, Role::Control.preamble().to_vec());
            self.say_hello(now, channel)?;
            return Ok(None);
        };
        let opening = [&begun.role().preamble()[..], &record].concat();
        channel.send_bytes(now, opening);
        Ok(Some(begun))
    }

    fn say_hello(&mut self, now: Instant, channel: &mut Channel) -> Result<(), WireError> {
        let unable = |cause| WireError::Local(format!("can't describe this host: {cause}"));
        let hello = Hello::of(&self.config.host, self.config.clock.unix_us(now)).map_err(unable)?;
        self.asked = now;
        channel.send_provoking(now, &Message::Hello(hello))
    }

    /// Takes bytes of the greeting, up to the hello; bytes of messages go to the channel.
    pub(super) fn take(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        bytes: &[u8],
    ) -> Result<(), WireError> {
        match &mut self.stage {
            Stage::Preamble { seen, .. } => {
                seen.extend_from_slice(bytes);
                self.read_preamble(now, channel)
            }
            Stage::Handshake { records, .. } => {
                records.push(bytes);
                self.read_handshake(now, channel)
            }
            Stage::Hello | Stage::Unsecured => channel.receive(now, bytes),
            Stage::Failed(error) => Err(error.clone()),
        }
    }

    fn read_preamble(&mut self, now: Instant, channel: &mut Channel) -> Result<(), WireError> {
        let Stage::Preamble { seen, begun } = &mut self.stage else {
            return Ok(());
        };
        match (Opening::read(seen), begun.as_ref().map(ClientHandshake::role)) {
            (Opening::Incomplete, _) => Ok(()),
            (Opening::Foreign, _) => self.look_at_foreign(now),
            (Opening::Control, _)
            | (Opening::Secured, Some(Role::Secured))
            | (Opening::Keyed, Some(Role::Keyed)) => {
                let (seen, begun) = (std::mem::take(seen), begun.take());
                self.join(now, channel, Opening::read(&seen), begun, &seen[PREAMBLE_BYTES..])
            }
            _ => Err(WireError::broken("its preamble does not match this end's")),
        }
    }

    /// The server speaks our protocol, and `rest` is the input after its preamble.
    fn join(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        opening: Opening,
        begun: Option<ClientHandshake>,
        rest: &[u8],
    ) -> Result<(), WireError> {
        let next = match (opening, begun) {
            (Opening::Secured | Opening::Keyed, Some(begun)) => {
                let records = Decoder::new(MAX_HANDSHAKE_RECORD_BYTES);
                Stage::Handshake { begun, records }
            }
            (_, None) => {
                channel.talk_plainly();
                Stage::Hello
            }
            (_, Some(_)) => Stage::Unsecured,
        };
        self.stage = next;
        self.take(now, channel, rest)
    }

    /// Waits a little for the rest of a foreign greeting, so that it can be named.
    fn look_at_foreign(&mut self, now: Instant) -> Result<(), WireError> {
        let Stage::Preamble { seen, .. } = &mut self.stage else {
            return Ok(());
        };
        if seen.len() >= FOREIGN_BYTES || seen.contains(&b'\n') {
            return Err(seems(foreign::server(seen)));
        }
        let until = now + FOREIGN_TAIL_TIME;
        self.deadline = self.deadline.min(until);
        Ok(())
    }

    fn read_handshake(&mut self, now: Instant, channel: &mut Channel) -> Result<(), WireError> {
        let Stage::Handshake { records, .. } = &mut self.stage else {
            return Ok(());
        };
        let Some(record) = records.next_body().map_err(WireError::broken)? else { return Ok(()) };
        let done = std::mem::replace(&mut self.stage, Stage::Hello);
        let Stage::Handshake { begun, records } = done else { return Ok(()) };
        match begun.finish(&record) {
            Ok(joined) => Self::go_dark(now, channel, joined),
            Err(error) => {
                channel.send_bytes(now, NOT_THIS_SERVER.to_vec());
                return Err(error);
            }
        }
        self.say_hello(now, channel)?;
        channel.receive(now, &records.into_rest())
    }

    /// Ends the handshake; everything after this is encrypted.
    fn go_dark(now: Instant, channel: &mut Channel, joined: Joined) {
        if !joined.last.is_empty() {
            channel.send_bytes(now, joined.last);
        }
        if let Some(key) = joined.server {
            channel.act(Action::ServerShowed(key));
        }
        channel.encrypt(joined.tunnel);
    }

    /// Takes the only message of a greeting, which ends it.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        message: Message,
    ) -> Result<(), WireError> {
        let unsecured = matches!(self.stage, Stage::Unsecured);
        match message {
            Message::Goodbye(goodbye) => Err(farewell(goodbye)),
            Message::Hello(hello) if !unsecured => self.greeted(now, channel, hello),
            _ => Err(WireError::broken("its first message is not a hello")),
        }
    }

    fn greeted(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        hello: Hello,
    ) -> Result<(), WireError> {
        if hello.version != PROTOCOL_VERSION {
            return Err(WireError::Version { ours: PROTOCOL_VERSION, theirs: hello.version });
        }
        let clock = hello.unix_us.map(|theirs| self.clock_offset(now, theirs));
        let (checks, confirms) = (hello.checks_arms, hello.confirms_changes);
        let (echoes_all, takes_turns) = (hello.echoes_all, hello.takes_turns);
        self.knows = Knows { checks, confirms, echoes_all, takes_turns };
        let inflates = hello.inflates;
        let peer = hello.host().map_err(WireError::broken)?;
        let secured = channel.is_secured();
        channel.greeted(inflates);
        channel.act(Action::Greeted { peer, secured, clock });
        Ok(())
    }

    fn clock_offset(&self, now: Instant, theirs: u64) -> ClockOffset {
        let half = now.saturating_duration_since(self.asked).as_secs_f64() * 1e6 / 2.0;
        let ours = self.config.clock.unix_us(self.asked) as f64 + half;
        ClockOffset { ahead_us: theirs as f64 - ours, uncertainty_us: half }
    }

    /// When it must have ended.
    pub(super) fn due(&self) -> Instant {
        self.deadline
    }

    /// The error if nothing more arrived in time.
    pub(super) fn timed_out(&self) -> WireError {
        match &self.stage {
            Stage::Preamble { seen, .. } if seen.is_empty() => WireError::TimedOut(format!(
                "it accepted the connection and said nothing for {} s; another program may use this port, or \
                 the server is busy; check the port",
                GREETING_TIMEOUT.as_secs()
            )),
            Stage::Preamble { seen, .. } => seems(foreign::server(seen)),
            Stage::Handshake { .. } | Stage::Hello | Stage::Unsecured => {
                WireError::TimedOut(format!("no greeting within {} s", GREETING_TIMEOUT.as_secs()))
            }
            Stage::Failed(error) => error.clone(),
        }
    }

    /// The error if the server closed the connection.
    pub(super) fn closed(&self, channel: &Channel) -> WireError {
        match &self.stage {
            Stage::Failed(error) => error.clone(),
            Stage::Preamble { seen, begun } if seen.is_empty() => {
                let shows_key = matches!(begun, Some(ClientHandshake::Key(_)));
                let likely = if shows_key { TURNED_AWAY_WITH_KEY } else { TURNED_AWAY };
                WireError::Unanswered { likely }
            }
            Stage::Preamble { seen, .. } if !is_start_of_ours(seen) => seems(foreign::server(seen)),
            Stage::Hello if !channel.is_inside() => WireError::Closed("before it greeted".into()),
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
