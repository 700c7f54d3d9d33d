//! The last descriptor: kept in reserve, so that a client that arrives when no other is left can be told.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::stranger;
use crate::serve::Shared;
use crate::serve::address::plain;
use crate::serve::listen::endpoint::Endpoint;

/// How long one that is turned away may take to say what it is and to hear why; others at the same port wait
/// meanwhile. Its first words come with its connection, or right behind.
const HEARING_TIMEOUT: Duration = Duration::from_millis(250);
/// How long the connection may take that could not be accepted; it may have gone.
const ACCEPT_TIMEOUT: Duration = Duration::from_millis(100);

/// A descriptor that stands for the one of a connection. Each port has its own, so that a stranger at one
/// keeps nobody waiting at another.
#[derive(Default)]
pub struct Reserve(Option<OwnedFd>);

impl Reserve {
    /// Takes a second descriptor of a file, if there is one left and none is kept already.
    pub fn fill(&mut self, of: &impl AsFd) {
        self.0 = self.0.take().or_else(|| of.as_fd().try_clone_to_owned().ok());
    }
}

/// Accepts one connection instead of the reserve and tells it `why` nothing comes of it. `false` where
/// there was no reserve.
pub async fn turn_away(
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
        let told = stranger::turn_away(stream, plain(peer), endpoint, shared, why);
        // Who does not listen is left without a word.
        let _ = tokio::time::timeout(HEARING_TIMEOUT, told).await;
    }
    reserve.fill(listener);
    spent
}
