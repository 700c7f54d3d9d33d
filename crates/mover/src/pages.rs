//! Memory of its own pages, which the kernel may go on reading after a call has returned.
//!
//! Payload that is sent without a copy is read until the peer has acknowledged it, and a flow may
//! end before that. Pages that were unmapped stay with the kernel as long as it needs them and are
//! not used again until then; memory of the heap would be, and what others write into it would go
//! out to the peer.

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::slice;

use rustix::io::Result as SysResult;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// Mapped memory that nobody writes to any more.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    len: usize,
}

impl Pages {
    /// `len` random bytes, at least one. Fails where memory is short.
    #[expect(unsafe_code, reason = "mapping memory")]
    pub(crate) fn random(len: usize) -> SysResult<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no other.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, access, MapFlags::PRIVATE)? };
        let pages = Self::at(start.cast(), len);
        // SAFETY: the mapping is readable and writable for `len` bytes, and nobody else has it yet.
        rand::fill(unsafe { slice::from_raw_parts_mut(pages.start.as_ptr(), len) });
        Ok(pages)
    }

    /// The first `len` bytes, at least one, of a file that has as many and that nobody will write
    /// to or cut.
    #[expect(unsafe_code, reason = "mapping memory")]
    pub(crate) fn of_file(file: &OwnedFd, len: usize) -> SysResult<Self> {
        let (access, kind) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no other.
        let start = unsafe { mmap(ptr::null_mut(), len, access, kind, file, 0)? };
        Ok(Self::at(start.cast(), len))
    }

    fn at(start: *mut u8, len: usize) -> Self {
        Self { start: NonNull::new(start).expect("a mapping is never at address zero"), len }
    }
}

impl Deref for Pages {
    type Target = [u8];

    #[expect(unsafe_code, reason = "the mapping is a slice")]
    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is readable for `len` bytes until it is dropped, and is not written
        // to after its constructor has returned.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Pages {
    #[expect(unsafe_code, reason = "unmapping memory")]
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no borrow of it is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload;

    #[test]
    fn random_pages_begin_at_a_page_and_are_not_all_zero() {
        let pages = Pages::random(5000).unwrap();
        assert_eq!((pages.len(), pages.as_ptr().addr() % rustix::param::page_size()), (5000, 0));
        assert!(pages.iter().any(|byte| *byte != 0));
    }

    #[test]
    fn a_mapped_file_shows_what_is_in_it() {
        let file = payload::memory_file(5000).unwrap();
        let pages = Pages::of_file(&file, 5000).unwrap();
        let mut read = [0; 5000];
        assert_eq!(rustix::io::pread(&file, &mut read, 0), Ok(5000));
        assert_eq!(*pages, read);
    }
}
