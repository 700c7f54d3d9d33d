//! The connection.

use async_nats::jetstream::Context;
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::{Client, ConnectOptions, Event};
use serde::Serialize;

use crate::error::BusError;

/// A connection to NATS. After it has begun, it is made again whenever it breaks; what is asked meanwhile fails after some
/// seconds.
#[derive(Debug, Clone)]
pub struct Bus {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
}

impl Bus {
    /// Connects to `url`, such as `nats://host:4222` or `tls://host`. `credentials` is the text of a file of credentials
    /// (JWT and nkey); `name` is how the server's own tools call this connection.
    ///
    /// # Errors
    /// The address names a user, the credentials can't be read, the server can't be reached, or it refuses the user.
    pub async fn connect(
        url: &str,
        credentials: Option<&str>,
        name: &str,
    ) -> Result<Self, BusError> {
        if url.split_once("://").map_or(url, |(_, rest)| rest).contains('@') {
            return Err(BusError::UserInAddress);
        }
        let log = |event: Event| async move { tracing::info!("NATS: {event}") };
        let mut options = ConnectOptions::new().name(name).event_callback(log);
        if let Some(text) = credentials {
            options = options.credentials(text).map_err(BusError::Credentials)?;
        }
        let client = options.connect(url).await.map_err(|why| {
            let (url, why) = (url.to_owned(), why.to_string());
            BusError::Connect { url, why }
        })?;
        Ok(Self { jetstream: async_nats::jetstream::new(client.clone()), client })
    }

    /// A stream, made on first use.
    pub(crate) async fn stream(&self, config: Config) -> Result<Stream, BusError> {
        let failed = BusError::storage(format!("make the stream {}", config.name));
        self.jetstream.get_or_create_stream(config).await.map_err(failed)
    }

    /// The longest message that the server takes, bytes, headers included.
    pub fn longest_message(&self) -> usize {
        self.client.server_info().max_payload
    }
}

/// A message as it goes over the bus.
pub(crate) fn json<T: Serialize>(message: &T) -> Result<Vec<u8>, BusError> {
    serde_json::to_vec(message).map_err(BusError::request("write a message"))
}
