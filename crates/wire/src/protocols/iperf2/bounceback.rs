//! Bounceback, since 2.1.7: short messages that the server sends back with its times, to measure round trips. They
//! stay on the conversation's own connection and are not a flow.
//!
//! ```text
//!  0 flags       4 size        8 number          12 flags, 14 ToS   16 duration, 10 ms
//! 20 client's time of sending   28 server's time of reading   36 server's time of sending
//! 44 hold, µs   48 round trip  52 client's time of reading    60 size of the reply (2.2)
//! ```

use std::time::{Duration, Instant};

use goodput_model::Host;

use super::header::{BOUNCEBACK, EXTEND, Extent, VERSION1, word};
use crate::error::WireError;
use crate::outbox::Outbox;
use crate::session::{Action, HostClock, Input, ServerConfig};
use crate::state_machine::StateMachine;

/// Shortest message: everything up to the hold (`struct bounceback_hdr`).
const MIN_MESSAGE_BYTES: u32 = 48;
/// Longest message or reply, bytes.
const MAX_MESSAGE_BYTES: u32 = 1 << 20;
/// Longest hold, microseconds.
const MAX_HOLD_US: u32 = 10_000_000;
/// How long a client may be silent between two messages.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes that a client may send ahead of the held message.
const READ_AHEAD_BYTES: usize = 64 * 1024;

/// `HEADER_BBSTOP` of the flags at 12: the last message, which is not sent back.
const STOP_FLAG: u32 = 0x1000_0000;
/// `HEADER_BBREPLYSIZE` of 2.2: the reply has its own size.
pub(super) const REPLY_SIZE: u32 = 0x0800_0000;

/// Whether a connection begins with a bounceback message.
pub(super) fn extent(first: &[u8]) -> Extent {
    let flags = match word(first, 0) {
        Some(flags) => flags,
        None if BOUNCEBACK.to_be_bytes().starts_with(first) => return Extent::Needs(12),
        None => return Extent::None,
    };
    if flags & (BOUNCEBACK | EXTEND | VERSION1) != BOUNCEBACK
        || flags & !(BOUNCEBACK | 0x1_ffff) != 0
    {
        return Extent::None;
    }
    match word(first, 4) {
        None => Extent::Needs(8),
        Some(MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES) => Extent::Whole(8),
        Some(_) => Extent::None,
    }
}

/// Sends messages back until the client stops.
pub(super) struct Bounceback {
    outbox: Outbox,
    clock: HostClock,
    /// Whether the host permits this conversation.
    admitted: bool,
    received: Vec<u8>,
    /// When to send the complete message back.
    held: Option<Instant>,
    silent_at: Instant,
    /// When the server ends the conversation.
    until: Instant,
}

impl StateMachine for Bounceback {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        match input {
            Input::Received(bytes) => {
                self.received.extend(bytes);
                self.silent_at = now + SILENCE_TIMEOUT;
                self.go_on(now)?;
            }
            Input::Expecting { .. } => {
                self.admitted = true;
                self.go_on(now)?;
            }
            Input::Denied(why) => return Err(WireError::NotPermitted(why)),
            Input::FlowsFailed(why) => return Err(WireError::Local(why)),
            Input::Closed | Input::Leave(_) => self.outbox.close(),
            _ => {}
        }
        Ok(())
    }

    fn expire(&mut self, now: Instant) -> Result<(), WireError> {
        match () {
            () if now >= self.until => {
                Err(WireError::TimedOut("the longest time for one client is over".into()))
            }
            () if now >= self.silent_at => Err(WireError::TimedOut("no message came".into())),
            () => self.go_on(now),
        }
    }

    fn due(&self) -> Option<Instant> {
        Some(self.held.unwrap_or(self.until).min(self.until).min(self.silent_at))
    }

    /// A bounceback can't report an error.
    fn fail(&mut self, _now: Instant, _error: &WireError) {
        self.outbox.close();
    }

    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

