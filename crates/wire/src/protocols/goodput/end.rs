//! How either end handles bytes: up to the hello they belong to the greeting, then to messages.

use std::time::Instant;

use super::channel::Channel;
use super::messages::Message;
use crate::error::WireError;

/// One end of a conversation over a [`Channel`].
pub(super) trait End {
    /// Its channel.
    fn channel(&mut self) -> &mut Channel;

    /// Whether both ends are still identifying each other.
    fn is_greeting(&self) -> bool;

    /// Takes bytes of the greeting; bytes of messages go to the channel.
    fn greet(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError>;

    /// Takes a message before the greeting is over.
    fn hear_greeting(&mut self, now: Instant, message: Message) -> Result<(), WireError>;

    /// Takes a message after the greeting.
    fn hear(&mut self, now: Instant, message: Message) -> Result<(), WireError>;
}

/// Takes bytes of the peer, and every message that they complete.
pub(super) fn receive(end: &mut impl End, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
    match end.is_greeting() {
        true => end.greet(now, bytes)?,
        false => end.channel().receive(now, bytes)?,
    }
    while !end.channel().is_closed()
        && let Some(message) = end.channel().next_message()?
    {
        match end.is_greeting() {
            true => end.hear_greeting(now, message)?,
            false => end.hear(now, message)?,
        }
    }
    Ok(())
}
