//! The buffer pool of io_uring: memory to receive into, lent for one call at a time. Nobody looks at the received
//! payload, so flows share it. The buffer returned last is lent first, while the processor's cache still holds it.

use std::mem;
use std::ops::Deref;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::ring::Memory;

/// Bytes of a pooled buffer; also the least that a sink's buffer has. Payload that collects while the reader is away is then read
/// at once.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// Most buffers in the pool. A thread that is preempted within a call keeps its buffer. Without a bound, many flows on
/// few processors would use as many buffers as there are flows.
const MAX_BUFFERS: usize = 32;

static POOL: Mutex<Pool> = Mutex::new(Pool { free: Vec::new(), made: 0, waiting: 0 });
static GIVEN_BACK: Condvar = Condvar::new();

/// The buffers of all flows.
struct Pool {
    /// Buffers that nobody uses now.
    free: Vec<Box<[u8]>>,
    /// How many buffers exist.
    made: usize,
    /// How many flows wait for a buffer.
    waiting: usize,
}

/// Takes the buffer returned last, or a new one. If the pool is at its limit, waits for one of the calls that hold a
/// buffer. None of these calls waits for its socket.
fn take() -> Box<[u8]> {
    let mut pool = pool();
    loop {
        if let Some(buffer) = pool.free.pop() {
            return buffer;
        }
        if pool.made < MAX_BUFFERS {
            pool.made += 1;
            return vec![0; BUFFER_BYTES].into();
        }
        pool.waiting += 1;
        pool = GIVEN_BACK.wait(pool).unwrap_or_else(PoisonError::into_inner);
        pool.waiting -= 1;
    }
}

/// The pool; a thread that panicked has left it consistent.
fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A buffer of [`BUFFER_BYTES`], on loan until the call is over or its thread has panicked.
pub(crate) struct PooledBuffer(Box<[u8]>);

impl PooledBuffer {
    /// Takes a buffer for one call. Waits if all are lent.
    pub(crate) fn take() -> Self {
        Self(take())
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let buffer = mem::take(&mut self.0);
        // A leaked buffer is not returned.
        if !buffer.is_empty() {
            pool().end_loan(|pool| pool.free.push(buffer));
        }
    }
}

impl Memory for PooledBuffer {
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    fn leak(mut self) {
        mem::forget(mem::take(&mut self.0));
        pool().end_loan(|pool| pool.made -= 1);
    }
}

impl Pool {
    /// One buffer less is on loan, so another flow may take one.
    fn end_loan(&mut self, how: impl FnOnce(&mut Self)) {
        how(self);
        // Notifying is a system call, even if nobody waits.
        if self.waiting > 0 {
            GIVEN_BACK.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_the_kernel_may_still_write_to_is_lent_to_nobody() {
        let mut leaked = PooledBuffer::take();
        let start = leaked.start();
        leaked.leak();
        let mut others: Vec<_> = (0..MAX_BUFFERS / 2).map(|_| PooledBuffer::take()).collect();
        assert!(others.iter_mut().all(|buffer| buffer.start() != start));
    }

    #[test]
    fn many_flows_share_few_buffers() {
        let lend = || {
            let _buffer = PooledBuffer::take();
            std::thread::yield_now();
        };
        std::thread::scope(|scope| {
            (0..4 * MAX_BUFFERS).for_each(|_| drop(scope.spawn(|| (0..50).for_each(|_| lend()))));
        });
        let pool = POOL.lock().unwrap();
        assert!(pool.made <= MAX_BUFFERS && pool.waiting == 0);
    }
}
