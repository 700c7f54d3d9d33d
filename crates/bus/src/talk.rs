//! Questions with an answer, and news: nothing of this is stored.

use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Message, Request, Subscriber};
use futures_util::StreamExt;
use serde::Serialize;

use crate::connect::{Bus, json};
use crate::error::BusError;

impl Bus {
    /// Asks whoever answers at `subject`, for at most `patience`. `None`: nobody hears what is asked there.
    ///
    /// # Errors
    /// There is no answer in time, or the connection is closed.
    pub async fn ask<T: Serialize>(
        &self,
        subject: &str,
        question: &T,
        patience: Duration,
    ) -> Result<Option<Vec<u8>>, BusError> {
        let operation = format!("ask {subject}");
        let question = Request::new().payload(json(question)?.into()).timeout(Some(patience));
        let answer = async {
            match self.client.send_request(subject.to_owned(), question).await {
                Ok(message) => Ok(Some(message.payload.to_vec())),
                Err(why) if why.kind() == RequestErrorKind::NoResponders => Ok(None),
                Err(why) => Err(BusError::request(operation.clone())(why)),
            }
        };
        self.with_rights(&[subject.to_owned()], &operation, answer).await
    }

    /// The questions at `subject`, from now on.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn questions(&self, subject: &str) -> Result<Questions, BusError> {
        let asked = self.client.subscribe(subject.to_owned()).await;
        let asked = asked.map_err(BusError::request(format!("hear questions at {subject}")))?;
        // The server has them from here on.
        let flushed = self.client.flush().await;
        flushed.map_err(BusError::request(format!("hear questions at {subject}")))?;
        Ok(Questions { bus: self.clone(), asked, subject: subject.to_owned() })
    }

    /// Tells whoever listens at `subject`.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn tell<T: Serialize>(&self, subject: &str, news: &T) -> Result<(), BusError> {
        let told = self.client.publish(subject.to_owned(), json(news)?.into()).await;
        told.map_err(BusError::request(format!("tell {subject}")))
    }
}

/// Questions as they come.
pub struct Questions {
    bus: Bus,
    asked: Subscriber,
    subject: String,
}

/// A question.
pub struct Question {
    bus: Bus,
    message: Message,
}

impl Questions {
    /// Waits for the next question. May be dropped while it waits.
    ///
    /// # Errors
    /// The connection is closed, or this user may not hear them.
    pub async fn next(&mut self) -> Result<Question, BusError> {
        let Self { bus, asked, subject } = self;
        let wait = format!("hear questions at {subject}");
        let next = async {
            match asked.next().await {
                Some(message) => Ok(Question { bus: bus.clone(), message }),
                None => Err(BusError::because(wait.clone(), "the connection is closed")),
            }
        };
        bus.while_heard(subject, &wait, next).await
    }
}

impl Question {
    /// Where it is asked.
    pub fn subject(&self) -> &str {
        &self.message.subject
    }

    /// What is asked.
    pub fn body(&self) -> &[u8] {
        &self.message.payload
    }

    /// Answers whoever hears answers at the subjects below `inbox`. Whoever wants no answer gets none.
    ///
    /// # Errors
    /// The answer is wanted elsewhere: whoever asks could use the rights of who answers. Or the connection is closed.
    pub async fn answer<T: Serialize>(self, inbox: &str, answer: &T) -> Result<(), BusError> {
        let Some(reply) = self.message.reply else { return Ok(()) };
        if !is_below(&reply, inbox) {
            let why = format!("it is wanted at {reply}, which is not below {inbox}");
            return Err(BusError::because("answer a question", why));
        }
        let told = self.bus.client.publish(reply, json(answer)?.into()).await;
        told.map_err(BusError::request("answer a question"))
    }
}

/// Whether a subject has more words than `inbox`, and begins with them.
fn is_below(subject: &str, inbox: &str) -> bool {
    subject.strip_prefix(inbox).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_has_the_subjects_below_it_alone() {
        assert!(is_below("_INBOX.agent.b.x.1", "_INBOX.agent.b"));
        for other in ["_INBOX.agent.b", "_INBOX.agent.bc.x", "_INBOX.agent", "$KV.turns.fence", ""]
        {
            assert!(!is_below(other, "_INBOX.agent.b"), "{other}");
        }
    }
}
