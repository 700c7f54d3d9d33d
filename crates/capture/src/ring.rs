//! The ring that the kernel and this program share: the kernel copies the heads of packets into it, block by block.
//!
//! A ring, and no `recvmsg` for each packet: a socket's queue would hold whole super-packets of 64 KiB, a few of which fill it,
//! and each would take a system call.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_uint, c_void, sockaddr_ll, socklen_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, SockFilter, Socket, Type};

use crate::error::CaptureError;

// Options of the level SOL_PACKET (linux/if_packet.h).
const RX_RING: c_int = 5;
const STATISTICS: c_int = 6;
const VERSION: c_int = 10;
const VERSION_3: c_int = 2;
// Whose a block is.
const KERNEL: u32 = 0;
const USER: u32 = 1;
/// Where a block has that.
const STATUS_OFFSET: usize = 8;

/// A block is handed over when it is full, or after this time.
pub(crate) const HANDED_OVER_MS: u32 = 50;
const BLOCK_BYTES: usize = 512 * 1024;

/// Length of a ring, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocks(usize);

impl Blocks {
    /// Of a capture that the user of this host wants: 32 MiB. At 150 bytes for each packet, they last a quarter of a
    /// second at 800 000 packets per second.
    pub(crate) const OWN: Self = Self(64);
    /// Of a capture for a client: 8 MiB.
    pub(crate) const SERVED: Self = Self(16);

    fn bytes(self) -> usize {
        self.0 * BLOCK_BYTES
    }
}

/// Blocks are no longer divided into frames of one size; a power of two that holds the longest head.
const FRAME_BYTES: usize = 2048;

/// `tpacket_req3`.
#[repr(C)]
struct Request {
    block_bytes: c_uint,
    blocks: c_uint,
    frame_bytes: c_uint,
    frames: c_uint,
    handed_over_ms: c_uint,
    private_bytes: c_uint,
    features: c_uint,
}

/// `tpacket_stats_v3`.
#[repr(C)]
#[derive(Default)]
struct Statistics {
    packets: c_uint,
    drops: c_uint,
    freezes: c_uint,
}

/// A socket that sees packets of a device, and its ring.
#[derive(Debug)]
pub(crate) struct Ring {
    socket: Socket,
    start: NonNull<c_void>,
    blocks: Blocks,
    next: usize,
}

// The mapping is reached through this one owner only.
#[expect(unsafe_code, reason = "it owns a mapping")]
// SAFETY: nothing of it belongs to a thread.
unsafe impl Send for Ring {}

/// A socket with a ring of so many blocks, into which the kernel puts what passes `filter` on `device` from now on. The
/// filter can't be replaced.
pub(crate) fn open(
    device: &str,
    filter: &[SockFilter],
    blocks: Blocks,
) -> Result<Socket, CaptureError> {
    let refused = |step: &'static str| {
        move |cause: io::Error| match cause.kind() {
            io::ErrorKind::PermissionDenied => CaptureError::NotPermitted { device: device.into() },
            _ => CaptureError::Refused { device: device.into(), step, cause },
        }
    };
    // It sees nothing until it is bound: what a filter would drop must not come before the filter.
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, None);
    let socket = socket.map_err(refused("open a packet socket"))?;
    set(&socket, VERSION, &VERSION_3).map_err(refused("choose the form of the ring"))?;
    let request = Request {
        block_bytes: BLOCK_BYTES as c_uint,
        blocks: blocks.0 as c_uint,
        frame_bytes: FRAME_BYTES as c_uint,
        frames: (BLOCK_BYTES / FRAME_BYTES * blocks.0) as c_uint,
        handed_over_ms: HANDED_OVER_MS,
        private_bytes: 0,
        features: 0,
    };
    set(&socket, RX_RING, &request).map_err(refused("get memory for the ring"))?;
    socket.attach_filter(filter).map_err(refused("attach the filter"))?;
    let lock = set_at(&socket, libc::SOL_SOCKET, libc::SO_LOCK_FILTER, &1);
    lock.map_err(refused("lock the filter"))?;
    let index = name_to_index(&socket, device);
    let index = index.map_err(|cause| refused("find the device")(cause.into()))?;
    bind(&socket, index).map_err(refused("bind to the device"))?;
    Ok(socket)
}

