//! Why a file server gave nothing.

use std::io;

/// Why a file could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The place is none, or can't be asked for as it is meant.
    #[error("{0}")]
    Place(String),
    /// The server, or the way to it, does not let this user have it.
    #[error("{0}")]
    NotPermitted(String),
    /// The server said that it won't or can't.
    #[error("{0}")]
    Refused(String),
    /// The server said that it tried and failed: nobody knows how far it came.
    #[error("{0}")]
    Failed(String),
    /// The server said or did what its protocol does not allow, or what would be without end.
    #[error("{0}")]
    Protocol(String),
    /// No connection, or one that broke.
    #[error("cannot {operation}: {cause}")]
    Io {
        /// What was tried, on what.
        operation: String,
        /// The system's answer.
        cause: io::Error,
    },
    /// Nothing came in time.
    #[error("{0}")]
    TimedOut(String),
    /// The server asks to be asked again later.
    #[error("{0}")]
    Later(String),
    /// Whoever waits wants no more.
    #[error("it was stopped")]
    Stopped,
}

impl FileError {
    /// Names what was tried on what, for an error of the system.
    pub(crate) fn io(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io { operation: operation.into(), cause }
    }

    /// A refusal of a server that may have made a file, or taken payload, by then.
    pub(crate) fn after_payload(self) -> Self {
        match self {
            Self::Refused(why) => Self::Failed(why),
            other => other,
        }
    }

    /// The same, with these words before its own.
    pub(crate) fn after(self, words: &str) -> Self {
        let said = |why: String| format!("{words}: {why}");
        match self {
            Self::Place(why) => Self::Place(said(why)),
            Self::NotPermitted(why) => Self::NotPermitted(said(why)),
            Self::Refused(why) => Self::Refused(said(why)),
            Self::Failed(why) => Self::Failed(said(why)),
            Self::Protocol(why) => Self::Protocol(said(why)),
            Self::TimedOut(why) => Self::TimedOut(said(why)),
            Self::Later(why) => Self::Later(said(why)),
            Self::Io { operation, cause } => {
                Self::Protocol(said(format!("cannot {operation}: {cause}")))
            }
            Self::Stopped => Self::Stopped,
        }
    }

    /// As an error of the system, which keeps whether a permission is missing.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Io { cause, .. } => cause,
            Self::NotPermitted(why) => io::Error::new(io::ErrorKind::PermissionDenied, why),
            why => io::Error::other(why.to_string()),
        }
    }

    /// Whether the server, or goodput before asking it, said no: then nothing was stored.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Place(_) | Self::NotPermitted(_) | Self::Refused(_))
    }

    /// Whether a permission is missing.
    pub fn not_permitted(&self) -> bool {
        matches!(self, Self::NotPermitted(_))
    }
}
