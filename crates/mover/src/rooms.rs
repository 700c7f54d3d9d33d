//! Memory to receive into, lent for one call at a time: nobody looks at what arrives, so flows share
//! it. The room that was given back last is lent first, while the processor's cache still holds it.

use std::sync::{Mutex, PoisonError};

/// Largest room that is shared, bytes; also the least to read into. What collects while the reader is
/// away is then read at once.
pub(crate) const ROOM: usize = 256 << 10;

/// Rooms that nobody has now: as many as calls were ever made at the same time.
static ROOMS: Mutex<Vec<Box<[u8]>>> = Mutex::new(Vec::new());

/// What a flow receives into.
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
        // A thread that panicked has left whole rooms.
        let lent = ROOMS.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut room = lent.unwrap_or_else(|| vec![0; ROOM].into());
        let result = call(&mut room[..len]);
        ROOMS.lock().unwrap_or_else(PoisonError::into_inner).push(room);
        result
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
}
