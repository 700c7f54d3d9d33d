//! Memory in pages of its own, which the kernel may keep reading after a call has returned.
//!
//! Payload that is sent without a copy is read until the peer has acknowledged it, and a flow may end before that.
//! Unmapped pages stay with the kernel as long as it needs them, and are not reused before. Heap memory would be
//! reused, and the peer would receive what other code writes there.
//!
//! Nobody writes to the pages, so all flows on one memory node that send the same payload share them. A chunk for each of
//! many flows would take memory, and not fit into the processor's cache. Pages of another node would be read across the
//! link between the nodes.

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use goodput_framing::Framing;
use rustix::io::Result as SysResult;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::numa::own_node;
use crate::payload;

/// What is shared at the moment: the memory node, how the payload begins, its length, and the pages for as long as a flow
/// holds them.
type Shared = Vec<((u16, &'static [u8], usize), Weak<Pages>)>;
static SHARED: Mutex<Shared> = Mutex::new(Vec::new());

/// Where a huge page may begin, bytes: on x86-64, and on arm64 with pages of 4 KiB
/// (Documentation/admin-guide/mm/transhuge.rst).
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Mapped memory that nobody writes to any longer.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    len: usize,
    mapped: (NonNull<u8>, usize),
}

// SAFETY: nobody writes to the pages, and any thread may unmap them.
#[expect(unsafe_code, reason = "a pointer to memory that is only read")]
unsafe impl Send for Pages {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "a pointer to memory that is only read")]
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` bytes, at least one, to send with `framing`, shared with every flow on the calling thread's memory node that
    /// sends the same payload. Fails if memory is short.
    pub(crate) fn payload(framing: &Framing, len: usize) -> SysResult<Arc<Self>> {
        Self::payload_on(own_node(), framing, len)
    }

    /// The same on memory node `node`. The pages get there because the calling thread, which runs there, writes to them
    /// first.
    fn payload_on(node: u16, framing: &Framing, len: usize) -> SysResult<Arc<Self>> {
        let wanted = (node, framing.lead(), len);
        // A thread that panicked has left complete entries.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|(_, pages)| pages.strong_count() > 0);
        let same = shared.iter().find(|(what, _)| *what == wanted);
        if let Some(pages) = same.and_then(|(_, pages)| pages.upgrade()) {
            return Ok(pages);
        }
        let pages = Arc::new(Self::beginning_with(framing.lead(), len)?);
        shared.push((wanted, Arc::downgrade(&pages)));
        Ok(pages)
    }

    /// Payload (see [`payload`]) after the first bytes, in a huge page if the kernel grants one: a zero-copy
    /// send then takes one fragment of a packet instead of sixteen.
    #[expect(unsafe_code, reason = "mapping memory")]
    fn beginning_with(lead: &[u8], len: usize) -> SysResult<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let room = len.next_multiple_of(HUGE_PAGE_BYTES);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no other.
        let mapped = unsafe {
            mmap_anonymous(ptr::null_mut(), room + HUGE_PAGE_BYTES, access, MapFlags::PRIVATE)?
        };
        let skip = mapped.cast::<u8>().align_offset(HUGE_PAGE_BYTES);
        let mut pages = Self::at(mapped.cast(), room + HUGE_PAGE_BYTES);
        // SAFETY: less than HUGE_PAGE_BYTES, which the mapping has beyond `room`.
        pages.start = unsafe { pages.start.add(skip) };
        pages.len = len;
        // SAFETY: the range lies within the new mapping. If the kernel refuses, pages are small.
        let _ = unsafe { madvise(pages.start.as_ptr().cast(), room, Advice::LinuxHugepage) };
        // SAFETY: the mapping is readable and writable for `len` bytes from there, and nobody else
        // has it yet.
        let bytes = unsafe { slice::from_raw_parts_mut(pages.start.as_ptr(), len) };
        payload::fill(0, bytes);
        bytes.iter_mut().zip(lead).for_each(|(byte, lead)| *byte = *lead);
        Ok(pages)
    }

    /// The first `len` bytes, at least one, of a file that is at least this long and that nobody will write to
    /// or truncate.
    #[expect(unsafe_code, reason = "mapping memory")]
    pub(crate) fn of_file(file: &OwnedFd, len: usize) -> SysResult<Self> {
        let (access, kind) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no other.
        let start = unsafe { mmap(ptr::null_mut(), len, access, kind, file, 0)? };
        Ok(Self::at(start.cast(), len))
    }

    fn at(start: *mut u8, len: usize) -> Self {
        let start = NonNull::new(start).expect("a mapping is never at address zero");
        Self { start, len, mapped: (start, len) }
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
        let _ = unsafe { munmap(self.mapped.0.as_ptr().cast(), self.mapped.1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload;

    #[test]
    fn payload_begins_at_a_page_and_as_its_framing_has_it() {
        let pages = Pages::payload(&goodput_framing::ttcp(), 5000).unwrap();
        assert_eq!((pages.len(), pages.as_ptr().addr() % rustix::param::page_size()), (5000, 0));
        assert!(pages.starts_with(goodput_framing::ttcp().lead()));
        assert!(pages[100..].iter().any(|byte| *byte != 0));
    }

    #[test]
    fn flows_that_send_the_same_share_it() {
        // On a node that is named: between two calls the scheduler may move this thread to another one.
        let of = |framing, len| Pages::payload_on(0, &framing, len).unwrap();
        let (one, other) =
            (of(goodput_framing::goodput(), 6000), of(goodput_framing::goodput(), 6000));
        assert!(Arc::ptr_eq(&one, &other));
        assert!(!Arc::ptr_eq(&one, &of(goodput_framing::goodput(), 6001)));
        assert!(!Arc::ptr_eq(&one, &of(goodput_framing::ttcp(), 6000)));
        assert_eq!(of(goodput_framing::ttcp(), 3)[..], goodput_framing::ttcp().lead()[..3]);
    }

    #[test]
    fn flows_on_different_memory_nodes_share_nothing_with_each_other() {
        let on = |node| Pages::payload_on(node, &goodput_framing::goodput(), 6002).unwrap();
        let (one, other) = (on(0), on(1));
        assert!(!Arc::ptr_eq(&one, &other) && Arc::ptr_eq(&one, &on(0)));
        assert_eq!(one[..], other[..], "the payload is the same");
    }

    #[test]
    fn a_mapped_file_shows_what_is_in_it() {
        let file = payload::memory_file(&goodput_framing::goodput(), 5000).unwrap();
        let pages = Pages::of_file(&file, 5000).unwrap();
        let mut read = [0; 5000];
        assert_eq!(rustix::io::pread(&file, &mut read, 0), Ok(5000));
        assert_eq!(*pages, read);
    }
}
