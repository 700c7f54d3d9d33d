//! io_uring(7) with `IORING_OP_SEND_ZC` (Linux 6.0): the device reads the payload from pages that are
//! pinned once, at the start, rather than at every send as with `MSG_ZEROCOPY`.
//!
//! Each send gives a result, and later a notice that the kernel has done with the pages, which tells
//! whether it copied them after all (`IORING_SEND_ZC_REPORT_USAGE`, Linux 6.2), as it does where the
//! path stays on this host or where the device can't gather.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use goodput_model::{Plan, Role, Transport};
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::io::{Errno, Result as SysResult};
use rustix::net::{AddressFamily, SocketType, socket};

use super::uring::{errno, new_ring, ring_can_be_had};
use super::{Mover, check_chunk, check_kernel, check_transport};
use crate::clock::now_ns;
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::Needs;
use crate::pages::Pages;
use crate::stop::Phase;
use crate::stream;

/// Sends whose notice is not there yet, at most: a ring of [`super::uring`] has places for twice as
/// many.
const OUTSTANDING: u64 = 64;
/// How long one wait for a notice lasts, nanoseconds: the stop is looked at in between.
const WAIT_NS: u32 = 1_000_000;
/// How long a sender waits for the last notices, nanoseconds: well below the 100 ms in which it must
/// stop. The pages outlive it in the kernel.
const LAST_NS: u64 = 50_000_000;
/// `IORING_SEND_ZC_REPORT_USAGE`, and the bit of a notice that answers it,
/// `IORING_NOTIF_USAGE_ZC_COPIED` (include/uapi/linux/io_uring.h).
const REPORT_USAGE: u16 = 1 << 3;
const COPIED: u32 = 1 << 31;

/// Sends from pages that are registered with the ring. Memory: one chunk for all sending flows, which
/// counts against each one's limit of locked memory.
pub struct UringZerocopy;

impl Mover for UringZerocopy {
    fn id(&self) -> &'static str {
        "uring-zerocopy"
    }

    fn summary(&self) -> &'static str {
        "send registered pages without a copy (io_uring, SEND_ZC), count what the kernel copied anyway"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Tcp]
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Sender]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        check_chunk(self, plan)?;
        ring_can_be_had(self)?;
        check_kernel(self, "sends without a copy by io_uring", "6.2", trial)
    }

    fn needs(&self, plan: &Plan, role: Role) -> Needs {
        let locked_bytes = plan.chunk_bytes.0;
        Needs { descriptors: 1, locked_bytes, ..Needs::chunk(plan, role) }
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let pages = Pages::payload(&flow.config.framing, flow.config.chunk)
            .map_err(|cause| flow.failed("make the buffer to send from", cause))?;
        let ring = new_ring(flow)?;
        register(&ring, &pages).map_err(|cause| no_room(flow, &cause))?;
        flow.counters.copied_sends(0);
        let mut sender = Sender { ring, pages, flow, outstanding: 0 };
        stream::send(flow, &mut sender)?;
        flow.payload_is_over();
        sender.wait_for_last()
    }
}

/// Whether the kernel knows such a send: then a socket that is not connected is all that it objects to.
fn trial() -> io::Result<()> {
    let (mut ring, socket) =
        (IoUring::new(1)?, socket(AddressFamily::INET, SocketType::STREAM, None)?);
    let nothing = [0; 1];
    let send = opcode::SendZc::new(types::Fd(socket.as_raw_fd()), nothing.as_ptr(), 1)
        .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
        .zc_flags(REPORT_USAGE)
        .build();
    push(&mut ring, &send)?;
    ring.submit_and_wait(1)?;
    let result = ring.completion().next().map_or(0, |entry| entry.result());
    match Errno::from_raw_os_error(-result) {
        Errno::INVAL | Errno::OPNOTSUPP if result < 0 => Err(io::Error::from_raw_os_error(-result)),
        _ => Ok(()),
    }
}

