//! Outcomes: one for each id, whoever is first.

use std::time::Duration;

use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::{Config, DirectGetErrorKind, DiscardPolicy, Stream};
use async_nats::{HeaderMap, HeaderValue, Subscriber};
use futures_util::StreamExt;
use serde::Serialize;

use crate::connect::{Bus, json};
use crate::error::BusError;

/// Outcomes that are kept for a while.
#[derive(Debug, Clone)]
pub struct Outcomes {
    bus: Bus,
    stream: Stream,
    subject: String,
}

impl Bus {
    /// The outcomes of this name on the subjects `subject`.ID, made on first use. An id is one word
    /// or several with dots between them. Each is gone after `expiry`, and the oldest go before that if all take more than
    /// `most_bytes`, so that new ones have room. A server that can't reserve so much reserves less, or nothing.
    ///
    /// # Errors
    /// The server has no JetStream, or refuses the stream.
    pub async fn outcomes(
        &self,
        name: &str,
        subject: &str,
        expiry: Duration,
        most_bytes: u64,
    ) -> Result<Outcomes, BusError> {
        let config = Config {
            name: name.into(),
            subjects: vec![format!("{subject}.>")],
            max_age: expiry,
            max_bytes: i64::try_from(most_bytes).unwrap_or(i64::MAX),
            discard: DiscardPolicy::Old,
            // Reading one is then a subject of its own, which a server can allow to those whom it concerns.
            allow_direct: true,
            ..Config::default()
        };
        let stream = self.stream(config).await?;
        Ok(Outcomes { bus: self.clone(), stream, subject: subject.into() })
    }
}

/// An outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// What was published.
    pub body: Vec<u8>,
    /// When it was stored, seconds since 1970, by the clock of the server.
    pub stored_s: f64,
}

/// How much room the outcomes have at the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// What they take, bytes.
    pub bytes: u64,
    /// What they may take, bytes; absent: as much as the server has.
    pub most_bytes: Option<u64>,
    /// When the oldest of them came, seconds since 1970, by the clock of the server.
    pub oldest_s: f64,
}

impl Room {
    /// Whether the oldest have to go for the next ones: less than a tenth is free.
    pub fn is_full(&self) -> bool {
        self.most_bytes.is_some_and(|most| self.bytes > most / 10 * 9)
    }
}

impl Outcomes {
    /// How much room they have.
    ///
    /// # Errors
    /// The server does not answer, or this user may not ask.
    pub async fn room(&self) -> Result<Room, BusError> {
        let name = self.name();
        let operation = format!("look at the stream {name}");
        let subjects = [format!("STREAM.INFO.{name}")];
        let info =
            async { self.stream.get_info().await.map_err(BusError::request(operation.clone())) };
        let info = self.bus.with_rights(&subjects, &operation, info).await?;
        Ok(Room {
            bytes: info.state.bytes,
            most_bytes: u64::try_from(info.config.max_bytes).ok().filter(|most| *most > 0),
            oldest_s: info.state.first_timestamp.unix_timestamp() as f64,
        })
    }

    /// The name of their stream.
    pub fn name(&self) -> &str {
        &self.stream.cached_info().config.name
    }

    /// Publishes the outcome of `id`; on return it is stored. `false`: there is one already, which stays.
    ///
    /// # Errors
    /// The server does not answer, the outcome is too long, or the stream is full.
    pub async fn put_once<T: Serialize>(&self, id: &str, outcome: &T) -> Result<bool, BusError> {
        let operation = self.operation("publish", id);
        let message = json(outcome)?;
        let mut headers = HeaderMap::new();
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, HeaderValue::from(0_u64));
        let stored = async {
            let sent =
                self.bus.jetstream.publish_with_headers(self.of(id), headers, message.into());
            match sent.await {
                Ok(stored) => stored.await.map(drop),
                Err(why) => Err(why),
            }
        };
        let stored = async {
            match stored.await {
                Ok(()) => Ok(true),
                Err(why) if why.kind() == PublishErrorKind::WrongLastSequence => Ok(false),
                Err(why) => Err(BusError::request(operation.clone())(why)),
            }
        };
        self.bus.with_rights(&[self.of(id)], &operation, stored).await
    }

    /// The outcome of `id`, if there is one.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn get(&self, id: &str) -> Result<Option<Published>, BusError> {
        let operation = self.operation("read", id);
        let found = async {
            match self.stream.direct_get_last_for_subject(self.of(id)).await {
                Ok(message) => Ok(Some(Published {
                    body: message.payload.to_vec(),
                    stored_s: message.time.unix_timestamp_nanos() as f64 / 1e9,
                })),
                Err(why) if why.kind() == DirectGetErrorKind::NotFound => Ok(None),
                Err(why) => Err(BusError::request(operation.clone())(why)),
            }
        };
        self.bus.with_rights(&[self.of(id)], &operation, found).await
    }

    /// Hears of the outcome of `id` from now on. It may be missed while the connection is broken, so also ask for it.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn hear(&self, id: &str) -> Result<Heard, BusError> {
        let heard = self.bus.client.subscribe(self.of(id)).await;
        heard.map(Heard::new).map_err(BusError::request(self.operation("hear of", id)))
    }

    fn operation(&self, verb: &str, id: &str) -> String {
        let stream = self.name();
        format!("{verb} the outcome of {id} (stream {stream})")
    }

    fn of(&self, id: &str) -> String {
        format!("{}.{id}", self.subject)
    }
}

/// What is heard of an outcome, or of a key.
pub struct Heard(Subscriber);

impl Heard {
    pub(crate) fn new(subscriber: Subscriber) -> Self {
        Self(subscriber)
    }

    /// Waits for the next message. May be dropped while it waits.
    pub async fn next(&mut self) -> Vec<u8> {
        match self.0.next().await {
            Some(message) => message.payload.to_vec(),
            // The connection is closed for good: whoever waits also asks.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_full_when_the_oldest_have_to_go() {
        let room = |bytes, most_bytes| Room { bytes, most_bytes, oldest_s: 0.0 };
        assert!(room(95, Some(100)).is_full());
        assert!(!room(80, Some(100)).is_full());
        assert!(!room(u64::MAX, None).is_full());
    }
}
