//! Memory to receive into, lent for one call at a time: nobody looks at what arrives, so flows share
//! it. The room that was given back last is lent first, while the processor's cache still holds it.

use std::mem;
use std::ops::Deref;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::ring::Memory;

/// Largest room that is shared, bytes; also the least to read into. What collects while the reader is
/// away is then read at once.
pub(crate) const ROOM: usize = 256 << 10;

/// Most rooms that are shared. A thread that is preempted within a call keeps its room, so with many flows
/// on few processors there would else be as many rooms as flows.
const MOST: usize = 32;

static ROOMS: Mutex<Rooms> = Mutex::new(Rooms { free: Vec::new(), made: 0, waiting: 0 });
static GIVEN_BACK: Condvar = Condvar::new();

/// The rooms of all flows.
struct Rooms {
    /// Those that nobody has now.
    free: Vec<Box<[u8]>>,
    /// How many there are.
    made: usize,
    /// How many flows wait for one.
    waiting: usize,
}

/// Takes the room that was given back last, or a new one; if there are as many as there may be, waits
/// for one of the calls that have them, none of which waits for its socket.
fn take() -> Box<[u8]> {
    let mut rooms = all();
    loop {
        if let Some(room) = rooms.free.pop() {
            return room;
        }
        if rooms.made < MOST {
            rooms.made += 1;
            return vec![0; ROOM].into();
        }
        rooms.waiting += 1;
        rooms = GIVEN_BACK.wait(rooms).unwrap_or_else(PoisonError::into_inner);
        rooms.waiting -= 1;
    }
}

/// The rooms; a thread that panicked has left them whole.
fn all() -> MutexGuard<'static, Rooms> {
    ROOMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A room of [`ROOM`] bytes that is lent, until the call is over, or its thread has panicked.
pub(crate) struct Lent(Box<[u8]>);

impl Lent {
    /// Takes a room for one call. Waits if all are lent.
    pub(crate) fn take() -> Self {
        Self(take())
    }
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let room = mem::take(&mut self.0);
        // A room that leaked is not given back.
        if !room.is_empty() {
            all().end_loan(|rooms| rooms.free.push(room));
        }
    }
}

impl Memory for Lent {
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    fn leak(mut self) {
        mem::forget(mem::take(&mut self.0));
        all().end_loan(|rooms| rooms.made -= 1);
    }
}

impl Rooms {
    /// A flow has one room less, so that another flow may have one.
    fn end_loan(&mut self, how: impl FnOnce(&mut Self)) {
        how(self);
        // To notify is a system call, even if nobody waits.
        if self.waiting > 0 {
            GIVEN_BACK.notify_one();
        }
    }
}

/// What a flow receives into.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// One of its own, where [`ROOM`] is too small.
    own: Box<[u8]>,
}

impl Room {
    /// Of at least `len` bytes.
    pub(crate) fn of(len: usize) -> Self {
        let own = if len > ROOM { len } else { 0 };
        Self { own: vec![0; own].into() }
    }

    /// Bytes that can be received at once.
    pub(crate) fn len(&self) -> usize {
        self.own.len().max(ROOM)
    }

    /// Makes a call that receives into the first `len` bytes.
    pub(crate) fn lend<T>(&mut self, len: usize, call: impl FnOnce(&mut [u8]) -> T) -> T {
        if !self.own.is_empty() {
            return call(&mut self.own[..len]);
        }
        let mut room = Lent::take();
        call(&mut room.0[..len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_room_is_the_flows_own() {
        let (mut small, mut large) = (Room::of(10), Room::of(ROOM + 1));
        assert_eq!((small.len(), large.len()), (ROOM, ROOM + 1));
        assert_eq!(small.lend(7, |room| room.len()), 7);
        large.lend(9, |room| room.fill(5));
        assert_eq!(large.lend(9, |room| room.to_vec()), [5; 9]);
    }

    #[test]
    fn a_thread_that_panics_leaves_its_room() {
        for _ in 0..=MOST {
            let panics = || Room::of(1).lend(1, |_| std::panic::resume_unwind(Box::new(())));
            assert!(std::thread::spawn(panics).join().is_err());
        }
    }

    #[test]
    fn a_room_that_the_kernel_may_still_write_to_is_lent_to_nobody() {
        let mut leaked = Lent::take();
        let start = leaked.start();
        leaked.leak();
        let mut others: Vec<_> = (0..MOST / 2).map(|_| Lent::take()).collect();
        assert!(others.iter_mut().all(|room| room.start() != start));
    }

    #[test]
    fn many_flows_share_few_rooms() {
        let lend = || Room::of(1).lend(1, |_| std::thread::yield_now());
        std::thread::scope(|scope| {
            (0..4 * MOST).for_each(|_| drop(scope.spawn(|| (0..50).for_each(|_| lend()))));
        });
        let rooms = ROOMS.lock().unwrap();
        assert!(rooms.made <= MOST && rooms.waiting == 0);
    }
}
