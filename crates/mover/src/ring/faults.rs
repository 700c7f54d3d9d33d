//! Errors instead of io_uring_enter(2), in a test's thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use io_uring::IoUring;
use rustix::io::{Errno, Result as SysResult};

use super::errno;

/// What happens instead of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// It fails before it submits anything.
    Error(Errno),
    /// It submits, and returns before anything has completed.
    NoWait,
}

impl Fault {
    pub(super) fn happen(self, ring: &IoUring) -> SysResult<usize> {
        match self {
            Self::Error(cause) => Err(cause),
            Self::NoWait => ring.submit().map_err(errno),
        }
    }
}

thread_local! {
    static NEXT: RefCell<VecDeque<Fault>> = const { RefCell::new(VecDeque::new()) };
    static DEAF: Cell<bool> = const { Cell::new(false) };
}

/// Makes the next calls of this thread fail this way, one after the other.
pub(crate) fn plant(faults: impl IntoIterator<Item = Fault>) {
    NEXT.with_borrow_mut(|next| *next = faults.into_iter().collect());
}

/// Enough errors to break a ring.
pub(crate) fn plant_lasting(cause: Errno) {
    plant(std::iter::repeat_n(Fault::Error(cause), super::MAX_MEMORY_RETRIES as usize + 1));
}

pub(super) fn next() -> Option<Fault> {
    NEXT.with_borrow_mut(VecDeque::pop_front)
}

/// Makes the kernel cancel and complete nothing that is in progress.
pub(crate) fn deafen() {
    DEAF.set(true);
}

pub(super) fn is_kernel_deaf() -> bool {
    DEAF.get()
}
