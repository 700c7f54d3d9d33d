//! io_uring(7) with `IORING_OP_SEND_ZC` (Linux 6.0): the device reads the payload from pages that are pinned once, at
//! the start, not at every send as with `MSG_ZEROCOPY`.
//!
//! Each send gives a result, and later a notice that the kernel no longer needs the pages. The notice reports whether
//! the kernel copied them after all (`IORING_SEND_ZC_REPORT_USAGE`, Linux 6.2), as it does if the path stays on this
//! host or if the device can't gather.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use goodput_model::{HostWork, Plan, Role};
use io_uring::{cqueue, opcode, squeue, types};
use rustix::io::{Errno, Result as SysResult};
use rustix::net::{AddressFamily, SocketType, socket};

use super::{Mover, check_kernel, check_stream};
use crate::clock::now_ns;
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::Needs;
use crate::pages::Pages;
use crate::ring::{Memory, NOTICED_BIT, QUEUE_DEPTH, Ring, no_ring, outcome, ring_can_be_had};
use crate::stop::Phase;
use crate::stream;

/// Most sends whose notice is pending: a ring has places for twice as many completions.
const MAX_OUTSTANDING_SENDS: u64 = QUEUE_DEPTH as u64;
/// How long one wait for a notice lasts, nanoseconds: the stop is checked in between.
const COMPLETION_WAIT_NS: u32 = 1_000_000;
/// How long a sender waits for the last notices, nanoseconds: well below the 100 ms in which it must stop. The kernel
/// keeps the pages beyond the sender's end.
const LAST_COMPLETION_NS: u64 = 50_000_000;
/// `IORING_SEND_ZC_REPORT_USAGE`, and the bit with which a notice answers, `IORING_NOTIF_USAGE_ZC_COPIED`
/// (include/uapi/linux/io_uring.h).
const REPORT_USAGE: u16 = 1 << 3;
const COPIED_BIT: u32 = 1 << 31;

/// Sends from pages that are registered with the ring. Memory: one chunk shared by all sending flows, which counts
/// against each flow's limit of locked memory.
pub struct UringZerocopy;

impl Mover for UringZerocopy {
    fn id(&self) -> &'static str {
        "uring-zerocopy"
    }

    fn summary(&self) -> &'static str {
        "send registered pages without a copy (io_uring, SEND_ZC); count what the kernel copied anyway"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Sender]
    }

    fn work(&self, _role: Role) -> HostWork {
        HostWork::PageReferences
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_stream(self, plan)?;
        ring_can_be_had(self)?;
        check_kernel(self, "io_uring sends without a copy", "6.2", trial)
    }

    fn needs(&self, plan: &Plan, role: Role) -> Needs {
        let locked_bytes = plan.chunk_bytes.0;
        Needs { descriptors: 1, locked_bytes, ..Needs::chunk(plan, role) }
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let pages = Pages::payload(&flow.config.framing, flow.config.chunk)
            .map_err(|cause| flow.failed("make the buffer to send from", cause))?;
        let mut ring =
            Ring::with(QUEUE_DEPTH, Arc::clone(&pages)).map_err(|cause| no_ring(flow, &cause))?;
        register(&mut ring, &pages).map_err(|cause| no_room(flow, &cause))?;
        flow.counters.copied_sends(0);
        let mut sender = Sender { ring, flow, outstanding: 0 };
        stream::send(flow, &mut sender)?;
        flow.payload_is_over();
        sender.wait_for_last()
    }
}

/// Whether the kernel knows such a send: its only complaint is then that the socket is not connected.
fn trial() -> io::Result<()> {
    let nothing: &[u8] = &[0];
    let mut ring = Ring::with(1, nothing)?;
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    note(&mut ring, &socket, 0, 1, None)?;
    let mut result = Ok(0);
    ring.carry_out(|entry| {
        if !cqueue::notif(entry.flags()) {
            result = outcome(entry.result());
        }
    })?;
    match result {
        Err(cause @ (Errno::INVAL | Errno::OPNOTSUPP)) => Err(cause.into()),
        _ => Ok(()),
    }
}

/// Queues a send of `len` bytes of the ring's memory, which may be registered, from offset `at`.
#[expect(unsafe_code, reason = "the kernel is given an address")]
fn note<M: Memory>(
    ring: &mut Ring<M>,
    socket: &OwnedFd,
    at: usize,
    len: usize,
    registered: Option<u16>,
) -> SysResult<()> {
    let start = ring.start()?.wrapping_add(at);
    let send: squeue::Entry = opcode::SendZc::new(types::Fd(socket.as_raw_fd()), start, len as u32)
        .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
        .buf_index(registered)
        .zc_flags(REPORT_USAGE)
        .build()
        .user_data(NOTICED_BIT);
    // SAFETY: the ring owns the memory, which is only read; the socket lives longer.
    unsafe { ring.note(&send) }
}

