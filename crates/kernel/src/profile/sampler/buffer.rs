//! The buffer that the kernel fills with the records of a perf event: one page that says how far it is filled, then a ring of
//! bytes (perf_event_open(2), "MMAP layout"; include/uapi/linux/perf_event.h).

use std::io;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Length of the ring, bytes: a power of two pages. With call chains, a sample takes up to 160 bytes, so that it holds
/// those of 0.8 s.
const RING_BYTES: usize = 64 << 10;
/// `struct perf_event_header`: type, where the CPU was, and length.
const HEADER_BYTES: u64 = 8;

/// A perf event and its buffer.
#[derive(Debug)]
pub struct SampleBuffer {
    at: ptr::NonNull<u8>,
    page: usize,
    _event: OwnedFd,
}

// SAFETY: the mapping belongs to this value alone, and only `&mut self` reads it.
#[expect(unsafe_code, reason = "a pointer to a mapping may go to another thread with it")]
unsafe impl Send for SampleBuffer {}

impl SampleBuffer {
    /// Maps the buffer of `event`, which counts already.
    ///
    /// # Errors
    /// If the kernel refuses the mapping, as beyond `kernel.perf_event_mlock_kb`.
    #[expect(unsafe_code, reason = "rustix maps only what the caller knows to be sound")]
    pub fn of(event: OwnedFd) -> io::Result<Self> {
        let page = rustix::param::page_size();
        // Written to as well: only then the kernel keeps what was not read yet.
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe {
            mmap(ptr::null_mut(), page + RING_BYTES, access, MapFlags::SHARED, &event, 0)
        }?;
        let at = ptr::NonNull::new(at.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { at, page, _event: event })
    }

    /// Takes all records out of the buffer: the type of each, where the CPU was, and what follows the header.
    pub fn drain(&mut self, mut take: impl FnMut(u32, u16, &[u8])) {
        // The kernel writes records before the head that shows them.
        let head = self.head().load(Ordering::Acquire);
        let mut tail = self.tail().load(Ordering::Relaxed);
        while head.wrapping_sub(tail) >= HEADER_BYTES {
            let [a, b, c, d, misc_a, misc_b, length_a, length_b] = self.header(tail);
            let length = u64::from(u16::from_ne_bytes([length_a, length_b]));
            // Only a kernel that errs makes such a record: what follows can't be read.
            if length < HEADER_BYTES || length > head.wrapping_sub(tail) {
                tail = head;
                break;
            }
            let body: Vec<u8> = (HEADER_BYTES..length).map(|at| self.byte(tail + at)).collect();
            take(u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([misc_a, misc_b]), &body);
            tail += length;
        }
        self.tail().store(tail, Ordering::Release);
    }

    fn header(&self, at: u64) -> [u8; HEADER_BYTES as usize] {
        std::array::from_fn(|offset| self.byte(at + offset as u64))
    }

    /// A byte of the ring, between tail and head.
    #[expect(unsafe_code, reason = "the ring is shared with the kernel")]
    fn byte(&self, at: u64) -> u8 {
        let offset = self.page + (at as usize & (RING_BYTES - 1));
        // SAFETY: the offset is within the mapping, and the kernel does not write between tail and head.
        unsafe { self.at.add(offset).read() }
    }

    /// How far the kernel has written.
    fn head(&self) -> &AtomicU64 {
        self.word(std::mem::offset_of!(perf_event_mmap_page, data_head))
    }

    /// How far this program has read.
    fn tail(&self) -> &AtomicU64 {
        self.word(std::mem::offset_of!(perf_event_mmap_page, data_tail))
    }

    #[expect(unsafe_code, reason = "the page is shared with the kernel")]
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offset is that of a field in the first page of the mapping, which is aligned as a page, and the
        // kernel, too, writes the field as one word.
        unsafe { AtomicU64::from_ptr(self.at.add(offset).as_ptr().cast()) }
    }
}

impl Drop for SampleBuffer {
    #[expect(unsafe_code, reason = "rustix unmaps only what the caller knows to be sound")]
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing borrows from it any more.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.page + RING_BYTES) };
    }
}
