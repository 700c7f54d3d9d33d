//! A signal that is raised once and stays raised, for poll(2): an eventfd nobody ever reads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Readable from the moment it is raised.
#[derive(Debug)]
pub(crate) struct Signal(OwnedFd);

impl Signal {
    /// Fails if the process or the system has no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes everyone who polls it, now and later.
    pub(crate) fn raise(&self) {
        // Fails only when the counter is full, and then it is raised already (eventfd(2)).
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
