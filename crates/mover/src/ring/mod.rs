//! io_uring(7) with memory that outlives the kernel's use of it. All movers with a ring use this one.
//!
//! A request names memory by its address. The kernel may use that memory until the request completes, whatever the call
//! that submitted the request returned. So the ring owns the memory, and returns it only when no request is left. If a
//! call fails for good, the ring cancels the kernel's requests, waits for a moment, and never submits again: entries
//! left in its queue would name memory that is reused for something else. Memory that the kernel does not release
//! leaks.

mod refusal;

use std::io;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{IoUring, Submitter, cqueue, squeue};
use rustix::io::{Errno, Result as SysResult};

use crate::pages::Pages;

pub(crate) use refusal::{Answer, Refusal, no_ring, ring_can_be_had};

/// Places for requests in a ring that needs many. There are twice as many places for completions.
pub(crate) const QUEUE_DEPTH: usize = 64;

/// How often a call is retried when the kernel had no memory for it, and the pause before each retry: 50 ms in all,
/// half of the time in which a sender must stop.
const MAX_MEMORY_RETRIES: u32 = 50;
const RETRY_PAUSE: Duration = Duration::from_millis(1);

/// How often the ring checks if canceled requests have completed, with the same pause before each check.
const MAX_CANCEL_POLLS: u32 = 50;

/// Marks a request whose completion is followed by a notice, like that of a zero-copy send (io_uring_prep_send_zc(3)).
/// The request is over with its completion: the pages that the kernel still reads are pinned, and nobody writes to them
/// ([`Pages`]).
pub(crate) const NOTICED_BIT: u64 = 1 << 63;

/// Memory that requests may name.
pub(crate) trait Memory {
    /// Its start address, which stays the same when the value moves.
    fn start(&mut self) -> *mut u8;

    /// Leaves it to the kernel for good.
    fn leak(self)
    where
        Self: Sized,
    {
        mem::forget(self);
    }
}

impl Memory for Arc<Pages> {
    fn start(&mut self) -> *mut u8 {
        self.as_ptr().cast_mut()
    }
}

impl Memory for Vec<u8> {
    fn start(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }
}

impl Memory for &'static [u8] {
    fn start(&mut self) -> *mut u8 {
        self.as_ptr().cast_mut()
    }
}

/// A ring and the memory that its requests name.
pub(crate) struct Ring<M: Memory> {
    uring: IoUring,
    memory: Option<M>,
    /// Requests in the queue that are not submitted yet.
    noted: usize,
    /// Requests that were submitted and have not completed.
    under_way: usize,
    /// Why nothing is submitted any longer.
    broken: Option<Errno>,
}

impl<M: Memory> Ring<M> {
    /// A ring with places for `requests`, without memory for them yet. Takes one descriptor.
    pub(crate) fn new(requests: usize) -> io::Result<Self> {
        let uring = IoUring::new(requests as u32)?;
        Ok(Self { uring, memory: None, noted: 0, under_way: 0, broken: None })
    }

    /// A ring that owns `memory`.
    pub(crate) fn with(requests: usize, memory: M) -> io::Result<Self> {
        let mut ring = Self::new(requests)?;
        ring.memory = Some(memory);
        Ok(ring)
    }

