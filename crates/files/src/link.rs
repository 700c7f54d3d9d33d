//! What a conversation needs of its caller: connections, and waiting that can be ended.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use crate::error::FileError;

/// Makes connections as the caller wants them: by which address, from where, with which options.
pub trait Dial: Send {
    /// A TCP connection to a host, which is one that the user named. Waits by `wait`, and not without bound.
    fn connect(&mut self, host: &str, port: u16, wait: &dyn Wait) -> Result<OwnedFd, FileError>;
}

/// What a socket is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// There is something to read, or the stream has ended.
    Read,
    /// There is room to write.
    Write,
    /// One of both.
    Either,
}

/// Waits for sockets.
pub trait Wait {
    /// Waits until `socket` is ready, or until `until`; the caller looks which. [`FileError::Stopped`] if it is to give
    /// up.
    fn wait(&self, socket: BorrowedFd<'_>, ready: Ready, until: Instant) -> Result<(), FileError>;

    /// Rests until `until`. [`FileError::Stopped`] if it is to give up.
    fn rest(&self, until: Instant) -> Result<(), FileError>;
}
