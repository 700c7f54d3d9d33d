//! The connection to the database. It is opened when it is needed, and again after it was lost: a watch goes on for
//! months.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Client;

use super::connection::Connection;
use super::error::{Failure, PostgresError, Why};
use super::patience::{PATIENCE, within};
use super::server::Server;

/// A database that can be asked from anywhere, also from within asynchronous code.
#[derive(Debug)]
pub(super) struct Link {
    server: Server,
    /// Absent only while it is dropped.
    runtime: Option<Runtime>,
    /// The connection that nobody uses now.
    idle: Mutex<Option<Connection>>,
}

impl Link {
    /// Connects, and makes or migrates the tables if that is needed.
    pub fn open(server: &Server) -> Result<Self, PostgresError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|why| Failure::from(Why::Other(why.to_string())));
        let runtime = Some(runtime.map_err(|why| why.of("open", server))?);
        let link = Self { server: server.clone(), runtime, idle: Mutex::new(None) };
        link.run("open", PATIENCE, async |_| Ok(()))?;
        Ok(link)
    }

    /// Does something with the database and waits for it, at most for [`PATIENCE`] until it is connected, and then for
    /// `patience`; to make or migrate the tables, for [`LONG_PATIENCE`](super::patience::LONG_PATIENCE) between these. After
    /// an error, the next action opens a new connection.
    pub fn run<T: Send>(
        &self,
        doing: &'static str,
        patience: Duration,
        action: impl AsyncFnOnce(&mut Client) -> Result<T, Failure> + Send,
    ) -> Result<T, PostgresError> {
        let act = || match &self.runtime {
            Some(runtime) => runtime.block_on(self.act(patience, action)),
            None => Err(Why::Other("it is closed".into()).into()),
        };
        // Within a runtime, none may be waited for; a thread of its own is within none.
        let done = thread::scope(|scope| {
            let thread = thread::Builder::new().name("postgres".into()).spawn_scoped(scope, act);
            let thread = thread.map_err(|why| Why::Other(why.to_string()))?;
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        });
        done.map_err(|why| why.of(doing, &self.server))
    }

    async fn act<T>(
        &self,
        patience: Duration,
        action: impl AsyncFnOnce(&mut Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut connection = within(PATIENCE, self.connection(patience)).await?;
        let done = connection.act(patience, action).await;
        match done {
            Ok(_) => drop(self.keep(Some(connection))),
            Err(_) => connection.end().await,
        }
        done
    }

    /// The connection of the last action if it is alive, or else a new one.
    async fn connection(&self, patience: Duration) -> Result<Connection, Failure> {
        if let Some(kept) = self.keep(None) {
            match kept.limit(patience).await {
                Ok(()) => return Ok(kept),
                Err(_) => kept.end().await,
            }
        }
        Connection::open(&self.server, patience).await
    }

    /// Keeps a connection for the next action. Returns the one that was kept.
    fn keep(&self, next: Option<Connection>) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *idle, next)
    }
}

impl Drop for Link {
    /// Waits for nothing, which is not allowed everywhere.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