#[expect(unsafe_code, reason = "the kernel is given an address")]
fn register(ring: &mut Ring<Arc<Pages>>, pages: &Pages) -> io::Result<()> {
    let whole = libc::iovec { iov_base: ring.start()?.cast(), iov_len: pages.len() };
    // SAFETY: the kernel pins the pages, which are only read, and keeps them as long as the ring.
    unsafe { ring.submitter().register_buffers(&[whole]) }
}

/// `ENOMEM` does not name the limit.
fn no_room(flow: &Flow, cause: &io::Error) -> MoveError {
    let words = format!(
        "{cause}; each flow's chunk counts towards the limit on locked memory (2 MiB if it is in a huge page): raise the limit (ulimit -l), or choose a smaller --chunk, fewer flows or the mover uring"
    );
    let cause = io::Error::new(cause.kind(), words);
    MoveError::from_system(flow.config.id, "register the pages to send from", cause)
}

/// Sends the registered pages repeatedly.
struct Sender<'a> {
    ring: Ring<Arc<Pages>>,
    flow: &'a Flow,
    /// Sends whose notice is pending.
    outstanding: u64,
}

impl stream::Write for &mut Sender<'_> {
    fn write(&mut self, at: usize, want: usize) -> SysResult<usize> {
        if self.outstanding >= MAX_OUTSTANDING_SENDS {
            self.collect();
            if self.outstanding >= MAX_OUTSTANDING_SENDS {
                return Err(Errno::AGAIN);
            }
        }
        note(&mut self.ring, &self.flow.socket, at, want, Some(0))?;
        let mut seen = SeenCompletions::default();
        let carried_out = self.ring.carry_out(|entry| seen.add(entry));
        self.note_all(&seen);
        carried_out.and(seen.result.unwrap_or(Err(Errno::IO)))
    }

    fn wait(&mut self, flow: &Flow) -> Result<(), MoveError> {
        self.collect();
        if self.outstanding < MAX_OUTSTANDING_SENDS {
            return flow.wait_writable();
        }
        flow.counters.blocked.during(|| self.wait_for_notice())
    }
}

/// What completions have reported.
#[derive(Default)]
struct SeenCompletions {
    /// The result of a send.
    result: Option<SysResult<usize>>,
    /// Sends that will get a notice.
    noticed: u64,
    /// All notices, and those that report a copy.
    notices: u64,
    copied: u64,
}

impl SeenCompletions {
    fn add(&mut self, entry: &cqueue::Entry) {
        if cqueue::notif(entry.flags()) {
            self.notices += 1;
            self.copied += u64::from(entry.result() as u32 & COPIED_BIT != 0);
        } else {
            self.noticed += u64::from(cqueue::more(entry.flags()));
            self.result = Some(outcome(entry.result()));
        }
    }
}

impl Sender<'_> {
    fn note_all(&mut self, seen: &SeenCompletions) {
        self.outstanding = (self.outstanding + seen.noticed).saturating_sub(seen.notices);
        self.flow.counters.copied_sends(seen.copied);
    }

    /// Collects the ring's notices.
    fn collect(&mut self) {
        let mut seen = SeenCompletions::default();
        self.ring.collect(|entry| seen.add(entry));
        self.note_all(&seen);
    }

    fn wait_for_notice(&mut self) -> Result<(), MoveError> {
        self.ring
            .wait(COMPLETION_WAIT_NS)
            .map_err(|cause| self.flow.failed("wait for io_uring", cause))
    }

    /// Waits briefly until the kernel has finished all sends, so that its copies are counted.
    fn wait_for_last(&mut self) -> Result<(), MoveError> {
        let end = now_ns() + LAST_COMPLETION_NS;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::faults::{Fault, plant, plant_lasting};

    #[test]
    fn a_signal_and_a_moment_without_memory_are_no_refusal() {
        plant([Errno::INTR, Errno::AGAIN, Errno::INTR].map(Fault::Error));
        trial().expect("this kernel has it");
        plant([Fault::NoWait]);
        trial().expect("this kernel has it");
        plant_lasting(Errno::AGAIN);
        assert_eq!(trial().unwrap_err().raw_os_error(), Some(libc::ENOMEM));
    }
}
