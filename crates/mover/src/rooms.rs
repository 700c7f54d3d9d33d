//! Memory to receive into, lent for one call at a time: nobody looks at what arrives, so flows share
//! it. The room that was given back last is lent first, while the processor's cache still holds it.

use std::mem;
use std::sync::{Condvar, Mutex, PoisonError};

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

/// Takes the room that was given back last, or a new one; where there are as many as there may be, waits
/// for one of the calls that have them, none of which waits for its socket.
fn take() -> Box<[u8]> {
    // A thread that panicked has left whole rooms.
    let mut rooms = ROOMS.lock().unwrap_or_else(PoisonError::into_inner);
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

/// A room that is lent, until the call is over, or its thread has panicked.
struct Lent(Box<[u8]>);

impl Drop for Lent {
    fn drop(&mut self) {
        give_back(mem::take(&mut self.0));
    }
}

fn give_back(room: Box<[u8]>) {
    let mut rooms = ROOMS.lock().unwrap_or_else(PoisonError::into_inner);
    rooms.free.push(room);
    // To notify is a system call, even where nobody waits.
    if rooms.waiting > 0 {
        GIVEN_BACK.notify_one();
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
        let mut room = Lent(take());
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
    fn many_flows_share_few_rooms() {
        let lend = || Room::of(1).lend(1, |_| std::thread::yield_now());
        std::thread::scope(|scope| {
            (0..4 * MOST).for_each(|_| drop(scope.spawn(|| (0..50).for_each(|_| lend()))));
        });
        let rooms = ROOMS.lock().unwrap();
        assert!(rooms.made <= MOST && rooms.waiting == 0);
    }
}
