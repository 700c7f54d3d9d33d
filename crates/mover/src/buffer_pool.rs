//! The buffer pool of io_uring: memory to receive into, lent for one call at a time. Nobody looks at the received
//! payload, so flows share it. The buffer returned last on the same memory node is lent first, while the processor's cache
//! still holds it.

use std::mem;
use std::ops::Deref;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::numa::own_node;
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
    /// Buffers that nobody uses now, each with the memory node that it is on.
    free: Vec<(u16, Box<[u8]>)>,
    /// How many buffers exist.
    made: usize,
    /// How many flows wait for a buffer.
    waiting: usize,
}

/// Takes a buffer for a call on memory node `node`, or if the pool is at its limit, waits for one of the calls that hold
/// a buffer. None of these calls waits for its socket.
fn take(node: u16) -> (u16, Box<[u8]>) {
    let mut pool = pool();
    loop {
        if let Some(buffer) = pool.find(node) {
            return buffer;
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
pub(crate) struct PooledBuffer {
    node: u16,
    bytes: Box<[u8]>,
}

impl PooledBuffer {
    /// Takes a buffer for one call. Waits if all are lent.
    pub(crate) fn take() -> Self {
        let (node, bytes) = take(own_node());
        Self { node, bytes }
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let (node, buffer) = (self.node, mem::take(&mut self.bytes));
        // A leaked buffer is not returned.
        if !buffer.is_empty() {
            pool().end_loan(|pool| pool.free.push((node, buffer)));
        }
    }
}

impl Memory for PooledBuffer {
    fn start(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    fn leak(mut self) {
        mem::forget(mem::take(&mut self.bytes));
        pool().end_loan(|pool| pool.made -= 1);
    }
}

impl Pool {
    /// The free buffer of this node that was returned last, a new one, or any other that is free. The kernel is the first
    /// to write to a new one, on the CPU of the call, so that its memory is on this node.
    fn find(&mut self, node: u16) -> Option<(u16, Box<[u8]>)> {
        if let Some(at) = self.free.iter().rposition(|(on, _)| *on == node) {
            return Some(self.free.remove(at));
        }
        if self.made < MAX_BUFFERS {
            self.made += 1;
            return Some((node, vec![0; BUFFER_BYTES].into()));
        }
        self.free.pop()
    }

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
    fn a_buffer_is_lent_on_its_memory_node_until_the_pool_is_at_its_limit() {
        let mut pool = Pool { free: Vec::new(), made: MAX_BUFFERS - 1, waiting: 0 };
        let on = |node: u16| (node, Box::from([node as u8]));
        pool.free.extend([on(0), on(1)]);
        assert_eq!(pool.find(0), Some(on(0)));
        assert_eq!(pool.find(0).map(|(node, _)| node), Some(0), "a new one");
        assert_eq!(pool.made, MAX_BUFFERS);
        assert_eq!(pool.find(0), Some(on(1)), "a remote one is better than none");
        assert_eq!(pool.find(0), None);
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
