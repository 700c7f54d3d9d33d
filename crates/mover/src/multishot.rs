//! `IORING_RECV_MULTISHOT` (io_uring_prep_recv_multishot(3)): one request stands for many receives. The kernel puts
//! each into a buffer of a shared ring, and posts a completion for it, all in one system call.
//!
//! The request ends if the socket is empty: with `MSG_DONTWAIT` nothing is in flight between two calls. A request that
//! waits in the kernel instead cost as much CPU time per byte over loopback (Linux 6.18). The request also ends if the
//! kernel finds no buffer (`ENOBUFS`), and the next call makes a new one.
//!
//! So the kernel needs buffers only within a call: they are parts of a pooled buffer that is borrowed for the call. A
//! flow keeps nothing but its rings.

use std::io;
use std::mem::{self, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fd};
use io_uring::{cqueue, opcode};
use rustix::io::{Errno, Result as SysResult};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};

use crate::buffer_pool::{BUFFER_BYTES, PooledBuffer};
use crate::ring::{Ring, outcome};

/// Buffers of a ring; the kernel requires a power of two. The completion queue, with twice as many places, takes one
/// completion per buffer and the one that ends the request.
const RING_BUFFERS: u16 = 8;
/// Largest buffer, bytes: a call with chunks of usual size then receives 128 KiB, a chunk's size.
const MAX_BUFFER_BYTES: usize = 16 << 10;
/// Bytes of the ring of buffers: a page, because the kernel requires page alignment.
const BUFFER_RING_BYTES: usize = 4096;
/// The only group of buffers.
const BUFFER_GROUP_ID: u16 = 0;

/// Bytes of memory that a flow holds between its calls.
pub(crate) const HELD_BYTES: u64 = BUFFER_RING_BYTES as u64;

/// Most bytes that one call receives.
pub(crate) fn room(chunk: usize) -> usize {
    usize::from(RING_BUFFERS) * chunk.min(MAX_BUFFER_BYTES)
}

/// Whether this kernel supports it; if not, its error.
pub(crate) fn trial() -> io::Result<()> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    send(&far, b"x", SendFlags::NOSIGNAL)?;
    Multishot::new(1)?.read(&near, |_| {}).map(drop).map_err(io::Error::from)
}

/// A ring, and the ring of its buffers.
pub(crate) struct Multishot {
    // Dropped before the ring of buffers, whose address it knows. Holds the pooled buffer within a call.
    ring: Ring<PooledBuffer>,
    buffers: Buffers,
    /// The end of the stream, if not reported yet.
    ended: Option<SysResult<usize>>,
    exhausted: u64,
}

impl Multishot {
    /// For reads of up to `chunk` bytes. Takes one descriptor.
    pub(crate) fn new(chunk: usize) -> io::Result<Self> {
        let ring = Ring::new(usize::from(RING_BUFFERS))?;
        let buffers = Buffers::new(chunk.min(MAX_BUFFER_BYTES))?;
        buffers.register(&ring)?;
        Ok(Self { ring, buffers, ended: None, exhausted: 0 })
    }

    /// Receives the available data without waiting, in one system call, and passes it to `show` in order; zero is the
    /// end of the stream.
    pub(crate) fn read(&mut self, socket: &OwnedFd, show: impl FnMut(&[u8])) -> SysResult<usize> {
        if let Some(ended) = self.ended.take() {
            return ended;
        }
        let start = self.ring.hold(PooledBuffer::take())?;
        self.buffers.lie_at(start);
        let taken = self.ask(socket).and_then(|()| self.carry_out(show));
        // Returns the buffer to all flows, unless the kernel still has it.
        drop(self.ring.release());
        match taken? {
            0 => self.ended.take().unwrap_or(Err(Errno::AGAIN)),
            taken => Ok(taken),
        }
    }

    #[expect(unsafe_code, reason = "the kernel is given a request")]
    fn ask(&mut self, socket: &OwnedFd) -> SysResult<()> {
        let socket = Fd(socket.as_raw_fd());
        let request =
            opcode::RecvMulti::new(socket, BUFFER_GROUP_ID).flags(libc::MSG_DONTWAIT).build();
        // SAFETY: the request names no memory but the buffers, which are parts of the pooled buffer that the ring owns.
        unsafe { self.ring.note(&request) }
    }

