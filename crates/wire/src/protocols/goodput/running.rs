//! A measurement from its first payload until both reports are there: the same at both ends.

use std::time::{Duration, Instant};

use goodput_model::{End, FarHeads, Known, MAX_HEADS_BYTES, Sample};

use super::channel::Channel;
use super::messages::{Captured, Finish, Message, OneSample, Report};
use super::times::{FLUSH_TIMEOUT, GRACE_TIME, REPORTS_TIMEOUT, after_s};
use crate::error::WireError;
use crate::session::{Action, Input};

/// Samples that a peer may send in a second, and at once: many more than any end sends.
const SAMPLES_PER_S: u64 = 200;

/// A measurement that has begun.
pub(super) struct Running {
    measurement: u32,
    began: Instant,
    /// Server: when the server ends the measurement on its own, and why.
    finish_at: Option<(Instant, &'static str)>,
    until: Instant,
    finishing: bool,
    reported: bool,
    peer_reported: bool,
    peer_samples: u64,
    /// Bytes of packed heads that the peer may still send.
    heads_left: usize,
}

/// How long payload may move, seconds.
#[derive(Clone, Copy)]
pub(super) enum Longest {
    /// As long as the plan says.
    Planned(f64),
    /// The plan has no end of its own, and the server allows this much.
    Allowed(f64),
}

/// Bytes of packed heads in one message: as JSON, a tenth of the longest one.
const PART_BYTES: usize = 256 << 10;

impl Running {
    /// The client's view: payload moves for at most `longest_s`. The client waits a little longer than the server, to
    /// receive the server's reason. A driver that knows what is still queued, and whether the peer makes progress,
    /// gives up earlier.
    /// `captures`: the server has agreed to send heads of packets.
    pub(super) fn at_client(
        measurement: u32,
        now: Instant,
        longest_s: f64,
        captures: bool,
    ) -> Self {
        let until = after_s(now, longest_s) + FLUSH_TIMEOUT + REPORTS_TIMEOUT + GRACE_TIME;
        let heads_left = if captures { MAX_HEADS_BYTES } else { 0 };
        Self { heads_left, ..Self::new(measurement, now, None, until) }
    }

    /// The server's view: payload may move for `longest` and a little longer.
    pub(super) fn at_server(measurement: u32, now: Instant, longest: Longest) -> Self {
        let (Longest::Planned(longest_s) | Longest::Allowed(longest_s)) = longest;
        let why = match longest {
            Longest::Planned(_) => {
                "the server ended it on its own, because no word of its end came in time"
            }
            Longest::Allowed(_) => "the server's time limit for payload is over",
        };
        let end = after_s(now, longest_s);
        Self::new(measurement, now, Some((end + GRACE_TIME, why)), end + FLUSH_TIMEOUT)
    }

