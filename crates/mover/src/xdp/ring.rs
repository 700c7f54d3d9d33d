//! A ring that this process shares with the kernel: one of both writes entries, the other takes them
//! (Documentation/networking/af_xdp.rst, include/uapi/linux/if_xdp.h).

use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::{Errno, Result as SysResult};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::xdp::{XdpDesc, XdpRingFlags, XdpRingOffset};

/// A mapped ring with entries of type `T`, which are plain numbers.
struct Ring<T> {
    start: NonNull<u8>,
    bytes: usize,
    at: XdpRingOffset,
    /// Entries that it has, a power of two.
    size: u32,
    /// The index of the next entry that this end writes or takes. Indexes run on and wrap.
    own: u32,
    entries: PhantomData<T>,
}

// SAFETY: the mapping is this value's own, and any thread may use or unmap it.
#[expect(unsafe_code, reason = "a pointer to memory of its own")]
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps the ring of `socket` with `size` entries that the kernel offers at `page`.
    #[expect(unsafe_code, reason = "mapping memory")]
    fn map(socket: BorrowedFd<'_>, at: XdpRingOffset, size: u32, page: u64) -> SysResult<Self> {
        let bytes =
            usize::try_from(at.desc).map_err(|_| Errno::INVAL)? + size as usize * size_of::<T>();
        let (access, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no other.
        let start = unsafe { mmap(ptr::null_mut(), bytes, access, flags, socket, page)? };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        let ring = Self { start, bytes, at, size, own: 0, entries: PhantomData };
        let words = [Some(at.producer), Some(at.consumer), at.flags];
        let fits = |offset: u64| offset.is_multiple_of(4) && offset + 4 <= at.desc;
        let entries_fit = at.desc.is_multiple_of(align_of::<T>() as u64) && size.is_power_of_two();
        if entries_fit && words.into_iter().flatten().all(fits) {
            Ok(ring)
        } else {
            Err(Errno::INVAL)
        }
    }

    /// One of the numbers before the entries.
    #[expect(unsafe_code, reason = "the kernel writes to it as well")]
    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: `map` has checked that the offsets of the kernel are aligned and within the mapping, which lives as
        // long as this value. Both ends only use atomic operations on them.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset as usize).cast()) }
    }

    /// The address of an entry.
    #[expect(unsafe_code, reason = "an address within the mapping")]
    fn entry(&self, index: u32) -> *mut T {
        let number = (index & (self.size - 1)) as usize;
        // SAFETY: the mapping has `size` entries from here on.
        unsafe { self.start.as_ptr().add(self.at.desc as usize).cast::<T>().add(number) }
    }
}

impl<T> Drop for Ring<T> {
    #[expect(unsafe_code, reason = "unmapping memory")]
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing refers to it any longer.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The frames to send: this end writes, the kernel takes.
pub(super) struct SendRing(Ring<XdpDesc>);

impl SendRing {
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        at: XdpRingOffset,
        size: u32,
        page: u64,
    ) -> SysResult<Self> {
        Ring::map(socket, at, size, page).map(Self)
    }

    /// Adds a frame, which the kernel sees after [`SendRing::publish`]. There must be room: fewer frames than entries
    /// wait.
    #[expect(unsafe_code, reason = "writing to mapped memory")]
    pub(super) fn add(&mut self, frame: XdpDesc) {
        debug_assert!(self.waiting() < self.0.size);
        // SAFETY: an entry of this ring that the kernel does not read before it is published.
        unsafe { self.0.entry(self.0.own).write(frame) };
        self.0.own = self.0.own.wrapping_add(1);
    }

    /// Shows the kernel all added frames.
    pub(super) fn publish(&self) {
        self.0.word(self.0.at.producer).store(self.0.own, Ordering::Release);
    }

    /// Frames that the kernel has not taken.
    pub(super) fn waiting(&self) -> u32 {
        self.0.own.wrapping_sub(self.0.word(self.0.at.consumer).load(Ordering::Acquire))
    }