#[expect(unsafe_code, reason = "the kernel is given an address")]
fn push(ring: &mut IoUring, send: &squeue::Entry) -> SysResult<()> {
    // SAFETY: what is sent outlives the call that hands the request over, and is only read. Of
    // `Pages` the kernel keeps what it still needs; one byte of `trial` never leaves.
    unsafe { ring.submission().push(send) }.map_err(|_| Errno::BUSY)
}

#[expect(unsafe_code, reason = "the kernel is given an address")]
fn register(ring: &IoUring, pages: &Pages) -> io::Result<()> {
    let whole = libc::iovec { iov_base: pages.as_ptr().cast_mut().cast(), iov_len: pages.len() };
    // SAFETY: the kernel pins the pages, which are only read, and keeps them as long as the ring.
    unsafe { ring.submitter().register_buffers(&[whole]) }
}

/// `ENOMEM` does not name the limit.
fn no_room(flow: &Flow, cause: &io::Error) -> MoveError {
    let words = format!(
        "{cause}; each flow's chunk counts against the limit of locked memory, as 2 MiB where it is \
         in a huge page: raise it (ulimit -l), or choose a smaller --chunk, fewer flows or the mover \
         uring"
    );
    let cause = io::Error::new(cause.kind(), words);
    MoveError::from_system(flow.config.id, "register the pages to send from", cause)
}

/// Sends the registered pages again and again.
struct Sender<'a> {
    // Dropped before the pages, of which it knows the addresses.
    ring: IoUring,
    pages: Arc<Pages>,
    flow: &'a Flow,
    /// Sends whose notice is not there yet.
    outstanding: u64,
}

impl stream::Write for &mut Sender<'_> {
    fn write(&mut self, want: usize) -> SysResult<usize> {
        if self.outstanding >= OUTSTANDING {
            self.collect();
            if self.outstanding >= OUTSTANDING {
                return Err(Errno::AGAIN);
            }
        }
        let socket = types::Fd(self.flow.socket.as_raw_fd());
        let send = opcode::SendZc::new(socket, self.pages.as_ptr(), want as u32)
            .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            .buf_index(Some(0))
            .zc_flags(REPORT_USAGE)
            .build();
        push(&mut self.ring, &send)?;
        loop {
            match self.ring.submit_and_wait(1).map_err(errno) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(cause) => return Err(cause),
            }
            if let Some(result) = self.collect() {
                return usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
            }
        }
    }

    fn wait(&mut self, flow: &Flow) -> Result<(), MoveError> {
        self.collect();
        if self.outstanding < OUTSTANDING {
            return flow.wait_writable();
        }
        flow.counters.blocked.during(|| self.wait_for_notice())
    }
}

impl Sender<'_> {
    /// Takes what the ring has: the result of a send where there is one, and all notices.
    fn collect(&mut self) -> Option<i32> {
        let (mut result, mut copied) = (None, 0);
        for entry in self.ring.completion() {
            if cqueue::notif(entry.flags()) {
                self.outstanding -= 1;
                copied += u64::from(entry.result() as u32 & COPIED != 0);
            } else {
                self.outstanding += u64::from(cqueue::more(entry.flags()));
                result = Some(entry.result());
            }
        }
        self.flow.counters.copied_sends(copied);
        result
    }

    fn wait_for_notice(&self) -> Result<(), MoveError> {
        let time = Timespec::new().nsec(WAIT_NS);
        let args = SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &args).map_err(errno) {
            Ok(_) | Err(Errno::TIME | Errno::INTR) => Ok(()),
            Err(cause) => Err(self.flow.failed("wait for io_uring", cause)),
        }
    }

    /// Waits, not for long, until the kernel has done with all, so that what it copied is counted.
    fn wait_for_last(&mut self) -> Result<(), MoveError> {
        let end = now_ns() + LAST_NS;
        loop {
            self.collect();
            if self.outstanding == 0 || now_ns() >= end {
                return Ok(());
            }
            if self.flow.stop.phase() == Phase::Abort {
                return Err(self.flow.aborted());
            }
            self.wait_for_notice()?;
        }
    }
}
