//! From the client's OK to the last line about the measurement.

use std::time::Instant;

use goodput_model::{Known, Sample};

use super::super::intervals::Intervals;
use super::super::{BEGIN_PAUSE, DRAIN_TIMEOUT, FLOWS_TIMEOUT, GRACE_TIME, OURS, report};
use super::{ClientRequest, ServerSession, State};
use crate::check;
use crate::protocols::goodput::times::after_s;
use crate::session::{Action, Input};

/// What a client of nuttcp reports about itself.
const UNREPORTED: &str = "a nuttcp client reports nothing about itself";

/// The transfer of a measurement that has begun.
pub struct Transfer {
    asked: Box<ClientRequest>,
    intervals: Intervals,
    finishing: bool,
    last: Option<Box<Sample>>,
}

impl Transfer {
    fn new(asked: Box<ClientRequest>) -> Self {
        let intervals = Intervals::new(&asked.parameters);
        Self { asked, intervals, finishing: false, last: None }
    }

    /// Whether the client sends.
    pub fn client_sends(&self) -> bool {
        self.asked.parameters.client_sends
    }

    /// Whether the host was asked to finish.
    pub fn is_finishing(&self) -> bool {
        self.finishing
    }

    /// Whether a client may end its half of the control connection: a receiver that wants no more,
    /// or a sender of datagrams that is done.
    pub fn may_be_interrupted(&self) -> bool {
        self.asked.parameters.udp || !self.client_sends()
    }
}

impl ServerSession {
    /// The host expects the flows: now the client may send.
    pub(super) fn expecting(&mut self, now: Instant) {
        self.third_party_begun(now);
        match std::mem::replace(&mut self.state, State::Over) {
            State::Preparing(asked) => {
                self.out.send(format!("OK v{OURS}\n"));
                self.enter(State::Expecting(asked), now + FLOWS_TIMEOUT);
            }
            other => self.state = other,
        }
    }

    pub(super) fn flows_ready(&mut self, now: Instant) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Expecting(asked) => {
                let until = self.finish_at(now, &asked);
                self.out.act(Action::Begin);
                self.enter(State::Running(Box::new(Transfer::new(asked))), until);
            }
            other => self.state = other,
        }
    }

    /// When this end ends the measurement: a sender when its time is up; a receiver some time after
    /// the client should have ended it.
    fn finish_at(&self, now: Instant, asked: &ClientRequest) -> Instant {
        let own = Some(asked.parameters.timeout_s).filter(|seconds| *seconds > 0.0);
        let longest = self.config.limits.duration_s;
        let seconds = own.or(check::duration_s(&asked.plan)).unwrap_or(longest);
        let at = after_s(now, seconds);
        match (asked.parameters.client_sends, asked.parameters.udp) {
            (true, _) => at + GRACE_TIME,
            (false, true) => at + BEGIN_PAUSE,
            (false, false) => at,
        }
    }

    /// The client sends something although it should be silent.
    pub(super) fn interrupted(&mut self, now: Instant) {
        if let State::Running(running) = &self.state
            && running.may_be_interrupted()
        {
            self.finish(now);
        }
    }

    pub(super) fn finish(&mut self, now: Instant) {
        if let State::Running(running) = &mut self.state
            && !std::mem::replace(&mut running.finishing, true)
        {
            self.deadline = now + DRAIN_TIMEOUT;
            self.out.act(Action::Finish);
        }
    }

    /// Takes an input that matters only while payload moves.
    pub(super) fn take_running(&mut self, now: Instant, input: Input) {
        let State::Running(running) = &mut self.state else { return };
        match input {
            Input::Sampled(sample) => {
                let lines = running.intervals.lines(&sample);
                if !lines.is_empty() {
                    self.out.send(lines);
                }
            }
            Input::Finish(_) => self.finish(now),
            Input::Ended(last) => {
                running.last = Some(last);
                self.deadline = now + DRAIN_TIMEOUT;
            }
            Input::Report(_) => self.report(),
            // Inputs of a client's session don't occur here.
            _ => {}
        }
    }

    /// Reports this end's counts, which is the whole report.
    fn report(&mut self) {
        let State::Running(running) = &mut self.state else { return };
        let Some(last) = running.last.take() else { return };
        let mut text = String::from(running.intervals.close());
        text.push_str(&report::lines(&running.asked, &last, &self.config));
        self.out.send(text);
        self.out.act(Action::PeerReported(Known::missing(UNREPORTED)));
        self.end();
    }
}