    /// Whether the kernel takes nothing until it is called. A ring without flags, of a kernel before 5.4, says nothing of this.
    pub(super) fn needs_call(&self) -> bool {
        let bit = XdpRingFlags::XDP_RING_NEED_WAKEUP.bits();
        let flags = self.0.at.flags;
        flags.is_none_or(|at| self.0.word(at).load(Ordering::Relaxed) & bit != 0)
    }
}

/// The frames that have left, by their offsets: the kernel writes, this end takes.
pub(super) struct CompletionRing(Ring<u64>);

impl CompletionRing {
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        at: XdpRingOffset,
        size: u32,
        page: u64,
    ) -> SysResult<Self> {
        Ring::map(socket, at, size, page).map(Self)
    }

    /// The next one.
    #[expect(unsafe_code, reason = "reading mapped memory")]
    pub(super) fn take(&mut self) -> Option<u64> {
        let ring = &mut self.0;
        if ring.word(ring.at.producer).load(Ordering::Acquire) == ring.own {
            return None;
        }
        // SAFETY: an entry of this ring that the kernel has published, and does not write again before it is released.
        let offset = unsafe { ring.entry(ring.own).read() };
        ring.own = ring.own.wrapping_add(1);
        ring.word(ring.at.consumer).store(ring.own, Ordering::Release);
        Some(offset)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::net::xdp::XdpDescOptions;

    use super::*;

    const AT: XdpRingOffset =
        XdpRingOffset { producer: 0, consumer: 64, desc: 128, flags: Some(68) };

    /// A file in the kernel's place.
    fn file() -> std::os::fd::OwnedFd {
        let file = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        file
    }

    #[test]
    fn frames_are_seen_in_their_order_once_published_though_indexes_wrap() {
        let file = file();
        let mut ours = SendRing::map(file.as_fd(), AT, 4, 0).unwrap();
        let kernels = SendRing::map(file.as_fd(), AT, 4, 0).unwrap();
        let options = XdpDescOptions::empty();
        for round in 0..10u32 {
            let frame = XdpDesc { addr: u64::from(round), len: 60, options };
            ours.add(frame);
            assert_eq!(kernels.0.word(AT.producer).load(Ordering::Acquire), round);
            ours.publish();
            assert_eq!(
                (ours.waiting(), kernels.0.word(AT.producer).load(Ordering::Acquire)),
                (1, round + 1)
            );
            #[expect(unsafe_code, reason = "reading mapped memory")]
            // SAFETY: an entry of the ring.
            let seen = unsafe { kernels.0.entry(round).read() };
            assert_eq!(seen, frame);
            kernels.0.word(AT.consumer).store(round + 1, Ordering::Release);
            assert_eq!(ours.waiting(), 0);
        }
        assert!(!ours.needs_call());
        kernels.0.word(68).store(XdpRingFlags::XDP_RING_NEED_WAKEUP.bits(), Ordering::Release);
        assert!(ours.needs_call());
    }

    #[test]
    fn what_has_left_is_taken_once() {
        let file = file();
        let mut ours = CompletionRing::map(file.as_fd(), AT, 4, 0).unwrap();
        let kernels = CompletionRing::map(file.as_fd(), AT, 4, 0).unwrap();
        assert_eq!(ours.take(), None);
        for round in 0..10u32 {
            #[expect(unsafe_code, reason = "writing to mapped memory")]
            // SAFETY: an entry of the ring.
            unsafe {
                kernels.0.entry(round).write(u64::from(round) * 2048);
            }
            kernels.0.word(AT.producer).store(round + 1, Ordering::Release);
            assert_eq!(ours.take(), Some(u64::from(round) * 2048));
            assert_eq!(ours.take(), None);
            assert_eq!(kernels.0.word(AT.consumer).load(Ordering::Acquire), round + 1);
        }
    }

    #[test]
    fn offsets_outside_the_mapping_are_refused() {
        let file = file();
        for at in [
            XdpRingOffset { producer: 2, ..AT },
            XdpRingOffset { consumer: 128, ..AT },
            XdpRingOffset { desc: 129, ..AT },
        ] {
            assert!(CompletionRing::map(file.as_fd(), at, 4, 0).is_err(), "{at:?}");
        }
        assert!(CompletionRing::map(file.as_fd(), AT, 3, 0).is_err(), "no power of two");
    }
}
