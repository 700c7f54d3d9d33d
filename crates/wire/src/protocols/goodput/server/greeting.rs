//! The server's greeting: preamble, handshake, hello; who is turned away, and which identity a client proves.

use std::sync::Arc;
use std::time::Instant;

use super::super::PROTOCOL_VERSION;
use super::super::channel::Channel;
use super::super::messages::{Hello, Message};
use super::super::preamble::{Opening, PREAMBLE_BYTES, Role};
use super::super::secure::keyed::Answered;
use super::super::secure::{self, MAX_HANDSHAKE_RECORD_BYTES};
use super::super::times::GREETING_TIMEOUT;
use crate::error::WireError;
use crate::foreign;
use crate::frame::Decoder;
use crate::keys::{AuthorizedKey, PublicKey};
use crate::session::{Action, CREDENTIAL_REQUIRED, Credential, ServerConfig};

/// How far the greeting has come.
enum Stage {
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

/// The greeting, seen from the answering side.
pub(super) struct Greeting {
    stage: Stage,
    /// When it must have ended.
    deadline: Instant,
    /// The identity that it proves when it is over.
    proves: Option<Credential>,
    /// The client's entry in the list of keys.
    client: Option<Arc<AuthorizedKey>>,
}

/// Who has greeted.
pub(super) struct Greeted {
    /// Whether the client has proven its identity, or that it knows the token.
    pub(super) proven: bool,
    /// The client's entry in the list of keys.
    pub(super) client: Option<Arc<AuthorizedKey>>,
}

impl Greeting {
    /// Awaits the client's preamble.
    pub(super) fn new(now: Instant) -> Self {
        let stage = Stage::Preamble(Vec::new());
        Self { stage, deadline: now + GREETING_TIMEOUT, proves: None, client: None }
    }

    /// When it must have ended.
    pub(super) fn due(&self) -> Instant {
        self.deadline
    }

    /// The error if nothing more arrived in time.
    pub(super) fn timed_out(&self) -> WireError {
        let what = match &self.stage {
            Stage::Preamble(_) => "it did not name its protocol",
            Stage::Handshake(_) | Stage::Keyed(_) | Stage::Proof { .. } | Stage::Hello => {
                "it did not greet"
            }
        };
        WireError::TimedOut(format!("{what} within {} s", GREETING_TIMEOUT.as_secs()))
    }

    /// Takes bytes of the greeting, up to the hello; bytes of messages go to the channel.
    pub(super) fn take(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        config: &ServerConfig,
        bytes: &[u8],
    ) -> Result<(), WireError> {
        match &mut self.stage {
            Stage::Preamble(seen) => {
                seen.extend_from_slice(bytes);
                let seen = std::mem::take(seen);
                self.read_preamble(now, channel, config, seen)
            }
            Stage::Handshake(records) => {
                records.push(bytes);
                self.read_handshake(now, channel, config)
            }
            Stage::Keyed(records) => {
                records.push(bytes);
                self.read_keyed(now, channel, config)
            }
            Stage::Proof { records, .. } => {
                records.push(bytes);
                self.read_proof(now, channel, config)
            }
            Stage::Hello => channel.receive(now, bytes),
        }
    }

    fn read_preamble(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        config: &ServerConfig,
        seen: Vec<u8>,
    ) -> Result<(), WireError> {
        match Opening::read(&seen) {
            Opening::Incomplete => {
                self.stage = Stage::Preamble(seen);
                Ok(())
            }
            Opening::Control => self.greet_plainly(now, channel, config, &seen[PREAMBLE_BYTES..]),
            Opening::Secured => self.greet_secured(now, channel, config, &seen[PREAMBLE_BYTES..]),
            Opening::Keyed => self.greet_keyed(now, channel, config, &seen[PREAMBLE_BYTES..]),
            Opening::Data(_) => {
                Err(WireError::broken("a data connection where control was expected"))
            }
            Opening::UnknownRole(role) => {
                Err(WireError::broken(format!("unknown role {:?}", char::from(role))))
            }
            Opening::Foreign => Err(WireError::Foreign { seems: foreign::client(&seen) }),
        }
    }

    fn greet_plainly(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        config: &ServerConfig,
        rest: &[u8],
    ) -> Result<(), WireError> {
        answer_plainly(now, channel);
        // The driver would refuse the client too, but only after this host has revealed its name.
        if config.credential_required {
            return Err(WireError::NotPermitted(CREDENTIAL_REQUIRED.into()));
        }
        self.stage = Stage::Hello;
        self.take(now, channel, config, rest)
    }

    fn greet_secured(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        config: &ServerConfig,
        rest: &[u8],
    ) -> Result<(), WireError> {
        if config.token.is_none() {
            answer_plainly(now, channel);
            let why = "this server has no token; connect without one, or start the server with one";
            return Err(WireError::NotPermitted(why.into()));
        }
        self.stage = Stage::Handshake(Decoder::new(MAX_HANDSHAKE_RECORD_BYTES));
        self.take(now, channel, config, rest)
    }

