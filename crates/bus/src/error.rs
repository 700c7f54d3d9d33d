//! Why the bus did not do what was asked.

use std::fmt::Display;

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
    #[error(
        "can't connect to NATS at {url}: {why}; check the address, and whether the server wants --creds or --nkey, and --tls-ca"
    )]
    Connect {
        /// The address, as it was given.
        url: String,
        /// What happened.
        why: String,
    },
    /// A stream or a bucket can't be had.
    #[error(
        "can't {operation}: {why}; the NATS server needs JetStream (nats-server -js), and this user the right to it. Of users \
         that `goodput fleet keys` made, only the coordinator may: start `goodput fleet run` first"
    )]
    Storage {
        /// What was tried, on what.
        operation: String,
        /// What happened.
        why: String,
    },
    /// Nobody says whether a stream or a bucket can be had.
    #[error(
        "can't {operation}: {why}; the NATS servers may be electing their leader, or this user has no right to it. Of users \
         that `goodput fleet keys` made, only the coordinator may make streams: start `goodput fleet run` first"
    )]
    Away {
        /// What was tried, on what.
        operation: String,
        /// What happened.
        why: String,
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

impl BusError {
    /// Names the request that failed.
    pub(crate) fn request<E: Display>(operation: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |why| Self::Request { operation: operation.into(), why: why.to_string() }
    }

    /// Whether the same may succeed later, as once the servers have elected their leader.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::Request { .. })
    }

    /// Names the stream or bucket of which nobody says whether it can be had.
    pub(crate) fn away<E: Display>(operation: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |why| Self::Away { operation: operation.into(), why: why.to_string() }
    }

    /// Names the stream or bucket that can't be had.
    pub(crate) fn storage<E: Display>(operation: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |why| Self::Storage { operation: operation.into(), why: why.to_string() }
    }
}
