//! The server's greeting: preamble, handshake, hello; who is turned away, and which identity a client proves.

use std::sync::Arc;
use std::time::Instant;

use super::super::PROTOCOL_VERSION;
use super::super::messages::{Hello, Message};
use super::super::preamble::{Opening, PREAMBLE_BYTES, Role};
use super::super::secure::keyed::Answered;
use super::super::secure::{self, MAX_HANDSHAKE_RECORD_BYTES};
use super::super::times::{GREETING_TIMEOUT, IDLE_TIMEOUT};
use super::{ServerSession, State};
use crate::error::WireError;
use crate::foreign;
use crate::frame::Decoder;
use crate::keys::PublicKey;
use crate::session::{Action, CREDENTIAL_REQUIRED, Credential};

/// How far the greeting has come.
pub(super) enum Greeting {
    /// The client's preamble is awaited; some of its bytes may be there.
    Preamble(Vec<u8>),
    /// The client's part of the handshake with the token is awaited.
    Handshake(Decoder<2>),
    /// The client's part of the handshake with keys is awaited.
    Keyed(Decoder<2>),
    /// The proof that the client has the key it shows is awaited.
    Proof { answered: Answered, records: Decoder<2> },
    /// The client's hello is awaited.
    Hello,
}

impl Default for Greeting {
    fn default() -> Self {
        Self::Preamble(Vec::new())
    }
}

impl Greeting {
    /// The error if nothing more arrived in time.
    pub(super) fn timed_out(&self) -> WireError {
        let what = match self {
            Self::Preamble(_) => "it did not name its protocol",
            Self::Handshake(_) | Self::Keyed(_) | Self::Proof { .. } | Self::Hello => {
                "it did not greet"
            }
        };
        WireError::TimedOut(format!("{what} within {} s", GREETING_TIMEOUT.as_secs()))
    }
}

impl ServerSession {
    /// Takes bytes of the greeting, up to the hello; bytes of messages go to the channel.
    pub(super) fn take_greeting(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
        let State::Greeting(greeting) = &mut self.state else { return Ok(()) };
        match greeting {
            Greeting::Preamble(seen) => {
                seen.extend_from_slice(bytes);
                let seen = std::mem::take(seen);
                self.read_preamble(now, seen)
            }
            Greeting::Handshake(records) => {
                records.push(bytes);
                self.read_handshake(now)
            }
            Greeting::Keyed(records) => {
                records.push(bytes);
                self.read_keyed(now)
            }
            Greeting::Proof { records, .. } => {
                records.push(bytes);
                self.read_proof(now)
            }
            Greeting::Hello => self.channel.receive(now, bytes),
        }
    }

    fn read_preamble(&mut self, now: Instant, seen: Vec<u8>) -> Result<(), WireError> {
        match Opening::read(&seen) {
            Opening::Incomplete => {
                self.state = State::Greeting(Greeting::Preamble(seen));
                Ok(())
            }
            Opening::Control => self.greet_plainly(now, &seen[PREAMBLE_BYTES..]),
            Opening::Secured => self.greet_secured(now, &seen[PREAMBLE_BYTES..]),
            Opening::Keyed => self.greet_keyed(now, &seen[PREAMBLE_BYTES..]),
            Opening::Data(_) => {
                Err(WireError::broken("a data connection where control was expected"))
            }
            Opening::UnknownRole(role) => {
                Err(WireError::broken(format!("unknown role {:?}", char::from(role))))
            }
            Opening::Foreign => Err(WireError::Foreign { seems: foreign::client(&seen) }),
        }
    }

    fn greet_plainly(&mut self, now: Instant, rest: &[u8]) -> Result<(), WireError> {
        self.answer_plainly(now);
        // The driver would refuse the client too, but only after this host has revealed its name.
        if self.config.credential_required {
            return Err(WireError::NotPermitted(CREDENTIAL_REQUIRED.into()));
        }
        self.state = State::Greeting(Greeting::Hello);
        self.take_greeting(now, rest)
    }

    fn greet_secured(&mut self, now: Instant, rest: &[u8]) -> Result<(), WireError> {
        if self.config.token.is_none() {
            self.answer_plainly(now);
            let why = "this server has no token; connect without one, or start the server with one";
            return Err(WireError::NotPermitted(why.into()));
        }
        self.state = State::Greeting(Greeting::Handshake(Decoder::new(MAX_HANDSHAKE_RECORD_BYTES)));
        self.take_greeting(now, rest)
    }

