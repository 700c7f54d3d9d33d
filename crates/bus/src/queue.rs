//! A queue of work: what is put there is delivered to its receiver until the receiver says that it is done.

use std::error::Error;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{Config, RetentionPolicy, Stream};
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt;
use serde::Serialize;

use crate::connect::{Bus, json};
use crate::error::BusError;
use crate::reasons::in_words;

/// How long a request for the next message waits at the server, and how often the server says that it still does.
const PULL: Duration = Duration::from_secs(30);
const PULL_HEARTBEAT: Duration = Duration::from_secs(5);

/// A queue of work with a part for each receiver.
#[derive(Debug, Clone)]
pub struct Queue {
    bus: Bus,
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
        Ok(Queue { bus: self.clone(), stream, subject: subject.into() })
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
        let operation = format!("put {id} into the queue of {receiver} (stream {})", self.name());
        let message = json(message)?;
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, id);
        let subject = self.of(receiver);
        let stored = async {
            let sent = self.bus.jetstream.publish_with_headers(subject, headers, message.into());
            let stored = match sent.await {
                Ok(stored) => stored.await.map(drop),
                Err(why) => Err(why),
            };
            stored.map_err(BusError::request(operation.clone()))
        };
        self.bus.with_rights(&[self.of(receiver)], &operation, stored).await
    }

    fn name(&self) -> &str {
        &self.stream.cached_info().config.name
    }

    fn of(&self, receiver: &str) -> String {
        format!("{}.{receiver}", self.subject)
    }

    /// What is there for a receiver. A message that is not done `patience` after it was delivered, or after the last sign
    /// of work on it, is delivered again; one message is out at a time.
    ///
    /// # Errors
    /// The server does not answer, or refuses the consumer.
    pub async fn inbox(&self, receiver: &str, patience: Duration) -> Result<Inbox, BusError> {
        let wait = format!("wait for messages ({})", self.consumer(receiver));
        let subjects = self.subjects(receiver);
        let opened = async {
            let consumer =
                self.stream.get_or_create_consumer(receiver, self.config(receiver, patience));
            let consumer = consumer.await.map_err(BusError::request(wait.clone()))?;
            let builder = consumer.stream().max_messages_per_batch(1);
            let messages = builder.heartbeat(PULL_HEARTBEAT).expires(PULL).messages().await;
            messages.map_err(BusError::request(wait.clone()))
        };
        let messages = self.bus.with_rights(&subjects, &wait, opened).await?;
        Ok(Inbox { bus: self.bus.clone(), messages, subjects, wait })
    }

    /// How many messages there are for a receiver: those that it has not got, and those that it works on. `patience` is that of
    /// its inbox.
    ///
    /// # Errors
    /// The server does not answer, or refuses the consumer.
    pub async fn waiting(&self, receiver: &str, patience: Duration) -> Result<u64, BusError> {
        let count = format!("count the messages of a queue ({})", self.consumer(receiver));
        let counted = async {
            // The server is asked whenever there is a consumer.
            let consumer =
                self.stream.get_or_create_consumer(receiver, self.config(receiver, patience));
            let consumer = consumer.await.map_err(BusError::request(count.clone()))?;
            let of = consumer.cached_info();
            Ok(of.num_pending + of.num_ack_pending as u64)
        };
        self.bus.with_rights(&self.subjects(receiver), &count, counted).await
    }

    fn consumer(&self, receiver: &str) -> String {
        format!("consumer {receiver} of the stream {}", self.name())
    }

    fn config(&self, receiver: &str, patience: Duration) -> pull::Config {
        pull::Config {
            durable_name: Some(receiver.into()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: patience,
            filter_subject: self.of(receiver),
            max_ack_pending: 1,
            ..pull::Config::default()
        }
    }

    /// What the requests for a receiver's consumer end with. The one that makes it ends with its filter.
    fn subjects(&self, receiver: &str) -> Vec<String> {
        let stream = self.name();
        let requests = ["INFO", "DURABLE.CREATE", "CREATE", "MSG.NEXT"];
        let requests = requests.map(|request| format!("CONSUMER.{request}.{stream}.{receiver}"));
        let made = format!("CONSUMER.CREATE.{stream}.{receiver}.{}", self.of(receiver));
        requests.into_iter().chain([made]).collect()
    }
}

/// What is there for a receiver.
pub struct Inbox {
    bus: Bus,
    messages: pull::Stream,
    /// What its requests end with.
    subjects: Vec<String>,
    /// What it does, on what.
    wait: String,
}

impl Inbox {
    /// Waits for the next message. May be dropped while it waits.
    ///
    /// # Errors
    /// The server is away. Ask the queue for another inbox.
    pub async fn next(&mut self) -> Result<Delivery, BusError> {
        let Self { bus, messages, subjects, wait } = self;
        let next = async {
            match messages.next().await {
                Some(Ok(message)) => Ok(Delivery { bus: bus.clone(), message }),
                Some(Err(why)) => Err(BusError::request(wait.clone())(why)),
                None => Err(BusError::because(wait.clone(), "the subscription ended")),
            }
        };
        bus.unless_refused(subjects, wait, next).await
    }
}

/// A message that its receiver works on.
pub struct Delivery {
    bus: Bus,
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
        said.map_err(|why| self.failed("say that the work goes on with", &*why))
    }

    /// Says that the work is done; on return the server knows it.
    ///
    /// # Errors
    /// The server does not answer. The message is delivered again.
    pub async fn done(self) -> Result<(), BusError> {
        self.acknowledge("acknowledge", AckKind::Ack).await
    }

    /// Says that the message will never be worked on.
    ///
    /// # Errors
    /// The server does not answer. The message is delivered again.
    pub async fn refuse(self) -> Result<(), BusError> {
        self.acknowledge("refuse", AckKind::Term).await
    }

    async fn acknowledge(&self, verb: &str, kind: AckKind) -> Result<(), BusError> {
        let said = async {
            let said = self.message.double_ack_with(kind).await;
            said.map_err(|why| self.failed(verb, &*why))
        };
        // The server hears it at the subject that the message names.
        let subjects: Vec<_> = self.message.reply.iter().map(ToString::to_string).collect();
        self.bus.with_rights(&subjects, &self.operation(verb), said).await
    }

    fn operation(&self, verb: &str) -> String {
        format!("{verb} a message of {}", self.message.subject)
    }

    fn failed(&self, verb: &str, why: &(dyn Error + Send + Sync)) -> BusError {
        BusError::because(self.operation(verb), in_words(why))
    }
}
