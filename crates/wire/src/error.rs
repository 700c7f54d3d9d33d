//! The errors of a conversation.

use crate::plain;

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The peer does not speak this protocol.
    #[error("the peer speaks another protocol: it seems to be {seems}")]
    Foreign {
        /// What its first bytes look like.
        seems: String,
    },
    /// The server closed the connection before its first byte. Only the server's log has the reason.
    #[error("the server closed the connection without an answer; {likely}")]
    Unanswered {
        /// The likely reason, and what to do.
        likely: &'static str,
    },
    /// The peer speaks another version.
    #[error(
        "the peer speaks version {theirs} of the goodput protocol, this is version {ours}; use the same release at both ends"
    )]
    Version {
        /// Our version.
        ours: u32,
        /// Theirs.
        theirs: u32,
    },
    /// The peer broke the rules of the protocol.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    /// The token does not match, or one is required.
    #[error("not permitted: {0}")]
    NotPermitted(String),
    /// Nothing came in time.
    #[error("the peer did not answer: {0}")]
    TimedOut(String),
    /// The peer closed the connection in the middle.
    #[error("the peer closed the connection: {0}")]
    Closed(String),
    /// This end can't go on, through no fault of the peer.
    #[error("this end can't continue: {0}")]
    Local(String),
}

impl WireError {
    /// The peer broke the rules: its message caused `cause`.
    pub(crate) fn broken(cause: impl std::fmt::Display) -> Self {
        Self::Protocol(plain::phrase(&cause.to_string()))
    }
}
