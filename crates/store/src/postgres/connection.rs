//! One connection to the database: how it begins, what the server is told to keep to, and how it ends.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Error, NoTls, Socket};

use super::error::{Failure, Why};
use super::patience::{LONG_PATIENCE, within};
use super::server::Server;
use super::{schema, tls};

/// What holds for each connection.
const SESSION: &str = "SET client_min_messages = 'warning'";

/// How much earlier than goodput the server gives a statement up: later, nobody would know whether it was done.
const EARLIER: Duration = Duration::from_secs(1);

/// How long a connection may take to end. Without its end, the server would keep the locks of what was given up.
const FAREWELL: Duration = Duration::from_millis(500);

/// A connection that was opened, with the task that reads and writes it.
pub(super) struct Connection {
    client: Client,
    task: JoinHandle<Result<(), Error>>,
    /// Whether the tables are as this goodput needs them.
    has_tables: bool,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("has_tables", &self.has_tables).finish_non_exhaustive()
    }
}

impl Connection {
    /// A new one, which is limited as [`Self::limit`] says.
    pub async fn open(server: &Server, patience: Duration) -> Result<Self, Failure> {
        let mut new = match server.config().get_ssl_mode() {
            SslMode::Disable => Self::with(server, NoTls).await?,
            _ => {
                Self::with(server, tls::connector(server.authorities()).map_err(Why::Tls)?).await?
            }
        };
        match new.begin(patience).await {
            Ok(()) => Ok(new),
            Err(why) => {
                new.end().await;
                Err(why)
            }
        }
    }

    async fn with<T>(server: &Server, tls: T) -> Result<Self, Failure>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let (client, connection) = server.config().connect(tls).await?;
        // Ends with its client.
        Ok(Self { client, task: tokio::spawn(connection), has_tables: false })
    }

    async fn begin(&mut self, patience: Duration) -> Result<(), Failure> {
        self.client.batch_execute(SESSION).await?;
        self.limit(patience).await?;
        self.has_tables = schema::is_current(&self.client).await?;
        Ok(())
    }

    /// Tells the server to give up what takes about `patience`: so it frees the locks of what goodput gives up, also if
    /// nobody can tell it. A lock is waited for half as long. An answer shows that the connection is alive.
    pub async fn limit(&self, patience: Duration) -> Result<(), Failure> {
        let statement = patience.saturating_sub(EARLIER).as_millis();
        let (whole, half) = (patience.as_millis(), patience.as_millis() / 2);
        let limits = format!(
            "SET statement_timeout = {statement}; SET lock_timeout = {half};
             SET idle_in_transaction_session_timeout = {whole}"
        );
        Ok(self.client.batch_execute(&limits).await?)
    }

    /// Does something within `patience`; makes or migrates the tables before that if it is needed.
    pub async fn act<T>(
        &mut self,
        patience: Duration,
        action: impl AsyncFnOnce(&mut Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if !self.has_tables {
            within(LONG_PATIENCE, self.migrate()).await?;
            self.limit(patience).await?;
        }
        within(patience, action(&mut self.client)).await
    }

    async fn migrate(&mut self) -> Result<(), Failure> {
        self.limit(LONG_PATIENCE).await?;
        schema::migrate(&mut self.client).await?;
        self.has_tables = true;
        Ok(())
    }

    /// Ends it, and with it what it was doing.
    pub async fn end(self) {
        let Self { client, mut task, .. } = self;
        drop(client);
        // It waits for answers that the server still owes.
        if timeout(FAREWELL, &mut task).await.is_err() {
            task.abort();
            let _ = task.await;
        }
    }
}
