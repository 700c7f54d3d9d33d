//! A queue of work: what is put there is delivered to its receiver until the receiver says that it is done.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{Config, RetentionPolicy, Stream};
use async_nats::jetstream::{AckKind, Context, Message};
use futures_util::StreamExt;
use serde::Serialize;

use crate::connect::{Bus, json};
use crate::error::BusError;

/// How long a request for the next message waits at the server, and how often the server says that it still does.
const PULL: Duration = Duration::from_secs(30);
const PULL_HEARTBEAT: Duration = Duration::from_secs(5);

/// A queue of work with a part for each receiver.
#[derive(Debug, Clone)]
pub struct Queue {
    jetstream: Context,
    stream: Stream,
    subject: String,
}

impl Bus {
    /// The queue of this name on the subjects `subject`.RECEIVER, made on first use. What nobody takes is gone after
    /// `expiry`.
    ///
    /// # Errors
    /// The server has no JetStream, or refuses the stream.
    pub async fn queue(
        &self,
        name: &str,
        subject: &str,
        expiry: Duration,
    ) -> Result<Queue, BusError> {
        let config = Config {
            name: name.into(),
            subjects: vec![format!("{subject}.*")],
            retention: RetentionPolicy::WorkQueue,
            max_age: expiry,
            ..Config::default()
        };
        let stream = self.stream(config).await?;
        Ok(Queue { jetstream: self.jetstream.clone(), stream, subject: subject.into() })
    }
}

impl Queue {
    /// Puts a message there for a receiver; on return it is stored. The server stores a message of the same `id` once
    /// within its window for duplicates (two minutes).
    ///
    /// # Errors
    /// The server does not answer, or the queue is full.
    pub async fn put<T: Serialize>(
        &self,
        receiver: &str,
        id: &str,
        message: &T,
    ) -> Result<(), BusError> {
        let failed = || format!("put {id} into the queue of {receiver}");
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, id);
        let subject = format!("{}.{receiver}", self.subject);
        let sent = self.jetstream.publish_with_headers(subject, headers, json(message)?.into());
        let stored = sent.await.map_err(BusError::request(failed()))?;
        stored.await.map(drop).map_err(BusError::request(failed()))
    }

    /// What is there for a receiver. A message that is not done `patience` after it was delivered, or after the last sign
    /// of work on it, is delivered again; one message is out at a time.
    ///
    /// # Errors
    /// The server does not answer, or refuses the consumer.
    pub async fn inbox(&self, receiver: &str, patience: Duration) -> Result<Inbox, BusError> {
        let failed = || format!("take messages from the queue of {receiver}");
        let config = pull::Config {
            durable_name: Some(receiver.into()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: patience,
            filter_subject: format!("{}.{receiver}", self.subject),
            max_ack_pending: 1,
            ..pull::Config::default()
        };
        let consumer = self.stream.get_or_create_consumer(receiver, config).await;
        let consumer = consumer.map_err(BusError::request(failed()))?;
        let builder = consumer.stream().max_messages_per_batch(1);
        let messages = builder.heartbeat(PULL_HEARTBEAT).expires(PULL).messages().await;
        Ok(Inbox { messages: messages.map_err(BusError::request(failed()))? })
    }
}

/// What is there for a receiver.
pub struct Inbox {
    messages: pull::Stream,
}

impl Inbox {
    /// Waits for the next message. May be dropped while it waits.
    ///
    /// # Errors
    /// The server is away. Ask the queue for another inbox.
    pub async fn next(&mut self) -> Result<Delivery, BusError> {
        match self.messages.next().await {
            Some(Ok(message)) => Ok(Delivery { message }),
            Some(Err(why)) => Err(BusError::request("wait for the next message")(why)),
            None => Err(BusError::request("wait for the next message")("the subscription ended")),
        }
    }
}

/// A message that its receiver works on.
pub struct Delivery {
    message: Message,
}

impl Delivery {
    /// The message.
    pub fn body(&self) -> &[u8] {
        &self.message.payload
    }

    /// Says that the work goes on.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn working(&self) -> Result<(), BusError> {
        let said = self.message.ack_with(AckKind::Progress).await;
        said.map_err(BusError::request("say that the work goes on"))
    }

    /// Says that the work is done; on return the server knows it.
    ///
    /// # Errors
    /// The server does not answer. The message is delivered again.
    pub async fn done(self) -> Result<(), BusError> {
        self.message.double_ack().await.map_err(BusError::request("acknowledge a message"))
    }

    /// Says that the message will never be worked on.
    ///
    /// # Errors
    /// The server does not answer. The message is delivered again.
    pub async fn refuse(self) -> Result<(), BusError> {
        let said = self.message.double_ack_with(AckKind::Term).await;
        said.map_err(BusError::request("refuse a message"))
    }
}
