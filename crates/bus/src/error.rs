//! Why the bus did not do what was asked.

use std::error::Error;

use crate::reasons::{self, in_words};
use crate::refusals::{Refusal, Right};

/// Why the bus did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The credentials can't be read.
    #[error("can't read the NATS credentials: {0}; take the file that `nsc generate creds` makes")]
    Credentials(std::io::Error),
    /// A key can't be used.
    #[error(transparent)]
    Nkey(#[from] crate::seed::NkeyError),
    /// The address has a user or a password, which this library ignores.
    #[error(
        "the address of NATS has a user or a password, which others could read; name a file of credentials (--creds) or a key (--nkey)"
    )]
    UserInAddress,
    /// The server can't be reached, or does not let this user in.
    #[error("can't connect to NATS at {url}: {why}")]
    Connect {
        /// The address, as it was given.
        url: String,
        /// What happened, and what to do.
        why: String,
    },
    /// The server refuses a stream or a bucket.
    #[error("can't {operation}: {why}")]
    Storage {
        /// What was tried, on what.
        operation: String,
        /// What happened.
        why: String,
    },
    /// Nobody says whether a stream or a bucket can be had.
    #[error("can't {operation}: {why}")]
    Away {
        /// What was tried, on what.
        operation: String,
        /// What happened.
        why: String,
    },
    /// A stream or a bucket is not there yet, and this user may not make it.
    #[error(
        "there is no stream {stream} yet, and NATS does not let {user} make it; the coordinator makes it: start `goodput fleet \
         run` with its own key"
    )]
    NotThere {
        /// Its name.
        stream: String,
        /// Who wanted it.
        user: String,
    },
    /// This user has no right to something that it needs.
    #[error("can't {operation}: NATS does not let {user} {}", at(.refusal))]
    Forbidden {
        /// What was tried, on what.
        operation: String,
        /// Who tried.
        user: String,
        /// The right that it does not have.
        refusal: Refusal,
    },
    /// A request failed, as while the server is away.
    #[error("can't {operation}: {why}")]
    Request {
        /// What was tried, on what.
        operation: String,
        /// What happened.
        why: String,
    },
}

fn at(Refusal { right, subject }: &Refusal) -> String {
    match right {
        Right::Publish => format!("publish to {subject}"),
        Right::Subscribe => format!("hear {subject}"),
        Right::Login => "in any more; give it a key that it knows (--nkey, --creds)".into(),
    }
}

impl BusError {
    /// Names the request that failed.
    pub(crate) fn request<E: Error>(operation: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |why| Self::because(operation, in_words(&why))
    }

    /// Names the request that failed, for a reason in goodput's own words.
    pub(crate) fn because(operation: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Request { operation: operation.into(), why: why.into() }
    }

    /// What happened, without what was tried: the same for all that fail for it.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Storage { why, .. } | Self::Away { why, .. } | Self::Request { why, .. } => {
                Some(why)
            }
            _ => None,
        }
    }

    /// Whether the servers of NATS did not answer, whatever was asked.
    pub fn is_away(&self) -> bool {
        self.reason().is_some_and(reasons::is_away)
    }

    /// Whether the same may succeed later, as once the servers have elected their leader.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::Request { .. } | Self::NotThere { .. })
    }

    /// Names the stream or bucket of which nobody says whether it can be had.
    pub(crate) fn away<E: Error>(operation: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |why| Self::Away { operation: operation.into(), why: in_words(&why) }
    }

    /// Names the stream or bucket that can't be had.
    pub(crate) fn storage<E: Error>(operation: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |why| Self::Storage { operation: operation.into(), why: in_words(&why) }
    }
}
