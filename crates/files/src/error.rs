//! Why a file server delivered nothing.

use std::io;

/// Why a file request failed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The place is not valid, or can't be requested as intended.
    #[error("{0}")]
    Place(String),
    /// The server, or a hop on the way to it, denies this user access.
    #[error("{0}")]
    NotPermitted(String),
    /// The server does not trust this host, the port of the call or its user. Shown as [`Self::NotPermitted`].
    #[error("{0}")]
    Distrusted(String),
    /// The server refused.
    #[error("{0}")]
    Refused(String),
    /// The server tried and failed: its progress is unknown.
    #[error("{0}")]
    Failed(String),
    /// The server violated its protocol, or would send without end.
    #[error("{0}")]
    Protocol(String),
    /// The connection failed or broke.
    #[error("can't {operation}: {cause}")]
    Io {
        /// What was tried, on what.
        operation: String,
        /// The system's answer.
        cause: io::Error,
    },
    /// Nothing came in time.
    #[error("{0}")]
    TimedOut(String),
    /// The server asks to retry later.
    #[error("{0}")]
    Later(String),
    /// The caller stopped waiting.
    #[error("it was stopped")]
    Stopped,
}

impl FileError {
    /// Names the operation and its object, for a system error.
    pub(crate) fn io(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io { operation: operation.into(), cause }
    }

    /// A refusal by a server that may already have made a file, or taken payload.
    pub(crate) fn after_payload(self) -> Self {
        match self {
            Self::Refused(why) => Self::Failed(why),
            other => other,
        }
    }

    /// The same, prefixed with these words.
    pub(crate) fn after(self, words: &str) -> Self {
        let said = |why: String| format!("{words}: {why}");
        match self {
            Self::Place(why) => Self::Place(said(why)),
            Self::NotPermitted(why) => Self::NotPermitted(said(why)),
            Self::Distrusted(why) => Self::Distrusted(said(why)),
            Self::Refused(why) => Self::Refused(said(why)),
            Self::Failed(why) => Self::Failed(said(why)),
            Self::Protocol(why) => Self::Protocol(said(why)),
            Self::TimedOut(why) => Self::TimedOut(said(why)),
            Self::Later(why) => Self::Later(said(why)),
            Self::Io { operation, cause } => {
                Self::Protocol(said(format!("can't {operation}: {cause}")))
            }
            Self::Stopped => Self::Stopped,
        }
    }

    /// As a system error, which keeps whether a permission is missing.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Io { cause, .. } => cause,
            Self::NotPermitted(why) | Self::Distrusted(why) => {
                io::Error::new(io::ErrorKind::PermissionDenied, why)
            }
            why => io::Error::other(why.to_string()),
        }
    }

    /// Whether the server, or goodput before the request, refused: then nothing was stored.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Place(_) | Self::Refused(_)) || self.not_permitted()
    }

    /// Whether a permission is missing.
    pub fn not_permitted(&self) -> bool {
        matches!(self, Self::NotPermitted(_) | Self::Distrusted(_))
    }
}