    /// Waits until the request is over; returns how many bytes it has brought.
    fn carry_out(&mut self, mut show: impl FnMut(&[u8])) -> SysResult<usize> {
        let Self { ring, buffers, ended, exhausted } = self;
        let mut taken = 0;
        ring.carry_out(|entry| {
            let outcome = outcome(entry.result());
            if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
                show(buffers.content(buffer, outcome.unwrap_or(0)));
                buffers.give_back(buffer);
                buffers.publish();
            }
            match outcome {
                Ok(0) => *ended = Some(Ok(0)),
                Ok(bytes) => taken += bytes,
                Err(Errno::AGAIN) => {}
                Err(Errno::NOBUFS) => *exhausted += 1,
                Err(cause) => *ended = Some(Err(cause)),
            }
        })?;
        Ok(taken)
    }

    /// How often the kernel found no buffer since the last query.
    pub(crate) fn exhausted(&mut self) -> u64 {
        mem::take(&mut self.exhausted)
    }
}

/// The ring in which buffers are handed to the kernel (io_uring_register_buf_ring(3)).
struct Buffers {
    start: *mut u8,
    /// Bytes of a buffer.
    each: usize,
    /// Where the next buffer is handed over; the [`RING_BUFFERS`] before it are the kernel's, once they have an
    /// address.
    tail: u16,
    /// The address of the buffers.
    room: *mut u8,
}

