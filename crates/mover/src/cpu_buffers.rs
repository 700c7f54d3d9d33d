//! Memory to read a stream into, lent for one call at a time, and kept apart for each CPU.
//!
//! Nobody looks at the payload, so all flows share the buffers. Copying is fast while the target is in the cache of
//! the CPU that copies, and unchanged in those of others. So a call gets the buffer that its CPU used last, and a
//! buffer is a fraction of a CPU's own cache. Buffers that moved from CPU to CPU cost a quarter of the copy with 8
//! flows.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::thread::sched_getcpu;

/// Most bytes that one call reads.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// CPUs with shelves of their own; those beyond share them.
const SHELVES: usize = 128;

/// Most buffers. A thread that is preempted within a call keeps its buffer. Without a bound, many flows on few CPUs
/// would use as many buffers as there are flows.
const MAX_BUFFERS: usize = 128;

static SHELF_OF_CPU: [Shelf; SHELVES] = [const { Shelf(Mutex::new(Vec::new())) }; SHELVES];
/// How many buffers exist.
static MADE: AtomicUsize = AtomicUsize::new(0);
/// How many flows wait for a buffer. Changed only under `WAITING_LOCK`.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static WAITING_LOCK: Mutex<()> = Mutex::new(());
static GIVEN_BACK: Condvar = Condvar::new();

/// The free buffers that a CPU used last. Aligned like [`Counters`](crate::Counters), so that no CPU waits for the
/// cache lines of another's.
#[repr(align(128))]
struct Shelf(Mutex<Vec<Box<[u8]>>>);

/// A buffer on loan, until the call is over or its thread has panicked.
struct Loan(Box<[u8]>);

/// Makes a call that reads into a buffer of [`READ_BYTES`]. Waits if all are lent: none of the calls that hold one
/// waits for its socket.
pub(crate) fn lend<T>(call: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut loan = Loan(take());
    call(&mut loan.0)
}

impl Drop for Loan {
    fn drop(&mut self) {
        own_shelf().free().push(mem::take(&mut self.0));
        if WAITING.load(Ordering::SeqCst) > 0 {
            // A flow that is about to wait has looked at the shelves under this lock.
            let _lock = WAITING_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            GIVEN_BACK.notify_one();
        }
    }
}

impl Shelf {
    /// A thread that panicked has left complete entries.
    fn free(&self) -> MutexGuard<'_, Vec<Box<[u8]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn own_shelf() -> &'static Shelf {
    &SHELF_OF_CPU[sched_getcpu() % SHELVES]
}

fn take() -> Box<[u8]> {
    let free = own_shelf().free().pop();
    free.or_else(make).or_else(take_any).unwrap_or_else(wait)
}

/// A new buffer, if there may be more.
fn make() -> Option<Box<[u8]>> {
    let more = |made| (made < MAX_BUFFERS).then_some(made + 1);
    MADE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
    Some(vec![0; READ_BYTES].into())
}

/// Another CPU's.
fn take_any() -> Option<Box<[u8]>> {
    SHELF_OF_CPU.iter().find_map(|shelf| shelf.free().pop())
}

/// Waits for a buffer that is given back.
fn wait() -> Box<[u8]> {
    let mut lock = WAITING_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // Counted before the look at the shelves: whoever gives back after that look sees it.
    WAITING.fetch_add(1, Ordering::SeqCst);
    loop {
        if let Some(buffer) = take_any() {
            WAITING.fetch_sub(1, Ordering::SeqCst);
            return buffer;
        }
        lock = GIVEN_BACK.wait(lock).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_gives_its_buffer_back() {
        for _ in 0..=MAX_BUFFERS {
            let panics = || lend(|_| std::panic::resume_unwind(Box::new(())));
            assert!(std::thread::spawn(panics).join().is_err());
        }
    }

    #[test]
    fn no_two_calls_have_the_same_buffer() {
        lend(|one| {
            lend(|other| {
                one.fill(1);
                other.fill(2);
                assert!(one.iter().all(|byte| *byte == 1));
                assert_eq!((one.len(), other.len()), (READ_BYTES, READ_BYTES));
            });
        });
    }

    #[test]
    fn more_flows_than_buffers_wait_for_each_other() {
        let call = || lend(|_| std::thread::yield_now());
        std::thread::scope(|scope| {
            (0..3 * MAX_BUFFERS).for_each(|_| drop(scope.spawn(|| (0..50).for_each(|_| call()))));
        });
        assert!(MADE.load(Ordering::Relaxed) <= MAX_BUFFERS);
    }
}