impl Bounceback {
    pub(super) fn new(now: Instant, config: &ServerConfig) -> Self {
        let mut outbox = Outbox::default();
        let peer = Host::foreign("iperf2 with --bounceback");
        outbox.act(Action::Greeted { peer, secured: false, clock: None });
        outbox.act(Action::Converse);
        let longest =
            Duration::try_from_secs_f64(config.limits.duration_s).unwrap_or(Duration::MAX);
        Self {
            outbox,
            clock: config.clock,
            admitted: false,
            received: Vec::new(),
            held: None,
            silent_at: now + SILENCE_TIMEOUT,
            until: now.checked_add(longest).unwrap_or(now + SILENCE_TIMEOUT),
        }
    }

    /// Sends back the first message, once it is complete and was held for long enough. One per call: a small message
    /// may ask for a large reply, so unread bytes must be checked before the next.
    fn go_on(&mut self, now: Instant) -> Result<(), WireError> {
        if !self.admitted {
            return self.hold(MAX_MESSAGE_BYTES as usize);
        }
        let Some(size) = self.whole()? else { return Ok(()) };
        let send_at = match self.held {
            Some(at) => at,
            None => self.read(now)?,
        };
        if now < send_at {
            self.held = Some(send_at);
            return self.hold(size);
        }
        let message: Vec<u8> = self.received.drain(..size).collect();
        if word(&message, 12).is_some_and(|flags| flags & STOP_FLAG != 0) {
            self.outbox.close();
            return Ok(());
        }
        self.send_back(now, message)?;
        self.held = match self.whole()? {
            Some(_) => Some(self.read(now)?),
            None => None,
        };
        self.hold(MAX_MESSAGE_BYTES as usize)
    }

    /// The size of the first message, once it is complete.
    fn whole(&self) -> Result<Option<usize>, WireError> {
        match extent(&self.received) {
            Extent::Whole(_) => {}
            Extent::Needs(_) => return Ok(None),
            Extent::None => {
                return Err(WireError::Protocol("the message is not a bounceback".into()));
            }
        }
        let size = word(&self.received, 4).unwrap_or(MIN_MESSAGE_BYTES) as usize;
        Ok((self.received.len() >= size).then_some(size))
    }

    /// A message is complete: notes the time, and returns when to send it back.
    fn read(&mut self, now: Instant) -> Result<Instant, WireError> {
        let hold = word(&self.received, 44).unwrap_or(0);
        if hold > MAX_HOLD_US {
            return Err(WireError::Protocol(format!("a hold of {hold} µs is too long")));
        }
        self.stamp(now, 28);
        Ok(now + Duration::from_micros(hold.into()))
    }

    fn hold(&self, size: usize) -> Result<(), WireError> {
        match self.received.len() > size + READ_AHEAD_BYTES {
            true => Err(WireError::Protocol(
                "it keeps sending without waiting for the held reply".into(),
            )),
            false => Ok(()),
        }
    }

    fn send_back(&mut self, now: Instant, message: Vec<u8>) -> Result<(), WireError> {
        let asked = word(&message, 12).is_some_and(|flags| flags & REPLY_SIZE != 0);
        let reply = word(&message, 60).filter(|_| asked && message.len() >= 64);
        let size = match reply {
            Some(size @ MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES) => size as usize,
            Some(size) => {
                return Err(WireError::Protocol(format!(
                    "a reply of {size} bytes is not possible"
                )));
            }
            None => message.len(),
        };
        let mut message = message;
        message.resize(size, 0);
        message[36..44].copy_from_slice(&self.time(now));
        self.outbox.send(message);
        Ok(())
    }

    fn stamp(&mut self, now: Instant, at: usize) {
        let time = self.time(now);
        if let Some(place) = self.received.get_mut(at..at + 8) {
            place.copy_from_slice(&time);
        }
    }

    fn time(&self, now: Instant) -> [u8; 8] {
        let us = self.clock.unix_us(now);
        let (s, us) = ((us / 1_000_000) as u32, (us % 1_000_000) as u32);
        (u64::from(s) << 32 | u64::from(us)).to_be_bytes()
    }
}
