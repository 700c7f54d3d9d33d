//! The AF_XDP socket of one flow: its memory, its two rings, and the queue of the device that it sends on.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, Result as SysResult};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XdpDesc,
    XdpDescOptions, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with, sockopt,
};

use super::memory::{FRAMES, FrameMemory};
use super::path::Path;
use super::refusal;
use super::ring::{CompletionRing, SendRing};
use crate::clock::now_ns;
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;

/// How long to wait for a queue, nanoseconds: that of a socket which was just closed is free only a moment later
/// (`xp_release_deferred`, net/xdp/xsk_buff_pool.c).
const QUEUE_NS: u64 = 1_000_000_000;
/// How often to try again, nanoseconds.
const RETRY_NS: u64 = 5_000_000;

/// A bound socket, and the frames that it shares with the kernel.
pub(super) struct XdpSocket {
    socket: OwnedFd,
    memory: FrameMemory,
    to_send: SendRing,
    have_left: CompletionRing,
    /// Frames that the kernel does not have, in the order in which they came back.
    free: VecDeque<u32>,
}

/// A socket on a free queue of the path's device, for datagrams of `size` bytes; `None` if the stop came first.
///
/// Always in copy mode: in zero-copy mode the driver would hand over the queue's receive side as well, and the host would
/// receive nothing on it any more.
pub(super) fn open(flow: &Flow, path: &Path, size: usize) -> Result<Option<XdpSocket>, MoveError> {
    let mut socket = XdpSocket::new(size).map_err(|why| refused(flow, why))?;
    let until = now_ns() + QUEUE_NS;
    while flow.may_send() {
        match socket.bind(path) {
            Ok(()) => return Ok(Some(socket)),
            Err(Errno::BUSY) if now_ns() < until => flow.park(None, Some(now_ns() + RETRY_NS))?,
            Err(cause) => {
                return Err(refused(flow, refusal::not_bound(cause, &path.device, path.queues)));
            }
        }
    }
    Ok(None)
}

fn refused(flow: &Flow, why: Unsupported) -> MoveError {
    MoveError::Unsupported { flow: flow.config.id, why }
}

impl XdpSocket {
    /// Makes a socket and closes it.
    pub(super) fn try_out() -> SysResult<()> {
        make().map(drop)
    }

    /// A socket with memory and rings, not bound to a device.
    fn new(size: usize) -> Result<Self, Unsupported> {
        let socket = make().map_err(refusal::not_made)?;
        let bytes = super::memory_bytes(size as u64) as usize;
        Self::with_memory(socket, size).map_err(|cause| refusal::not_registered(cause, bytes))
    }

    fn with_memory(socket: OwnedFd, size: usize) -> SysResult<Self> {
        let memory = FrameMemory::new(size)?;
        let memory_of_frames = XdpUmemReg {
            addr: memory.address(),
            len: memory.len() as u64,
            chunk_size: memory.frame_bytes() as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&socket, memory_of_frames)?;
        // It stays empty, but a socket with memory must have one (`xsk_validate_queues`, net/xdp/xsk.c).
        sockopt::set_xdp_umem_fill_ring_size(&socket, 1)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, FRAMES)?;
        sockopt::set_xdp_tx_ring_size(&socket, FRAMES)?;
        // In copy mode, packets on their way count as the socket's memory. What is available is enough.
        let _ = sockopt::set_socket_send_buffer_size(&socket, 2 * memory.len());
        let at = sockopt::xdp_mmap_offsets(&socket)?;
        let to_send = SendRing::map(socket.as_fd(), at.tx, FRAMES, XDP_PGOFF_TX_RING)?;
        let page = XDP_UMEM_PGOFF_COMPLETION_RING;
        let have_left = CompletionRing::map(socket.as_fd(), at.cr, FRAMES, page)?;
        let free = (0..FRAMES).collect();
        Ok(Self { socket, memory, to_send, have_left, free })
    }

    /// Binds it to the first free queue of the device. `EBUSY` if there is none.
    fn bind(&mut self, path: &Path) -> SysResult<()> {
        let flags = SocketAddrXdpFlags::XDP_COPY | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        for queue in 0..path.queues {
            match bind(&self.socket, &SocketAddrXdp::new(flags, path.index, queue)) {
                Err(Errno::BUSY) => {}
                bound => return bound,
            }
        }
        Err(Errno::BUSY)
    }

    /// Each frame in its turn, to prepare it. Only before the first is sent.
    pub(super) fn prepare(&mut self, mut write: impl FnMut(u32, &mut [u8])) {
        debug_assert_eq!(self.free.len(), FRAMES as usize);
        (0..FRAMES).for_each(|frame| write(frame, self.memory.frame(frame)));
    }

    /// Takes back the frames that have left.
    pub(super) fn collect(&mut self) {
        while let Some(offset) = self.have_left.take() {
            let frame = self.memory.frame_at(offset);
            if frame < FRAMES {
                self.free.push_back(frame);
            }
        }
    }

    /// Whether the kernel has none of the frames.
    pub(super) fn is_idle(&self) -> bool {
        self.free.len() == FRAMES as usize
    }

    /// Lets `write` fill a free frame, and adds as many of its bytes as `write` returns to those that wait for
    /// [`XdpSocket::hand_over`]. `false` if no frame is free.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let Some(frame) = self.free.pop_front() else { return false };
        let len = write(self.memory.frame(frame)) as u32;
        let options = XdpDescOptions::empty();
        self.to_send.add(XdpDesc { addr: self.memory.offset(frame), len, options });
        true
    }

    /// Hands all added frames to the kernel. `EAGAIN` if it does not take them now: they stay in the ring for the next
    /// time.
    pub(super) fn hand_over(&mut self) -> SysResult<()> {
        self.to_send.publish();
        while self.to_send.waiting() > 0 && self.to_send.needs_call() {
            match self.call() {
                // All were taken.
                Ok(()) => return Ok(()),
                // The device dropped a frame, which the receiver will miss, and the call ended there.
                Err(Errno::BUSY | Errno::INTR) => {}
                // No room in the device, in the completion ring or in the socket's share of memory.
                Err(Errno::AGAIN | Errno::NOBUFS) => return Err(Errno::AGAIN),
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }

    /// Makes the kernel look at the ring (`xsk_sendmsg`, net/xdp/xsk.c). In copy mode one call sends up to 32 frames
    /// (`TX_BATCH_SIZE`).
    fn call(&self) -> SysResult<()> {
        send(&self.socket, &[], SendFlags::DONTWAIT).map(drop)
    }
}

fn make() -> SysResult<OwnedFd> {
    socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)
}
