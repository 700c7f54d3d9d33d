//! The memory of the frames (UMEM): this process writes a frame, the kernel or the card reads it.

use std::ptr::{self, NonNull};
use std::slice;

use rustix::io::{Errno, Result as SysResult};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::headers::MAX_HEADER_BYTES;

/// Frames of one flow. As many descriptors fit into its rings, so a power of two. At 100 Gbit/s with 1500 bytes each
/// they last for 61 us.
pub(super) const FRAMES: u32 = 512;

/// Longest frame, bytes: a page (`xdp_umem_reg`, net/xdp/xdp_umem.c), of which the smallest has 4096 bytes.
pub(super) const MAX_FRAME_BYTES: usize = 4096;

/// Shortest place for a frame, bytes (`XDP_UMEM_MIN_CHUNK_SIZE`, net/xdp/xdp_umem.h).
const MIN_FRAME_BYTES: usize = 2048;

/// Memory of one flow with datagrams of `size` bytes.
pub(crate) fn memory_bytes(size: u64) -> u64 {
    u64::from(FRAMES) * frame_bytes(usize::try_from(size).unwrap_or(usize::MAX)) as u64
}

/// The place of each frame with a datagram of `size` bytes, bytes: a power of two.
fn frame_bytes(size: usize) -> usize {
    let fits = size <= MIN_FRAME_BYTES - MAX_HEADER_BYTES;
    if fits { MIN_FRAME_BYTES } else { MAX_FRAME_BYTES }
}

/// [`FRAMES`] frames, one after the other.
pub(super) struct FrameMemory {
    start: NonNull<u8>,
    frame_bytes: usize,
}

// SAFETY: the memory is this value's own, and any thread may unmap it.
#[expect(unsafe_code, reason = "a pointer to memory of its own")]
unsafe impl Send for FrameMemory {}

impl FrameMemory {
    /// Zeroed frames, each long enough for a datagram of `size` bytes. Fails if memory is short.
    #[expect(unsafe_code, reason = "mapping memory")]
    pub(super) fn new(size: usize) -> SysResult<Self> {
        let frame_bytes = frame_bytes(size);
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no other.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), FRAMES as usize * frame_bytes, access, flags)?
        };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { start, frame_bytes })
    }

    /// Its address, for the kernel.
    pub(super) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// All of it, bytes.
    pub(super) fn len(&self) -> usize {
        FRAMES as usize * self.frame_bytes
    }

    /// The place of each frame, bytes.
    pub(super) fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Where a frame begins, counted from the start.
    pub(super) fn offset(&self, frame: u32) -> u64 {
        u64::from(frame) * self.frame_bytes as u64
    }

    /// The frame with this offset, which the kernel may have rounded down to the frame's start.
    pub(super) fn frame_at(&self, offset: u64) -> u32 {
        u32::try_from(offset / self.frame_bytes as u64).map_or(FRAMES, |frame| frame.min(FRAMES))
    }

    /// A frame to write. Only call this while the frame is not in the kernel's hands: what the kernel reads meanwhile
    /// would be torn.
    ///
    /// # Panics
    ///
    /// If there is no such frame.
    #[expect(unsafe_code, reason = "a part of mapped memory")]
    pub(super) fn frame(&mut self, frame: u32) -> &mut [u8] {
        assert!(frame < FRAMES, "there are {FRAMES} frames");
        let at = frame as usize * self.frame_bytes;
        // SAFETY: the part lies within the mapping, which lives as long as this value, and no other reference to it
        // exists while this one borrows the value. The kernel never writes to it: the fill ring is empty.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().add(at), self.frame_bytes) }
    }
}

impl Drop for FrameMemory {
    #[expect(unsafe_code, reason = "unmapping memory")]
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own. The kernel has pinned the pages that it still reads.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_room_for_its_datagram_and_for_the_longest_headers() {
        for (size, bytes) in [(5, 2048), (1472, 2048), (1986, 2048), (1987, 4096), (4034, 4096)] {
            assert_eq!(frame_bytes(size), bytes, "{size}");
            assert!(size + MAX_HEADER_BYTES <= bytes);
        }
        assert_eq!(memory_bytes(1472), 1 << 20);
        assert_eq!(memory_bytes(u64::MAX), 2 << 20);
    }

    #[test]
    fn frames_lie_apart() {
        let mut memory = FrameMemory::new(1472).unwrap();
        for frame in 0..FRAMES {
            memory.frame(frame).fill(frame as u8);
        }
        for frame in 0..FRAMES {
            assert!(memory.frame(frame).iter().all(|byte| *byte == frame as u8));
            let offset = memory.offset(frame);
            assert_eq!((memory.frame_at(offset), memory.frame_at(offset + 100)), (frame, frame));
        }
        assert_eq!(memory.frame_at(u64::MAX), FRAMES, "no frame of this memory");
    }
}