    fn greet_keyed(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        config: &ServerConfig,
        rest: &[u8],
    ) -> Result<(), WireError> {
        let known = config.keys.as_ref().map(|keys| keys.clients.is_usable());
        let why = match known {
            Some(true) => {
                let records = Decoder::new(MAX_HANDSHAKE_RECORD_BYTES);
                self.stage = Stage::Keyed(records);
                return self.take(now, channel, config, rest);
            }
            Some(false) => "this server can't use its list of keys at the moment; its log says why",
            None => {
                "this server knows no keys: it was started without --authorized-keys; to measure anyway, connect \
                 without a key (--no-key)"
            }
        };
        answer_plainly(now, channel);
        Err(WireError::NotPermitted(why.into()))
    }

    fn read_handshake(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        config: &ServerConfig,
    ) -> Result<(), WireError> {
        let Stage::Handshake(records) = &mut self.stage else {
            return Ok(());
        };
        let Some(record) = records.next_body().map_err(WireError::broken)? else { return Ok(()) };
        let rest = std::mem::replace(records, Decoder::new(0)).into_rest();
        let Some(token) = &config.token else { return Ok(()) };
        let (tunnel, answer) = secure::token::respond(token, &record)?;
        channel.send_bytes(now, [&Role::Secured.preamble()[..], &answer].concat());
        channel.encrypt(tunnel);
        // If clients have keys of their own, the shared token is not enough to change settings.
        self.proves = Some(Credential::Token { settings: config.keys.is_none() });
        self.stage = Stage::Hello;
        self.take(now, channel, config, &rest)
    }

    fn read_keyed(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        config: &ServerConfig,
    ) -> Result<(), WireError> {
        let Stage::Keyed(records) = &mut self.stage else { return Ok(()) };
        let Some(record) = records.next_body().map_err(WireError::broken)? else { return Ok(()) };
        let records = std::mem::replace(records, Decoder::new(0));
        let Some(keys) = &config.keys else { return Ok(()) };
        let (answered, answer) = secure::keyed::respond(&keys.own, &record)?;
        channel.send_bytes(now, [&Role::Keyed.preamble()[..], &answer].concat());
        self.stage = Stage::Proof { answered, records };
        self.read_proof(now, channel, config)
    }

    fn read_proof(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        config: &ServerConfig,
    ) -> Result<(), WireError> {
        let Stage::Proof { records, .. } = &mut self.stage else {
            return Ok(());
        };
        let Some(record) = records.next_body().map_err(WireError::broken)? else { return Ok(()) };
        let proof = std::mem::replace(&mut self.stage, Stage::Hello);
        let Stage::Proof { answered, records } = proof else { return Ok(()) };
        let (tunnel, key) = answered.finish(&record)?;
        channel.encrypt(tunnel);
        self.meet(channel, config, &key)?;
        self.take(now, channel, config, &records.into_rest())
    }

    /// The client has proven that this is its key.
    fn meet(
        &mut self,
        channel: &mut Channel,
        config: &ServerConfig,
        key: &PublicKey,
    ) -> Result<(), WireError> {
        let Some(keys) = &config.keys else { return Ok(()) };
        match keys.clients.find(key, config.peer.ip()) {
            Ok(client) => {
                self.client = Some(Arc::clone(&client));
                self.proves = Some(Credential::Key(client));
                Ok(())
            }
            // The client is treated like any other that has proven nothing.
            Err(why) if config.credential_required => Err(WireError::NotPermitted(why)),
            Err(why) => {
                channel.act(Action::Note(why));
                Ok(())
            }
        }
    }

    /// Takes the only message of a greeting, which ends it.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        config: &ServerConfig,
        message: Message,
    ) -> Result<Greeted, WireError> {
        let Message::Hello(hello) = message else {
            return Err(WireError::broken("its first message is not a hello"));
        };
        let unable = |cause| WireError::Local(format!("can't describe this host: {cause}"));
        let ours = Hello::of(&config.host, config.clock.unix_us(now)).map_err(unable)?;
        channel.send(now, &Message::Hello(ours))?;
        if hello.version != PROTOCOL_VERSION {
            return Err(WireError::Version { ours: PROTOCOL_VERSION, theirs: hello.version });
        }
        let inflates = hello.inflates;
        let peer = hello.host().map_err(WireError::broken)?;
        let secured = channel.is_secured();
        // A hello that could be decrypted proves the token.
        let proves = self.proves.take().filter(|_| secured);
        let proven = proves.is_some();
        if let Some(credential) = proves {
            channel.act(Action::Proven(credential));
        }
        channel.greeted(inflates);
        channel.act(Action::Greeted { peer, secured, clock: None });
        Ok(Greeted { proven, client: self.client.take() })
    }
}

fn answer_plainly(now: Instant, channel: &mut Channel) {
    channel.send_bytes(now, Role::Control.preamble().to_vec());
    channel.talk_plainly();
}