impl Buffers {
    /// With buffers of `each` bytes.
    #[expect(unsafe_code, reason = "mapping memory")]
    fn new(each: usize) -> io::Result<Self> {
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no other.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), BUFFER_RING_BYTES, access, kind)? };
        Ok(Self { start: start.cast(), each, tail: RING_BUFFERS, room: ptr::null_mut() })
    }

    /// Lets the kernel use the pooled buffer at `start` from now on: all its parts are handed over anew. Only call this
    /// while there is no request.
    fn lie_at(&mut self, start: *mut u8) {
        debug_assert!(usize::from(RING_BUFFERS) * self.each <= BUFFER_BYTES);
        self.room = start;
        self.tail = self.tail.wrapping_sub(RING_BUFFERS);
        (0..RING_BUFFERS).for_each(|buffer| self.give_back(buffer));
        self.publish();
    }

    /// The data that the kernel put into a buffer that was not returned since.
    #[expect(unsafe_code, reason = "memory that the kernel has written to")]
    fn content(&self, buffer: u16, len: usize) -> &[u8] {
        let at = usize::from(buffer % RING_BUFFERS) * self.each;
        // SAFETY: the buffer is part of a pooled buffer of this process, whose bytes are initialized from the start,
        // and the kernel leaves it alone until it is returned.
        unsafe { slice::from_raw_parts(self.room.wrapping_add(at), len.min(self.each)) }
    }

    /// Registers the ring with the kernel.
    #[expect(unsafe_code, reason = "the kernel is given an address")]
    fn register(&self, ring: &Ring<PooledBuffer>) -> io::Result<()> {
        let address = self.start.addr() as u64;
        // SAFETY: the mapping is the ring's, begins at a page boundary, and is unmapped only after the ring is closed.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(address, RING_BUFFERS, BUFFER_GROUP_ID, 0)
        }
    }

    #[expect(unsafe_code, reason = "a place of memory that is shared with the kernel")]
    fn give_back(&mut self, buffer: u16) {
        let place = usize::from(self.tail % RING_BUFFERS) * size_of::<BufRingEntry>();
        let address = self.room.wrapping_add(usize::from(buffer) * self.each);
        // SAFETY: the place is within the ring's page and aligned to an entry, for which any bytes are valid; the
        // kernel does not look there before the tail is published.
        let entry = unsafe { &mut *self.start.add(place).cast::<BufRingEntry>() };
        entry.set_addr(address.addr() as u64);
        entry.set_len(self.each as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Publishes the returned buffers to the kernel.
    #[expect(unsafe_code, reason = "a place of memory that is shared with the kernel")]
    fn publish(&self) {
        // SAFETY: the ring is mapped, and its tail is where its first entry has room for it; the
        // kernel reads it with acquire semantics.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.start.cast()).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for Buffers {
    #[expect(unsafe_code, reason = "unmapping memory")]
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no request is in flight.
        let _ = unsafe { munmap(self.start.cast(), BUFFER_RING_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::faults::{Fault, plant, plant_lasting};

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
    }

    fn write(socket: &OwnedFd, count: usize) {
        assert_eq!(send(socket, &vec![7; count], SendFlags::NOSIGNAL), Ok(count));
    }

    #[test]
    fn one_call_fills_many_buffers_and_what_is_more_waits_for_the_next() {
        let (near, far) = pair();
        let mut ring = Multishot::new(100).unwrap();
        assert_eq!(ring.read(&near, |_| {}), Err(Errno::AGAIN));
        write(&far, 250);
        assert_eq!(
            (ring.read(&near, |_| {}), ring.read(&near, |_| {})),
            (Ok(250), Err(Errno::AGAIN))
        );
        assert_eq!(ring.exhausted(), 0);
        let all = usize::from(RING_BUFFERS) * 100;
        write(&far, 3 * all + 1);
        let read: Vec<_> = std::iter::from_fn(|| ring.read(&near, |_| {}).ok()).collect();
        assert_eq!((read[0], read.iter().sum::<usize>()), (all, 3 * all + 1));
        assert_eq!(ring.exhausted(), 3);
    }

    #[test]
    fn what_comes_lies_in_the_room_that_was_lent() {
        let (near, far) = pair();
        let mut ring = Multishot::new(4096).unwrap();
        for _ in 0..3 {
            // Buffers that others have in the meantime are not written to.
            let taken = PooledBuffer::take();
            let before = taken[0];
            write(&far, 10);
            assert_eq!(ring.read(&near, |_| {}), Ok(10));
            assert_eq!(taken[0], before);
        }
        write(&far, 10);
        assert_eq!(ring.read(&near, |_| {}), Ok(10));
    }

    #[test]
    fn the_end_of_the_stream_comes_after_all_of_it_and_stays() {
        let (near, far) = pair();
        let mut ring = Multishot::new(100).unwrap();
        write(&far, 30);
        drop(far);
        assert_eq!(
            (ring.read(&near, |_| {}), ring.read(&near, |_| {}), ring.read(&near, |_| {})),
            (Ok(30), Ok(0), Ok(0))
        );
    }

    #[test]
    fn an_error_is_reported_as_it_is() {
        let file = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert_eq!(Multishot::new(1).unwrap().read(&file, |_| {}), Err(Errno::NOTSOCK));
    }

    #[test]
    fn what_is_received_goes_into_the_buffers_alone() {
        let (near, far) = pair();
        let mut ring = Multishot::new(4096).unwrap();
        // More often than the ring's tail can count.
        for _ in 0..40_000 {
            write(&far, 5000);
            let read = std::iter::from_fn(|| ring.read(&near, |_| {}).ok());
            assert_eq!(read.sum::<usize>(), 5000);
        }
        assert_eq!(ring.exhausted(), 0);
    }

    #[test]
    fn what_comes_is_shown_in_order_to_its_last_byte() {
        let (near, far) = pair();
        let mut ring = Multishot::new(100).unwrap();
        let sent: Vec<u8> =
            (0..3000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        assert_eq!(send(&far, &sent, SendFlags::NOSIGNAL), Ok(sent.len()));
        let mut seen = Vec::new();
        while ring.read(&near, |payload| seen.extend_from_slice(payload)).is_ok() {}
        assert_eq!(seen, sent);
    }

    #[test]
    fn a_call_that_fails_for_a_moment_loses_nothing() {
        let (near, far) = pair();
        let mut ring = Multishot::new(100).unwrap();
        write(&far, 250);
        plant([Fault::Error(Errno::AGAIN), Fault::Error(Errno::INTR), Fault::NoWait]);
        assert_eq!(ring.read(&near, |_| {}), Ok(250));
        assert_eq!(ring.read(&near, |_| {}), Err(Errno::AGAIN));
    }

    #[test]
    fn a_call_that_fails_for_good_leaves_the_room_to_others_and_reads_no_more() {
        let (near, far) = pair();
        let mut ring = Multishot::new(100).unwrap();
        write(&far, 30);
        plant_lasting(Errno::AGAIN);
        for _ in 0..2 {
            assert_eq!(ring.read(&near, |_| {}), Err(Errno::NOMEM), "the socket is not empty");
        }
        assert!(ring.ring.release().is_none(), "it is given back");
        drop(ring);
        assert_eq!(rustix::io::read(&near, &mut [0; 99]), Ok(30));
    }
}