    /// To register memory and buffers with the kernel, not to submit requests.
    pub(crate) fn submitter(&self) -> Submitter<'_> {
        self.uring.submitter()
    }

    /// Takes memory for the next requests; returns its start address. Fails if the ring is broken. Only call this while
    /// there is no request.
    pub(crate) fn hold(&mut self, memory: M) -> SysResult<*mut u8> {
        self.check()?;
        debug_assert_eq!(self.noted + self.under_way, 0);
        Ok(self.memory.insert(memory).start())
    }

    /// The start address of the ring's memory.
    pub(crate) fn start(&mut self) -> SysResult<*mut u8> {
        self.check()?;
        self.memory.as_mut().map(Memory::start).ok_or(Errno::FAULT)
    }

    /// The memory, once no request is left that could name it.
    pub(crate) fn release(&mut self) -> Option<M> {
        if self.under_way == 0 { self.memory.take() } else { None }
    }

    fn check(&self) -> SysResult<()> {
        self.broken.map_or(Ok(()), Err)
    }

    /// Queues a request, which the next call submits.
    ///
    /// # Safety
    ///
    /// It names only memory that this ring owns, and a descriptor that lives as long as the ring.
    #[expect(unsafe_code, reason = "the kernel is given addresses")]
    pub(crate) unsafe fn note(&mut self, request: &squeue::Entry) -> SysResult<()> {
        self.check()?;
        // SAFETY: the caller guarantees it, and the memory lives until the request is over.
        if unsafe { self.uring.submission().push(request) }.is_err() {
            return Err(self.break_off(Errno::NOSPC));
        }
        self.noted += 1;
        Ok(())
    }

    /// Submits the queue and passes all completions to `take`, until no request is left.
    pub(crate) fn carry_out(&mut self, mut take: impl FnMut(&cqueue::Entry)) -> SysResult<()> {
        while self.noted + self.under_way > 0 {
            self.enter(self.noted + self.under_way)?;
            self.collect(&mut take);
        }
        Ok(())
    }

    /// Submits the queue and waits for `want` completions, unless a signal interrupts.
    fn enter(&mut self, want: usize) -> SysResult<()> {
        self.check()?;
        let mut tries = 0;
        loop {
            // An error means that nothing was submitted (io_uring_enter(2)).
            match self.call(want) {
                Ok(taken) => {
                    let taken = taken.min(self.noted);
                    self.noted -= taken;
                    self.under_way += taken;
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                // No memory for a request at the moment.
                Err(Errno::AGAIN) if tries < MAX_MEMORY_RETRIES => {
                    tries += 1;
                    thread::sleep(RETRY_PAUSE);
                }
                // From a socket, the same number would mean that the socket is full.
                Err(Errno::AGAIN) => return Err(self.break_off(Errno::NOMEM)),
                Err(cause) => return Err(self.break_off(cause)),
            }
        }
    }

    /// io_uring_enter(2); how many requests the kernel took.
    fn call(&self, want: usize) -> SysResult<usize> {
        #[cfg(test)]
        if let Some(fault) = faults::next() {
            return fault.happen(&self.uring);
        }
        self.uring.submit_and_wait(want).map_err(errno)
    }

    /// Waits for one completion, at most `most_ns` nanoseconds, which is at most 1 s. Submits nothing.
    pub(crate) fn wait(&mut self, most_ns: u32) -> SysResult<()> {
        self.check()?;
        debug_assert_eq!(self.noted, 0);
        let time = Timespec::new().nsec(most_ns);
        let args = SubmitArgs::new().timespec(&time);
        match self.uring.submitter().submit_with_args(1, &args).map_err(errno) {
            Ok(_) | Err(Errno::TIME | Errno::INTR) => Ok(()),
            Err(cause) => Err(self.break_off(cause)),
        }
    }

    /// Passes the available completions to `take`.
    pub(crate) fn collect(&mut self, mut take: impl FnMut(&cqueue::Entry)) {
        for entry in self.uring.completion() {
            self.under_way = self.under_way.saturating_sub(usize::from(is_last(&entry)));
            take(&entry);
        }
    }

    /// Stops submitting, and takes back the kernel's requests.
    fn break_off(&mut self, cause: Errno) -> Errno {
        self.broken = Some(cause);
        self.take_back();
        cause
    }

    /// Makes the kernel cancel all requests in progress, and waits briefly for their completions. Makes no call that
    /// would submit the rest of the queue.
    fn take_back(&mut self) {
        if self.under_way == 0 {
            return;
        }
        #[cfg(test)]
        if faults::is_kernel_deaf() {
            return;
        }
        // Before Linux 6.0 requests can't be canceled this way; requests that wait for a disk end on their own. A
        // completion shows when this thread next enters the kernel, as it does to sleep.
        let _ = self.uring.submitter().register_sync_cancel(None, CancelBuilder::any());
        for _ in 0..MAX_CANCEL_POLLS {
            self.collect(|_| {});
            if self.under_way == 0 {
                return;
            }
            thread::sleep(RETRY_PAUSE);
        }
    }
}

impl<M: Memory> Drop for Ring<M> {
    fn drop(&mut self) {
        if self.broken.is_none() {
            self.take_back();
        }
        if let (true, Some(memory)) = (self.under_way > 0, self.memory.take()) {
            memory.leak();
        }
    }
}

/// Whether a completion is the last one of its request.
fn is_last(entry: &cqueue::Entry) -> bool {
    let (flags, noticed) = (entry.flags(), entry.user_data() & NOTICED_BIT != 0);
    !cqueue::notif(flags) && (noticed || !cqueue::more(flags))
}

/// The meaning of a completion: a count, or an error (io_uring_enter(2)).
pub(crate) fn outcome(result: i32) -> SysResult<usize> {
    usize::try_from(result).map_err(|_| match result {
        // The kernel's range of error numbers (`MAX_ERRNO`, include/linux/err.h).
        -4095..=-1 => Errno::from_raw_os_error(-result),
        _ => Errno::IO,
    })
}

fn errno(cause: io::Error) -> Errno {
    Errno::from_io_error(&cause).unwrap_or(Errno::IO)
}

#[cfg(test)]
pub(crate) mod faults;
#[cfg(test)]
mod tests;
