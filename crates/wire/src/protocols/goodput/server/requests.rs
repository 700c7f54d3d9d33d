//! Requests about settings of this host: only from an authenticated client, one at a time.

use std::collections::VecDeque;
use std::time::Instant;

use super::super::channel::Channel;
use super::super::messages::{Answer, AskSetting, Message, SettingAnswer};
use crate::error::WireError;
use crate::session::{Action, SettingRefusal, SettingRequest};

/// Requests that a client may have waiting; goodput's client waits for each answer.
const MAX_WAITING: usize = 16;

/// Requests that wait for their turn, and the pending one.
#[derive(Default)]
pub(super) struct Requests {
    permitted: bool,
    waiting: VecDeque<AskSetting>,
    under_way: Option<UnderWay>,
}

/// What the host is asked.
struct UnderWay {
    id: u32,
    /// Lengths of the texts of an echo, bytes.
    texts: Option<Vec<usize>>,
}

impl UnderWay {
    fn of(id: u32, request: &SettingRequest) -> Self {
        let texts = match request {
            SettingRequest::EchoAll(texts) => Some(texts.iter().map(String::len).collect()),
            _ => None,
        };
        Self { id, texts }
    }

    /// The answer: the host has put the texts of an echo together, and no text of a message may be as long as all of them.
    fn answer(self, value: String) -> Answer {
        let Some(lengths) = self.texts else { return Answer::Value(value) };
        let mut rest = &value[..];
        let texts = lengths.into_iter().map(|length| {
            let (text, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
            rest = behind;
            text.to_owned()
        });
        Answer::Echoed(texts.collect())
    }
}

impl Requests {
    /// Whether the client may ask: the greeting has proven its identity, or that it knows the token.
    pub(super) fn permit(&mut self, proven: bool) {
        self.permitted = proven;
    }

    /// The client asks.
    pub(super) fn asked(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        question: AskSetting,
    ) -> Result<(), WireError> {
        if !self.permitted {
            let why = "settings of this host are accessible only with its token (--token-file) or a key that its \
                       server knows, and only those that it allows (serve --allow-settings PATTERN)"
                .into();
            let refusal = SettingRefusal { not_permitted: true, why, ..Default::default() };
            return answer(now, channel, question.id, Answer::Refused(refusal));
        }
        if self.waiting.len() >= MAX_WAITING {
            return Err(WireError::broken(format!(
                "more than {MAX_WAITING} settings requested at once"
            )));
        }
        self.waiting.push_back(question);
        self.act(channel);
        Ok(())
    }

    /// The host has finished the pending request.
    pub(super) fn done(
        &mut self,
        now: Instant,
        channel: &mut Channel,
        outcome: Result<String, SettingRefusal>,
    ) -> Result<(), WireError> {
        let Some(under_way) = self.under_way.take() else { return Ok(()) };
        let id = under_way.id;
        let outcome = match outcome {
            Ok(value) => under_way.answer(value),
            Err(refusal) => Answer::Refused(refusal),
        };
        answer(now, channel, id, outcome)?;
        self.act(channel);
        Ok(())
    }

    fn act(&mut self, channel: &mut Channel) {
        if self.under_way.is_none()
            && let Some(AskSetting { id, request }) = self.waiting.pop_front()
        {
            self.under_way = Some(UnderWay::of(id, &request));
            channel.act(Action::Setting(request));
        }
    }
}

fn answer(now: Instant, channel: &mut Channel, id: u32, answer: Answer) -> Result<(), WireError> {
    channel.send(now, &Message::SettingDone(SettingAnswer { id, answer }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_of_several_texts_is_answered_in_as_many() {
        let texts = vec!["abc".to_owned(), "d".into(), String::new()];
        let asked = UnderWay::of(7, &SettingRequest::EchoAll(texts.clone()));
        let Answer::Echoed(back) = asked.answer(texts.concat()) else { panic!("it is an echo") };
        assert_eq!(back, texts);
        let read = UnderWay::of(8, &SettingRequest::Restore);
        assert!(matches!(read.answer("abcd".into()), Answer::Value(value) if value == "abcd"));
    }
}
