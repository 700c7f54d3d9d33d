//! Keys and their values, in a bucket.

use std::error::Error;
use std::time::Duration;

use async_nats::jetstream::kv::{CreateErrorKind, Operation, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use serde::Serialize;

use crate::connect::{Bus, json};
use crate::error::BusError;
use crate::outcomes::Heard;

/// A bucket of keys.
#[derive(Debug, Clone)]
pub struct Keys {
    bus: Bus,
    store: Store,
}

/// What a key has.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its value.
    pub value: Vec<u8>,
    /// Grows with each write to the bucket.
    pub revision: u64,
    /// When it was written, seconds since 1970, by the clock of the server.
    pub written_s: f64,
}

impl Bus {
    /// The bucket of this name (letters, digits, `-`, `_`), made on first use. With an `expiry`, a key is gone that long
    /// after it was last written.
    ///
    /// # Errors
    /// The server has no JetStream, or refuses the bucket.
    pub async fn keys(&self, bucket: &str, expiry: Option<Duration>) -> Result<Keys, BusError> {
        self.stream(stream_of(bucket, expiry)).await?;
        // It is there, so who does not answer is away.
        let open = format!("open the bucket {bucket}");
        let opened = async {
            let opened = self.jetstream.get_key_value(bucket).await;
            opened.map_err(BusError::away(open.clone()))
        };
        let subjects = [format!("STREAM.INFO.KV_{bucket}")];
        let store = self.with_rights(&subjects, &open, opened).await?;
        Ok(Keys { bus: self.clone(), store })
    }
}

/// The stream behind a bucket (NATS ADR-8, "JetStream based Key-Value Stores"). The library makes it only after a question
/// whose answer it can't read if it comes from a server of Debian 12.
fn stream_of(bucket: &str, expiry: Option<Duration>) -> Config {
    Config {
        name: format!("KV_{bucket}"),
        subjects: vec![format!("$KV.{bucket}.>")],
        max_messages_per_subject: 1,
        max_age: expiry.unwrap_or_default(),
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        ..Config::default()
    }
}

impl Keys {
    /// Writes a key that does not exist. Returns its revision, or `None` if it exists.
    ///
    /// # Errors
    /// The server does not answer, or refuses the key.
    pub async fn create<T: Serialize>(
        &self,
        key: &str,
        value: &T,
    ) -> Result<Option<u64>, BusError> {
        let value = json(value)?;
        let made = async {
            match self.store.create(key, value.into()).await {
                Ok(revision) => Ok(Some(revision)),
                Err(why) if why.kind() == CreateErrorKind::AlreadyExists => Ok(None),
                Err(why) => Err(why),
            }
        };
        self.tried("make", key, made).await
    }

    /// Writes a key whose last revision is `revision`. Returns the new one, or `None` if someone else has written it
    /// meanwhile, or it is gone.
    ///
    /// # Errors
    /// The server does not answer, or refuses the key.
    pub async fn update<T: Serialize>(
        &self,
        key: &str,
        value: &T,
        revision: u64,
    ) -> Result<Option<u64>, BusError> {
        let value = json(value)?;
        let written = async {
            match self.store.update(key, value.into(), revision).await {
                Ok(revision) => Ok(Some(revision)),
                Err(why) if why.kind() == UpdateErrorKind::WrongLastRevision => {
                    // The bucket may have been made anew.
                    self.bus.doubt();
                    Ok(None)
                }
                Err(why) => Err(why),
            }
        };
        self.tried("write", key, written).await
    }

    /// Writes a key, whatever it has.
    ///
    /// # Errors
    /// The server does not answer, or refuses the key.
    pub async fn put<T: Serialize>(&self, key: &str, value: &T) -> Result<u64, BusError> {
        self.tried("write", key, self.store.put(key, json(value)?.into())).await
    }

    /// What a key has, if it exists.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn entry(&self, key: &str) -> Result<Option<Entry>, BusError> {
        let found = self.tried("read", key, self.store.entry(key)).await?;
        let found = found.filter(|entry| entry.operation == Operation::Put);
        Ok(found.map(|entry| Entry {
            value: entry.value.to_vec(),
            revision: entry.revision,
            written_s: entry.created.unix_timestamp_nanos() as f64 / 1e9,
        }))
    }

    /// The name of the bucket.
    pub fn bucket(&self) -> &str {
        &self.store.name
    }

    /// Tells this bucket apart from one of the same name that is made after it is gone, or at another server.
    pub fn identity(&self) -> String {
        self.store.stream.cached_info().created.unix_timestamp_nanos().to_string()
    }

    /// Hears when a key is written from now on. A write may be missed while the connection is broken, so also ask for it.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn hear(&self, key: &str) -> Result<Heard, BusError> {
        let heard = self.bus.client.subscribe(format!("{}{key}", self.store.prefix)).await;
        heard.map(Heard::new).map_err(BusError::request(self.operation("hear of", key)))
    }

    /// Removes a key whose last revision is `revision`.
    ///
    /// # Errors
    /// The server does not answer, or someone else has written the key meanwhile.
    pub async fn remove(&self, key: &str, revision: u64) -> Result<(), BusError> {
        let removed = self.store.delete_expect_revision(key, Some(revision));
        self.tried("remove", key, removed).await
    }

    /// Does something with a key.
    async fn tried<T, E: Error>(
        &self,
        verb: &str,
        key: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, BusError> {
        let operation = self.operation(verb, key);
        let work = async { work.await.map_err(BusError::request(operation.clone())) };
        let subjects = [format!("{}{key}", self.store.prefix)];
        self.bus.with_rights(&subjects, &operation, work).await
    }

    fn operation(&self, verb: &str, key: &str) -> String {
        format!("{verb} the key {key} of the bucket {}", self.store.name)
    }
}
