//! The transfer: from moving payload until the server has reported its counts.

use std::time::Instant;

use goodput_model::{Direction, Known, Plan, Sample, Transport};

use super::super::{DRAIN_TIMEOUT, GRACE_TIME};
use super::{ClientSession, State};
use crate::check;
use crate::protocols::goodput::times::after_s;
use crate::session::{Action, Input};

/// Why the server's own view is missing.
const UNREPORTED: &str = "a nuttcp server reports only totals";

/// The transfer of a measurement that has begun.
pub struct Transfer {
    plan: Box<Plan>,
    finishing: bool,
    /// The last sample of this end, once its flows have ended.
    ended: Option<Box<Sample>>,
    /// Whether the server has reported everything, and closed.
    pub told: bool,
}

impl ClientSession {
    /// Takes an input of a measurement that is ready or has begun.
    pub(super) fn take_running(&mut self, now: Instant, input: Input) {
        match input {
            Input::Begin => self.begin(now),
            Input::Finish(_) => self.finish(),
            Input::Ended(last) => self.ended(now, last),
            // The protocol can't carry samples, reports and questions.
            _ => {}
        }
    }

    fn begin(&mut self, now: Instant) {
        let State::Ready(plan) = &self.state else { return };
        let plan = plan.clone();
        let until =
            after_s(now, check::duration_s(&plan).unwrap_or(f64::MAX)) + DRAIN_TIMEOUT + GRACE_TIME;
        let running = Transfer { plan, finishing: false, ended: None, told: false };
        self.enter(State::Running(running), Some(until));
        self.out.act(Action::Begin);
    }

    /// The driver ends the payload. A far sender stops at the requested length, or earlier if it
    /// finds something to read on the control connection, such as its end (lines 7391 to 7404).
    fn finish(&mut self) {
        let State::Running(running) = &mut self.state else { return };
        if std::mem::replace(&mut running.finishing, true) {
            return;
        }
        if running.plan.direction == Direction::Reverse && !running.told {
            self.out.end_sending();
        }
        self.out.act(Action::Finish);
    }

    /// A UDP receiver that has missed every end marker ends with the control connection (lines 1400
    /// to 1408).
    fn ended(&mut self, now: Instant, last: Box<Sample>) {
        let State::Running(running) = &mut self.state else { return };
        if running.ended.is_some() {
            return;
        }
        running.ended = Some(last);
        if running.plan.transport == Transport::Udp && !running.told {
            self.out.end_sending();
        }
        self.deadline = Some(now + DRAIN_TIMEOUT);
        self.conclude();
    }

    /// Continues when both ends have ended.
    pub(super) fn conclude(&mut self) {
        let State::Running(Transfer { plan, ended: Some(last), told: true, .. }) = &self.state
        else {
            return;
        };
        let totals = self.account.totals(plan, self.theirs, last);
        self.out.act(Action::PeerTotals(Box::new(totals)));
        self.out.act(Action::PeerReported(Known::missing(UNREPORTED)));
        self.be_over();
    }
}
