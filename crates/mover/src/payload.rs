//! The bytes that are sent. They look random, so that nothing on the path can compress them. Each byte is a function of
//! its position and of a key of this process, so that a restart, a swap, a loss or a copy within a chunk or a file can
//! be detected.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use goodput_framing::Framing;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, Result as SysResult};

/// Least length of a file to send from, bytes. Long enough that pages still queued in the socket are seldom being sent
/// again, short enough for the memory of many flows.
const FILE_BYTES: usize = 1 << 20;

/// Bytes of a memory file that are generated at a time.
const PIECE_BYTES: usize = 1 << 16;

/// Fills `room` with the payload that begins `offset` bytes after the start of a chunk, or of a memory file. The
/// framing determines the first bytes of a chunk.
pub fn payload_at(framing: &Framing, offset: u64, room: &mut [u8]) {
    fill(offset, room);
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    let lead = framing.lead().get(skip..).unwrap_or_default();
    room.iter_mut().zip(lead).for_each(|(byte, lead)| *byte = *lead);
}

/// The same without the bytes of a framing.
pub(crate) fn fill(offset: u64, room: &mut [u8]) {
    const WORD_BYTES: usize = size_of::<u64>();
    let (mut word, skip) = (offset / WORD_BYTES as u64, (offset % WORD_BYTES as u64) as usize);
    let head = room.len().min(WORD_BYTES - skip);
    let (first, rest) = room.split_at_mut(head);
    first.copy_from_slice(&word_at(word)[skip..skip + head]);
    for part in rest.chunks_mut(WORD_BYTES) {
        word += 1;
        part.copy_from_slice(&word_at(word)[..part.len()]);
    }
}

/// The eight bytes of a position: a counter, mixed (SplitMix64; Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", 2014).
fn word_at(number: u64) -> [u8; 8] {
    static KEY: OnceLock<u64> = OnceLock::new();
    let counter = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut mixed = KEY.get_or_init(rand::random).wrapping_add(counter);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_le_bytes()
}

/// `len` random bytes.
pub(crate) fn random(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rand::fill(bytes.as_mut_slice());
    bytes
}

/// Length of a file from which `chunk` bytes at a time are sent: whole chunks, at least 1 MiB.
pub(crate) fn file_len(chunk: usize) -> usize {
    FILE_BYTES.next_multiple_of(chunk)
}

/// A file of `len` bytes of payload without a name, only in memory.
pub(crate) fn memory_file(framing: &Framing, len: usize) -> SysResult<OwnedFd> {
    let file = memfd_create(c"goodput-payload", MemfdFlags::CLOEXEC)?;
    write_to(&file, framing, len as u64, || Ok(()))?;
    Ok(file)
}

/// Writes `len` bytes of payload to a memory file; `check` may stop this between two pieces.
pub(crate) fn write_to<E: From<Errno>>(
    file: &OwnedFd,
    framing: &Framing,
    len: u64,
    check: impl Fn() -> Result<(), E>,
) -> Result<(), E> {
    let (mut piece, mut written) = (vec![0; PIECE_BYTES], 0);
    while written < len {
        check()?;
        let room = &mut piece[..(len - written).min(PIECE_BYTES as u64) as usize];
        payload_at(framing, written, room);
        let mut at = 0;
        while at < room.len() {
            match rustix::io::write(file, &room[at..]) {
                Ok(count) => at += count,
                Err(Errno::INTR) => {}
                Err(cause) => return Err(cause.into()),
            }
        }
        written += at as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_part_is_what_the_whole_has_there(at in 0_usize..200, len in 0_usize..200) {
            for framing in [goodput_framing::goodput(), goodput_framing::ttcp()] {
                let (mut whole, mut part) = (vec![0; 400], vec![0; len]);
                payload_at(&framing, 0, &mut whole);
                payload_at(&framing, at as u64, &mut part);
                prop_assert_eq!(&whole[at..at + len], &part[..]);
            }
        }
    }

    #[test]
    fn no_two_places_look_alike() {
        let mut payload = vec![0; 1 << 20];
        fill(0, &mut payload);
        let places: std::collections::HashSet<_> = payload.chunks(8).collect();
        assert_eq!(places.len(), payload.len() / 8);
    }

    #[test]
    fn a_file_in_memory_holds_it() {
        let len = 2 * PIECE_BYTES + 5;
        let file = memory_file(&goodput_framing::ttcp(), len).unwrap();
        let (mut read, mut expected) = (vec![0; len + 1], vec![0; len]);
        assert_eq!(rustix::io::pread(&file, &mut read, 0), Ok(len));
        payload_at(&goodput_framing::ttcp(), 0, &mut expected);
        assert_eq!(read[..len], expected);
    }
}
