//! The connection to the database. It is opened when it is needed, and again after it was lost: a watch goes on for
//! months.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::Client;

use super::error::{Failure, PostgresError, Why};
use super::schema;
use super::server::Server;
use super::tls;

/// How long the server may take to let goodput in, and to do something short. The coordinator of a fleet waits for it, and
/// loses its lease after twice as long.
pub(super) const PATIENCE: Duration = Duration::from_secs(6);

/// How long it may take to do something with many records.
pub(super) const LONG_PATIENCE: Duration = Duration::from_secs(120);

/// How long a connection that was just used counts as alive: no server restarts in less. To ask costs a round trip.
const FRESH: Duration = Duration::from_millis(100);

/// What holds for each connection. A statement that waits for a lock ends before goodput gives it up: later, nobody would
/// know whether it was done.
const SESSION: &str = "SET lock_timeout = '5s'; SET client_min_messages = 'warning'";

/// A database that can be asked from anywhere, also from within asynchronous code.
#[derive(Debug)]
pub(super) struct Link {
    server: Server,
    /// Absent only while it is dropped.
    runtime: Option<Runtime>,
    idle: Mutex<Option<Idle>>,
}

/// A connection that nobody uses now.
struct Idle {
    client: Client,
    since: Instant,
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idle").field("since", &self.since).finish_non_exhaustive()
    }
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
    /// `patience`. After an error, the next action opens a new connection.
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
        let late = |time: Duration| Why::Late(time.as_secs());
        let client = timeout(PATIENCE, self.client()).await;
        let mut client = client.map_err(|_| late(PATIENCE))??;
        let done = timeout(patience, action(&mut client)).await.map_err(|_| late(patience))?;
        if done.is_ok() {
            self.keep(Some(Idle { client, since: Instant::now() }));
        }
        done
    }

    /// The connection of the last action if it is alive, or else a new one.
    async fn client(&self) -> Result<Client, Failure> {
        if let Some(Idle { client, since }) = self.keep(None)
            && (since.elapsed() < FRESH && !client.is_closed()
                || client.check_connection().await.is_ok())
        {
            return Ok(client);
        }
        let tls = tls::connector(self.server.authorities()).map_err(Why::Tls)?;
        let (mut client, connection) = self.server.config().connect(tls).await?;
        // Ends with its client.
        tokio::spawn(connection);
        client.batch_execute(SESSION).await?;
        schema::migrate(&mut client).await?;
        Ok(client)
    }

    /// Keeps a connection for the next action. Returns the one that was kept.
    fn keep(&self, next: Option<Idle>) -> Option<Idle> {
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
