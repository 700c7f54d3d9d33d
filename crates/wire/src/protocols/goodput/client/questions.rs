//! The client's questions about settings of the far end: one after the other, each answered.

use std::collections::VecDeque;
use std::time::Instant;

use super::super::channel::Channel;
use super::super::messages::{Answer, AskSetting, Message, SettingAnswer};
use super::super::times::SETTING_TIMEOUT;
use crate::error::WireError;
use crate::session::{Action, SettingRefusal, SettingRequest};

/// What a server knows about settings beyond reading and changing them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Knows {
    /// It checks values without a change.
    pub(super) checks: bool,
    /// It puts back changes that nobody confirms.
    pub(super) confirms: bool,
    /// It echoes several texts at once.
    pub(super) echoes_all: bool,
    /// It names its place among hosts, and lets a client hold it.
    pub(super) takes_turns: bool,
}

/// Questions that wait for their turn, and the pending one.
#[derive(Default)]
pub(super) struct Questions {
    waiting: VecDeque<SettingRequest>,
    /// When the pending question must be answered.
    asked_until: Option<Instant>,
    /// Number of the last question that was asked.
    id: u32,
    knows: Knows,
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

    /// The greeting is over. What the server `knows` depends on its age.
    pub(super) fn greeted(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        knows: Knows,
    ) -> Result<(), WireError> {
        self.knows = knows;
        self.ask_next(now, channel)
    }

    fn ask_next(&mut self, now: Instant, channel: &mut Channel) -> Result<(), WireError> {
        if self.asked_until.is_some() {
            return Ok(());
        }
        let Some(request) = self.waiting.pop_front() else { return Ok(()) };
        let request = match self.known(request) {
            Ok(request) => request,
            Err(answer) => {
                channel.act(Action::SettingAnswered(Ok(answer)));
                return self.ask_next(now, channel);
            }
        };
        self.id += 1;
        self.asked_until = Some(now + SETTING_TIMEOUT);
        channel.send(now, &Message::Setting(AskSetting { id: self.id, request }))
    }

    /// The request as the server knows it, or the answer in its place.
    fn known(&self, request: SettingRequest) -> Result<SettingRequest, String> {
        match request {
            // Only the change itself can be refused there.
            SettingRequest::Check(_) if !self.knows.checks => Err(String::new()),
            SettingRequest::Try(setting, value) if !self.knows.confirms => {
                Ok(SettingRequest::Apply(setting, value))
            }
            SettingRequest::Echo(text) if !self.knows.confirms => Err(text),
            SettingRequest::EchoAll(texts) if !self.knows.confirms => Err(texts.concat()),
            SettingRequest::EchoAll(texts) if !self.knows.echoes_all => {
                Ok(SettingRequest::Echo(texts.into_iter().next().unwrap_or_default()))
            }
            SettingRequest::Confirm if !self.knows.confirms => Err(String::new()),
            SettingRequest::Place | SettingRequest::Hold if !self.knows.takes_turns => {
                Err(String::new())
            }
            request => Ok(request),
        }
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
            Answer::Echoed(texts) => Ok(texts.concat()),
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
            let knows = Knows { checks, ..Knows::default() };
            questions.greeted(now, &mut channel, knows).unwrap();
            let output = channel.outbox_mut().poll();
            let is_answered = matches!(&output, Some(Output::Do(Action::SettingAnswered(Ok(_)))));
            assert!(is_answered || checks, "{output:?}");
            assert_eq!(questions.next_timeout().is_some(), checks);
        }
    }

    #[test]
    fn a_server_that_puts_nothing_back_on_its_own_is_asked_for_the_change_alone() {
        let tried = || SettingRequest::Try("link.mtu@eth0".parse().unwrap(), "9000".into());
        let applied = SettingRequest::Apply("link.mtu@eth0".parse().unwrap(), "9000".into());
        let known = |confirms| {
            let knows = Knows { checks: true, confirms, echoes_all: confirms, ..Knows::default() };
            let questions = Questions { knows, ..Questions::default() };
            [tried(), SettingRequest::Echo("abc".into()), SettingRequest::Confirm]
                .map(|request| questions.known(request))
        };
        assert_eq!(known(false), [Ok(applied), Err("abc".into()), Err(String::new())]);
        assert!(known(true).iter().all(Result::is_ok));
    }

    #[test]
    fn a_server_that_takes_no_turns_is_neither_placed_nor_held() {
        for takes_turns in [false, true] {
            let knows = Knows { takes_turns, ..Knows::default() };
            let questions = Questions { knows, ..Questions::default() };
            for request in [SettingRequest::Place, SettingRequest::Hold] {
                let known = questions.known(request.clone());
                assert_eq!(known, if takes_turns { Ok(request) } else { Err(String::new()) });
            }
        }
    }

    #[test]
    fn a_server_that_echoes_one_text_is_asked_for_the_first_one() {
        let texts = || SettingRequest::EchoAll(vec!["abc".into(), "def".into()]);
        let known = |confirms, echoes_all| {
            let knows = Knows { checks: true, confirms, echoes_all, ..Knows::default() };
            Questions { knows, ..Questions::default() }.known(texts())
        };
        assert_eq!(known(true, true), Ok(texts()));
        assert_eq!(known(true, false), Ok(SettingRequest::Echo("abc".into())));
        assert_eq!(known(false, false), Err("abcdef".into()), "nothing is confirmed there");
    }
}
