//! The last descriptor, kept in reserve. With it, the server can still answer a client if no other descriptor is left.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::incoming;
use crate::serve::Shared;
use crate::serve::address::plain;
use crate::serve::listen::endpoint::Endpoint;

/// How long a refused client may take to send its first bytes and to read the reason, while others at the same port
/// wait. The first bytes come with the connection, or right behind it.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(250);
/// How long the connection that could not be accepted may take; it may be gone.
const ACCEPT_TIMEOUT: Duration = Duration::from_millis(100);

/// A placeholder for a connection's descriptor. Each port has its own, so that a client at one port keeps nobody
/// waiting at another.
#[derive(Default)]
pub struct Reserve(Option<OwnedFd>);

impl Reserve {
    /// Takes a second descriptor of a file, if one is left and none is kept already.
    pub fn fill(&mut self, of: &impl AsFd) {
        self.0 = self.0.take().or_else(|| of.as_fd().try_clone_to_owned().ok());
    }
}

/// Accepts one connection with the reserved descriptor and reports `why` it is refused. `false` if there was no
/// reserve.
pub async fn refuse(
    listener: &TcpListener,
    reserve: &mut Reserve,
    endpoint: &Endpoint,
    shared: &Arc<Shared>,
    why: &str,
) -> bool {
    let spent = reserve.0.take().is_some();
    if spent
        && let Ok(Ok((stream, peer))) =
            tokio::time::timeout(ACCEPT_TIMEOUT, listener.accept()).await
        && shared.config.access.allows(plain(peer).ip())
    {
        let refused = incoming::refuse(stream, plain(peer), endpoint, shared, why);
        // A client that does not read gets no answer.
        let _ = tokio::time::timeout(REFUSAL_TIMEOUT, refused).await;
    }
    reserve.fill(listener);
    spent
}