impl Ring {
    /// The ring of a socket that [`open`] made, perhaps in another process, with so many blocks.
    pub(crate) fn map(socket: Socket, blocks: Blocks) -> io::Result<Self> {
        let start = map(&socket, blocks.bytes())?;
        Ok(Self { socket, start, blocks, next: 0 })
    }

    /// Waits until a block is there, for `ms` at most. Returns whether one is.
    ///
    /// # Errors
    /// If the device went down (packet(7): the socket then has an error, and poll(2) returns at once).
    pub(crate) fn wait(&self, ms: u32) -> io::Result<bool> {
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(ms) * 1_000_000 };
        let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&time)) {
            Ok(_) if fds[0].revents().contains(PollFlags::IN) => Ok(true),
            Ok(0) => Ok(false),
            Ok(_) => Err(self.socket.take_error()?.unwrap_or(rustix::io::Errno::NETDOWN.into())),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Gives the next block to `take`, if the kernel has handed it over, and then back to the kernel.
    #[expect(unsafe_code, reason = "the kernel shares its memory")]
    pub(crate) fn next<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        // SAFETY: `next` is below the number of blocks, so that the block is within the mapping, which lives as long as this.
        let block = unsafe { self.start.as_ptr().cast::<u8>().add(self.next * BLOCK_BYTES) };
        // SAFETY: a block begins with words, at a multiple of a page.
        let status = unsafe { AtomicU32::from_ptr(block.add(STATUS_OFFSET).cast()) };
        if status.load(Ordering::Acquire) & USER == 0 {
            return None;
        }
        // SAFETY: the kernel writes nothing there until the block is given back; its status is only read through the slice.
        let taken = take(unsafe { std::slice::from_raw_parts(block, BLOCK_BYTES) });
        status.store(KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks.0;
        Some(taken)
    }

    /// Packets that passed the filter since the last call, and how many of them found the ring full and were dropped.
    #[expect(unsafe_code, reason = "libraries have no such option")]
    pub(crate) fn statistics(&self) -> io::Result<(u64, u64)> {
        let mut found = Statistics::default();
        let mut length = size_of::<Statistics>() as socklen_t;
        // SAFETY: both pointers are to values of this function, and the length is that of the first.
        let got = unsafe {
            let fd = self.socket.as_raw_fd();
            let value = ptr::from_mut(&mut found).cast::<c_void>();
            libc::getsockopt(fd, libc::SOL_PACKET, STATISTICS, value, &raw mut length)
        };
        if got != 0 {
            return Err(io::Error::last_os_error());
        }
        // The kernel counts dropped ones among the packets (net/packet/af_packet.c, `packet_getsockopt`).
        Ok((u64::from(found.packets), u64::from(found.drops)))
    }
}

impl Drop for Ring {
    #[expect(unsafe_code, reason = "it owns the mapping")]
    fn drop(&mut self) {
        // SAFETY: nothing else refers to the mapping.
        let _ = unsafe { munmap(self.start.as_ptr(), self.blocks.bytes()) };
    }
}

fn set<T>(socket: &Socket, option: c_int, value: &T) -> io::Result<()> {
    set_at(socket, libc::SOL_PACKET, option, value)
}

#[expect(unsafe_code, reason = "libraries have no such option")]
fn set_at<T>(socket: &Socket, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads a value that lives as long as the call, of the given size.
    let done = unsafe {
        let value = ptr::from_ref(value).cast::<c_void>();
        let length = size_of::<T>() as socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, option, value, length)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[expect(unsafe_code, reason = "memory is mapped")]
fn map(socket: &Socket, bytes: usize) -> io::Result<NonNull<c_void>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place, so that nothing is mapped over.
    let start = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, socket, 0)? };
    NonNull::new(start).ok_or_else(|| io::Error::other("the kernel mapped it at 0"))
}

#[expect(unsafe_code, reason = "libraries have no such address")]
fn bind(socket: &Socket, index: u32) -> io::Result<()> {
    let address = sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        // Outgoing packets are only seen with all protocols.
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address lives as long as the call, and its length is the one passed.
    let done = unsafe {
        let address = ptr::from_ref(&address).cast();
        libc::bind(socket.as_raw_fd(), address, size_of::<sockaddr_ll>() as socklen_t)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
