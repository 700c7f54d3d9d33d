//! Accepts connections and gives each a task of its own.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::sync::mpsc;

use super::incoming;
use super::reserve::{self, Reserve};
use crate::serve::Shared;
use crate::serve::address::plain;
use crate::serve::listen::endpoint::Endpoint;

/// Pause after a failed accept (mostly for lack of descriptors), so that the loop does not spin.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Time between two warnings about a failed accept, because any client may cause it many times a second.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// A task keeps this for as long as it lives.
pub type Alive = mpsc::Sender<()>;

/// Creates tokens as long as any task has one, and keeps none alive itself.
pub struct Lender(mpsc::WeakSender<()>);

impl Lender {
    /// A token for one more task. `None`: the server has stopped, and nothing new may begin.
    pub fn token(&self) -> Option<Alive> {
        self.0.upgrade()
    }
}

/// Knows when every task with one of its tokens has ended.
pub struct Tasks {
    alive: Alive,
    ended: mpsc::Receiver<()>,
}

impl Default for Tasks {
    fn default() -> Self {
        let (alive, ended) = mpsc::channel(1);
        Self { alive, ended }
    }
}

impl Tasks {
    /// A token that a task keeps for as long as it lives.
    pub fn token(&self) -> Alive {
        self.alive.clone()
    }

    /// Makes tokens for tasks that are started by a task with a token.
    pub fn lender(&self) -> Lender {
        Lender(self.alive.downgrade())
    }

    /// Waits until every token is gone.
    pub async fn join(self) {
        let Self { alive, mut ended } = self;
        drop(alive);
        // Nothing is ever sent: the channel closes with its last token.
        ended.recv().await;
    }
}

/// A listener with the descriptor that is reserved for it.
pub struct Listening {
    listener: tokio::net::TcpListener,
    reserve: Reserve,
}

impl Listening {
    /// Takes what accepting needs, so that it can't run short of it once clients come.
    ///
    /// # Errors
    /// If the event loop doesn't accept the listener.
    pub fn new(listener: TcpListener) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut reserve = Reserve::default();
        reserve.fill(&listener);
        Ok(Self { listener, reserve })
    }
}

/// Accepts until the future is dropped.
pub async fn accept(
    listening: Listening,
    endpoint: Arc<Endpoint>,
    shared: Arc<Shared>,
    alive: Alive,
) {
    let Listening { listener, mut reserve } = listening;
    let mut warned: Option<Instant> = None;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => welcome(stream, plain(peer), &endpoint, &shared, &alive),
            Err(cause) => {
                if warned.is_none_or(|warned| warned.elapsed() > LOG_INTERVAL) {
                    tracing::warn!("can't accept connections for now: {cause}");
                    warned = Some(Instant::now());
                }
                if let Some(why) = lacking(&cause)
                    && !reserve::refuse(&listener, &mut reserve, &endpoint, &shared, &why).await
                {
                    shared.tickets.fail(&why);
                }
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

/// What this host needs to accept connections, for sessions whose flows can't arrive.
fn lacking(cause: &std::io::Error) -> Option<String> {
    let advice = match Errno::from_io_error(cause)? {
        Errno::MFILE => {
            let limit = getrlimit(Resource::Nofile).current;
            let limit = limit.map_or_else(String::new, |limit| format!(" to more than {limit}"));
            format!("raise its limit on open files{limit} (ulimit -n)")
        }
        Errno::NFILE => "raise its sysctl fs.file-max".into(),
        Errno::NOMEM | Errno::NOBUFS => "free memory there".into(),
        _ => return None,
    };
    Some(format!("the server can't accept connections: {cause}; {advice}, or use fewer flows"))
}

fn welcome(
    stream: tokio::net::TcpStream,
    peer: SocketAddr,
    endpoint: &Arc<Endpoint>,
    shared: &Arc<Shared>,
    alive: &Alive,
) {
    if !shared.config.access.allows(peer.ip()) {
        let text = "rejected: --allow and --deny leave out its network";
        tracing::info!(%peer, "{text}");
        shared.remark(peer, None, text);
        shared.config.counts.refuse();
        return;
    }
    let permit = match shared.admission.connection(peer.ip()) {
        Ok(permit) => permit,
        Err(why) => {
            tracing::info!(%peer, "rejected: {why}");
            shared.remark(peer, None, &format!("rejected: {why}"));
            shared.config.counts.refuse();
            return;
        }
    };
    let (endpoint, shared, alive) = (Arc::clone(endpoint), Arc::clone(shared), alive.clone());
    tokio::spawn(async move {
        incoming::serve(stream, peer, &endpoint, &shared, permit).await;
        drop(alive);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A port that a session opened has its own clients; the server waits for them too before it ends.
    #[tokio::test]
    async fn the_end_waits_for_tasks_that_tasks_have_started() {
        let tasks = Tasks::default();
        let lender = tasks.lender();
        let lent = lender.token().expect("the server runs");
        let mut joined = Box::pin(tasks.join());
        let waits = is_pending(&mut joined).await;
        assert!(waits, "a task lives");
        drop(lent);
        joined.await;
        assert!(lender.token().is_none(), "nothing begins after the end");
    }

    /// Whether a future has not completed yet.
    async fn is_pending(future: &mut (impl Future + Unpin)) -> bool {
        tokio::select! {
            biased;
            _ = future => false,
            () = std::future::ready(()) => true,
        }
    }
}
