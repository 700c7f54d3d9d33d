//! Requests about settings of this host: only from an authenticated client, one at a time.

use std::collections::VecDeque;
use std::time::Instant;

use super::super::channel::Channel;
use super::super::messages::{Answer, AskSetting, Message, SettingAnswer};
use crate::error::WireError;
use crate::session::{Action, SettingRefusal};

/// Requests that a client may have waiting; goodput's client waits for each answer.
const MAX_WAITING: usize = 16;

/// Requests that wait for their turn, and the pending one.
#[derive(Default)]
pub(super) struct Requests {
    permitted: bool,
    waiting: VecDeque<AskSetting>,
    under_way: Option<u32>,
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
            return answer(now, channel, question.id, Err(refusal));
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
        let Some(id) = self.under_way.take() else { return Ok(()) };
        answer(now, channel, id, outcome)?;
        self.act(channel);
        Ok(())
    }

    fn act(&mut self, channel: &mut Channel) {
        if self.under_way.is_none()
            && let Some(AskSetting { id, request }) = self.waiting.pop_front()
        {
            self.under_way = Some(id);
            channel.act(Action::Setting(request));
        }
    }
}

fn answer(
    now: Instant,
    channel: &mut Channel,
    id: u32,
    outcome: Result<String, SettingRefusal>,
) -> Result<(), WireError> {
    let answer = match outcome {
        Ok(value) => Answer::Value(value),
        Err(refusal) => Answer::Refused(refusal),
    };
    channel.send(now, &Message::SettingDone(SettingAnswer { id, answer }))
}
