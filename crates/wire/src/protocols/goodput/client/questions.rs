//! The client's questions about settings of the far end: one after the other, each answered.

use std::collections::VecDeque;
use std::time::Instant;

use super::super::channel::Channel;
use super::super::messages::{Answer, AskSetting, Message, SettingAnswer};
use super::super::times::SETTING_TIMEOUT;
use crate::error::WireError;
use crate::session::{Action, SettingRefusal, SettingRequest};

/// Questions that wait for their turn, and the pending one.
#[derive(Default)]
pub(super) struct Questions {
    waiting: VecDeque<SettingRequest>,
    /// When the pending question must be answered.
    asked_until: Option<Instant>,
    /// Number of the last question that was asked.
    id: u32,
    /// Whether the server checks values.
    checks: bool,
}

impl Questions {
    /// Asks when the question's turn comes; impossible before the greeting is over.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        request: SettingRequest,
        greeted: bool,
    ) -> Result<(), WireError> {
        self.waiting.push_back(request);
        if greeted { self.ask_next(now, channel) } else { Ok(()) }
    }

    /// The greeting is over; the server `checks` values, or is too old for that.
    pub(super) fn greeted(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        checks: bool,
    ) -> Result<(), WireError> {
        self.checks = checks;
        self.ask_next(now, channel)
    }

    fn ask_next(&mut self, now: Instant, channel: &mut Channel) -> Result<(), WireError> {
        if self.asked_until.is_some() {
            return Ok(());
        }
        let Some(request) = self.waiting.pop_front() else { return Ok(()) };
        if matches!(request, SettingRequest::Check(_)) && !self.checks {
            // Only the change itself can be refused there.
            channel.act(Action::SettingAnswered(Ok(String::new())));
            return self.ask_next(now, channel);
        }
        self.id += 1;
        self.asked_until = Some(now + SETTING_TIMEOUT);
        channel.send(now, &Message::Setting(AskSetting { id: self.id, request }))
    }

    /// The server answers; a late answer is ignored.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        answer: SettingAnswer,
    ) -> Result<(), WireError> {
        if self.asked_until.is_none() || answer.id != self.id {
            return Ok(());
        }
        self.asked_until = None;
        channel.act(Action::SettingAnswered(match answer.answer {
            Answer::Value(value) => Ok(value),
            Answer::Refused(refusal) => Err(refusal),
        }));
        self.ask_next(now, channel)
    }

    /// Gives up on a question that was not answered in time.
    pub(super) fn expire(&mut self, now: Instant, channel: &mut Channel) -> Result<(), WireError> {
        if self.asked_until.is_none_or(|until| now < until) {
            return Ok(());
        }
        self.asked_until = None;
        let why = format!("the far end did not answer within {} s", SETTING_TIMEOUT.as_secs());
        channel.act(Action::SettingAnswered(Err(SettingRefusal { why, ..Default::default() })));
        self.ask_next(now, channel)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.asked_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::origin;
    use crate::session::Output;

    #[test]
    fn a_server_that_does_not_check_is_not_asked_to() {
        let now = origin();
        for checks in [false, true] {
            let (mut questions, mut channel) = (Questions::default(), Channel::new(now));
            let setting = "sysctl.net.ipv4.tcp_rmem".parse().unwrap();
            let request = SettingRequest::Check(vec![(setting, "1 2 3".into())]);
            questions.ask(now, &mut channel, request, false).unwrap();
            questions.greeted(now, &mut channel, checks).unwrap();
            let output = channel.outbox_mut().poll();
            let is_answered = matches!(&output, Some(Output::Do(Action::SettingAnswered(Ok(_)))));
            assert!(is_answered || checks, "{output:?}");
            assert_eq!(questions.next_timeout().is_some(), checks);
        }
    }
}
