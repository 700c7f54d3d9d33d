//! What a conversation needs from its caller: connections, and waits that can be stopped.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use crate::error::FileError;

/// Makes connections as the caller wants them: to which address, from where, with which options.
pub trait Dial: Send {
    /// A TCP connection to a host that the user named. Waits by `wait`, for a limited time.
    fn connect(&mut self, host: &str, port: u16, wait: &dyn Wait) -> Result<OwnedFd, FileError>;
}

/// The condition to wait for on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// There is something to read, or the stream has ended.
    Read,
    /// There is room to write.
    Write,
    /// Either of them.
    Either,
}

/// Waits for sockets.
pub trait Wait {
    /// Waits until `socket` is ready, or until `until`; the caller checks which. [`FileError::Stopped`] if it must
    /// give up.
    fn wait(&self, socket: BorrowedFd<'_>, ready: Ready, until: Instant) -> Result<(), FileError>;

    /// Sleeps until `until`. [`FileError::Stopped`] if it must give up.
    fn rest(&self, until: Instant) -> Result<(), FileError>;
}
