//! The measurements of a conversation, one after the other: what is the same at both ends.

use std::time::Instant;

use super::channel::Channel;
use super::messages::{Message, Refuse};
use super::running::Running;
use super::times::IDLE_TIMEOUT;
use crate::error::WireError;
use crate::session::Input;

/// Which end this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// The current measurement, whose preparation differs by end.
pub(super) struct Measurements<P> {
    side: Side,
    stage: Stage<P>,
    /// When the stage must have ended, or something is due in it; without, it may last forever.
    deadline: Option<Instant>,
    /// Number of the last measurement that was proposed.
    number: u32,
}

/// How far the current measurement is.
pub(super) enum Stage<P> {
    /// Nothing is measured.
    Idle,
    /// Both ends prepare for it.
    Preparing(P),
    /// Payload moves, or its reports are on their way.
    Running(Running),
}

impl<P> Measurements<P> {
    /// Nothing is measured yet.
    pub(super) fn new(side: Side) -> Self {
        Self { side, stage: Stage::Idle, deadline: None, number: 0 }
    }

    /// How far the current measurement is.
    pub(super) fn stage(&self) -> &Stage<P> {
        &self.stage
    }

    /// Its preparation, as long as it lasts.
    pub(super) fn preparing(&mut self) -> Option<&mut P> {
        match &mut self.stage {
            Stage::Preparing(preparing) => Some(preparing),
            Stage::Idle | Stage::Running(_) => None,
        }
    }

    /// Whether nothing is measured.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// Number of the last measurement that was proposed.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// When there is something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        self.deadline
    }

    /// The peer did something while nothing was measured: a server waits for it as long as ever.
    pub(super) fn stay(&mut self, now: Instant) {
        if self.is_idle() && self.side == Side::Server {
            self.deadline = Some(now + IDLE_TIMEOUT);
        }
    }

    /// Another measurement is proposed.
    pub(super) fn propose(&mut self, number: u32) {
        self.number = number;
    }

    /// Prepares for a measurement until `deadline`.
    pub(super) fn prepare(&mut self, preparing: P, deadline: Instant) {
        self.stage = Stage::Preparing(preparing);
        self.deadline = Some(deadline);
    }

    /// Payload begins to move.
    pub(super) fn run(&mut self, running: Running) {
        self.deadline = Some(running.next_timeout());
        self.stage = Stage::Running(running);
    }

    /// Nothing is measured any more.
    pub(super) fn be_idle(&mut self, now: Instant, channel: &mut Channel) {
        self.stage = Stage::Idle;
        self.deadline = None;
        if self.side == Side::Server {
            channel.quiet();
            self.stay(now);
        }
    }

    /// Informs the peer that the measurement is off.
    pub(super) fn break_off(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        why: String,
    ) -> Result<(), WireError> {
        if self.is_idle() {
            return Ok(());
        }
        self.be_idle(now, channel);
        channel.send(now, &Message::Refuse(Refuse { measurement: self.number, why }))
    }

    /// Takes an input that matters only while payload moves.
    pub(super) fn take(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        input: Input,
    ) -> Result<(), WireError> {
        let Stage::Running(running) = &mut self.stage else { return Ok(()) };
        running.take(now, channel, input)?;
        self.conclude(now, channel);
        Ok(())
    }

    /// Takes a message about a measurement that has begun.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        message: Message,
    ) -> Result<(), WireError> {
        let Some(measurement) = Running::number_in(&message) else { return Ok(()) };
        if !self.is_current(measurement)? {
            return Ok(());
        }
        let Stage::Running(running) = &mut self.stage else {
            return Err(WireError::broken("it reports payload before the measurement began"));
        };
        running.hear(now, channel, message)?;
        self.conclude(now, channel);
        Ok(())
    }

    /// Continues after anything that may have brought a measurement closer to its end.
    fn conclude(&mut self, now: Instant, channel: &mut Channel) {
        match &self.stage {
            Stage::Running(running) if running.is_over() => self.be_idle(now, channel),
            Stage::Running(running) => self.deadline = Some(running.next_timeout()),
            Stage::Idle | Stage::Preparing(_) => {}
        }
    }

    /// Whether a message is about the current measurement, rather than one that was over when the message arrived.
    pub(super) fn is_current(&self, measurement: u32) -> Result<bool, WireError> {
        if measurement > self.number {
            return Err(WireError::broken(format!("there is no measurement {measurement}")));
        }
        Ok(measurement == self.number && !self.is_idle())
    }
}