    fn greet_keyed(&mut self, now: Instant, rest: &[u8]) -> Result<(), WireError> {
        let known = self.config.keys.as_ref().map(|keys| keys.clients.is_usable());
        let why = match known {
            Some(true) => {
                let records = Decoder::new(MAX_HANDSHAKE_RECORD_BYTES);
                self.state = State::Greeting(Greeting::Keyed(records));
                return self.take_greeting(now, rest);
            }
            Some(false) => "this server can't use its list of keys at the moment; its log says why",
            None => {
                "this server knows no keys: it was started without --authorized-keys; to be measured by it all the \
                 same, connect without a key (--no-key)"
            }
        };
        self.answer_plainly(now);
        Err(WireError::NotPermitted(why.into()))
    }

    fn answer_plainly(&mut self, now: Instant) {
        self.channel.send_bytes(now, Role::Control.preamble().to_vec());
        self.channel.talk_plainly();
    }

    fn read_handshake(&mut self, now: Instant) -> Result<(), WireError> {
        let State::Greeting(Greeting::Handshake(records)) = &mut self.state else {
            return Ok(());
        };
        let Some(record) = records.next_body().map_err(WireError::broken)? else { return Ok(()) };
        let rest = std::mem::replace(records, Decoder::new(0)).into_rest();
        let Some(token) = &self.config.token else { return Ok(()) };
        let (tunnel, answer) = secure::token::respond(token, &record)?;
        self.channel.send_bytes(now, [&Role::Secured.preamble()[..], &answer].concat());
        self.channel.encrypt(tunnel);
        // If clients have keys of their own, the shared token is not enough to change settings.
        self.proves = Some(Credential::Token { settings: self.config.keys.is_none() });
        self.state = State::Greeting(Greeting::Hello);
        self.take_greeting(now, &rest)
    }

    fn read_keyed(&mut self, now: Instant) -> Result<(), WireError> {
        let State::Greeting(Greeting::Keyed(records)) = &mut self.state else { return Ok(()) };
        let Some(record) = records.next_body().map_err(WireError::broken)? else { return Ok(()) };
        let records = std::mem::replace(records, Decoder::new(0));
        let Some(keys) = &self.config.keys else { return Ok(()) };
        let (answered, answer) = secure::keyed::respond(&keys.own, &record)?;
        self.channel.send_bytes(now, [&Role::Keyed.preamble()[..], &answer].concat());
        self.state = State::Greeting(Greeting::Proof { answered, records });
        self.read_proof(now)
    }

    fn read_proof(&mut self, now: Instant) -> Result<(), WireError> {
        let State::Greeting(Greeting::Proof { records, .. }) = &mut self.state else {
            return Ok(());
        };
        let Some(record) = records.next_body().map_err(WireError::broken)? else { return Ok(()) };
        let proof = std::mem::replace(&mut self.state, State::Greeting(Greeting::Hello));
        let State::Greeting(Greeting::Proof { answered, records }) = proof else { return Ok(()) };
        let (tunnel, key) = answered.finish(&record)?;
        self.channel.encrypt(tunnel);
        self.meet(&key)?;
        self.take_greeting(now, &records.into_rest())
    }

    /// The client has proven that this is its key.
    fn meet(&mut self, key: &PublicKey) -> Result<(), WireError> {
        let Some(keys) = &self.config.keys else { return Ok(()) };
        match keys.clients.find(key, self.config.peer.ip()) {
            Ok(client) => {
                self.client = Some(Arc::clone(&client));
                self.proves = Some(Credential::Key(client));
                Ok(())
            }
            // The client is treated like any other that has proven nothing.
            Err(why) if self.config.credential_required => Err(WireError::NotPermitted(why)),
            Err(why) => {
                self.channel.act(Action::Note(why));
                Ok(())
            }
        }
    }

    /// Takes a message before the greeting is over.
    pub(super) fn take_greeting_message(
        &mut self,
        now: Instant,
        message: Message,
    ) -> Result<(), WireError> {
        let Message::Hello(hello) = message else {
            return Err(WireError::broken("its first message is not a hello"));
        };
        let unable = |cause| WireError::Local(format!("can't describe this host: {cause}"));
        let ours = Hello::of(&self.config.host, self.config.clock.unix_us(now)).map_err(unable)?;
        self.channel.send(now, &Message::Hello(ours))?;
        if hello.version != PROTOCOL_VERSION {
            return Err(WireError::Version { ours: PROTOCOL_VERSION, theirs: hello.version });
        }
        let inflates = hello.inflates;
        let peer = hello.host().map_err(WireError::broken)?;
        let secured = self.channel.is_secured();
        // A hello that could be decrypted proves the token.
        let proven = self.proves.take().filter(|_| secured);
        self.requests.permit(proven.is_some());
        if let Some(proven) = proven {
            self.channel.act(Action::Proven(proven));
        }
        self.channel.greeted(inflates);
        self.enter(State::Idle, now + IDLE_TIMEOUT);
        self.channel.act(Action::Greeted { peer, secured, clock: None });
        Ok(())
    }
}