    fn new(
        measurement: u32,
        began: Instant,
        finish_at: Option<(Instant, &'static str)>,
        until: Instant,
    ) -> Self {
        Self {
            measurement,
            began,
            finish_at,
            until,
            finishing: false,
            reported: false,
            peer_reported: false,
            peer_samples: 0,
            heads_left: 0,
        }
    }

    /// The number of the measurement, if the message is about one that has begun.
    pub(super) fn number_in(message: &Message) -> Option<u32> {
        match message {
            Message::Sample(sample) => Some(sample.measurement),
            Message::Finish(finish) => Some(finish.measurement),
            Message::Report(report) => Some(report.measurement),
            Message::Captured(captured) => Some(captured.measurement),
            _ => None,
        }
    }

    /// Takes the driver's input on this measurement; other inputs don't matter while payload moves.
    pub(super) fn take(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        input: Input,
    ) -> Result<(), WireError> {
        match input {
            Input::Sampled(sample) => self.sampled(now, channel, sample),
            Input::Finish(why) => self.finish(now, channel, why, false),
            Input::FinishSoon => self.finish(now, channel, None, true),
            Input::Captured(heads) => self.captured(now, channel, *heads),
            Input::Report(end) => self.report(now, channel, end),
            _ => Ok(()),
        }
    }

    /// The driver ends the payload.
    fn finish(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        why: Option<String>,
        soon: bool,
    ) -> Result<(), WireError> {
        if self.finishing {
            return Ok(());
        }
        channel.send(now, &Message::Finish(Finish { measurement: self.measurement, why, soon }))?;
        self.begin_to_finish(channel, soon);
        Ok(())
    }

    /// Takes the peer's message about this measurement.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        message: Message,
    ) -> Result<(), WireError> {
        match message {
            Message::Sample(sample) => self.peer_sampled(now, channel, sample.sample),
            Message::Captured(captured) => self.peer_captured(channel, captured.part),
            Message::Report(report) => self.peer_reported(channel, report.end),
            Message::Finish(finish) => {
                self.peer_finished(channel, finish);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The peer ends the payload.
    fn peer_finished(&mut self, channel: &mut Channel, finish: Finish) {
        if let Some(why) = finish.why {
            channel.act(Action::Note(why));
        }
        self.begin_to_finish(channel, finish.soon);
    }

    fn begin_to_finish(&mut self, channel: &mut Channel, soon: bool) {
        if !self.finishing {
            self.finishing = true;
            channel.act(if soon { Action::FinishSoon } else { Action::Finish });
        }
    }

    /// A sample of this end.
    fn sampled(
        &self,
        now: Instant,
        channel: &mut Channel,
        sample: Box<Sample>,
    ) -> Result<(), WireError> {
        if self.reported {
            return Ok(());
        }
        let measurement = self.measurement;
        channel.send(now, &Message::Sample(OneSample { measurement, sample }))
    }

    /// A sample of the peer.
    fn peer_sampled(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        sample: Box<Sample>,
    ) -> Result<(), WireError> {
        self.peer_samples += 1;
        let elapsed = now.saturating_duration_since(self.began) + Duration::from_secs(1);
        if self.peer_samples > SAMPLES_PER_S * elapsed.as_secs() {
            return Err(WireError::Protocol(format!("more than {SAMPLES_PER_S} samples a second")));
        }
        channel.act(Action::PeerSampled(sample));
        Ok(())
    }

    /// Heads of packets that this end captured.
    fn captured(
        &self,
        now: Instant,
        channel: &mut Channel,
        heads: FarHeads,
    ) -> Result<(), WireError> {
        if self.reported {
            return Ok(());
        }
        let measurement = self.measurement;
        heads.parts(PART_BYTES).into_iter().map(Box::new).try_for_each(|part| {
            channel.send(now, &Message::Captured(Captured { measurement, part }))
        })
    }

    /// Heads of packets that the peer captured.
    fn peer_captured(
        &mut self,
        channel: &mut Channel,
        part: Box<FarHeads>,
    ) -> Result<(), WireError> {
        // A part without heads has at least the counts of the end.
        let bytes = part.heads.bytes().max(1);
        let left = self.heads_left.checked_sub(bytes).filter(|_| !self.peer_reported);
        self.heads_left =
            left.ok_or_else(|| WireError::broken("it sends more captured packets than agreed"))?;
        channel.act(Action::PeerCaptured(part));
        Ok(())
    }

    /// The report of this end.
    fn report(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        end: Known<Box<End>>,
    ) -> Result<(), WireError> {
        if self.reported {
            return Ok(());
        }
        self.reported = true;
        // The peer gets its full time after this, however long this end took.
        self.until = self.finish_at.map_or(self.until, |_| now + REPORTS_TIMEOUT);
        let measurement = self.measurement;
        channel.send(now, &Message::Report(Report { measurement, end }))
    }

    /// The report of the peer. The peer's payload has ended, so this end's must end too.
    fn peer_reported(
        &mut self,
        channel: &mut Channel,
        end: Known<Box<End>>,
    ) -> Result<(), WireError> {
        if self.peer_reported {
            return Err(WireError::Protocol("it reported twice".into()));
        }
        self.peer_reported = true;
        self.begin_to_finish(channel, false);
        channel.act(Action::PeerReported(end));
        Ok(())
    }

    /// Whether both reports are there.
    pub(super) fn is_over(&self) -> bool {
        self.reported && self.peer_reported
    }

    /// Why the server must end the payload, if the client did not in time.
    pub(super) fn overdue(&self, now: Instant) -> Option<&'static str> {
        self.finish_at.filter(|(at, _)| !self.finishing && now >= *at).map(|(_, why)| why)
    }

    /// When there is something to do.
    pub(super) fn next_timeout(&self) -> Instant {
        let finish_at = self.finish_at.filter(|_| !self.finishing);
        finish_at.map_or(self.until, |(at, _)| at.min(self.until))
    }
}
