//! send(2) with `MSG_ZEROCOPY`: the device reads the payload from user memory, and the socket's error queue reports
//! when it has done so (Documentation/networking/msg_zerocopy.rst).
//!
//! A program must not write to a buffer before its completion. The payload here never changes, so one buffer is sent
//! repeatedly. Completions bound what is outstanding, and show whether the kernel copied after all, as it does if the
//! path stays on this host or if the device can't gather.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use goodput_model::{HostWork, Plan, Role, Source};
use rustix::event::PollFlags;
use rustix::io::{Errno, Result as SysResult};
use rustix::net::{AddressFamily, SendFlags, SocketType, send, socket};

use super::mmap_send::Mapped;
use super::{Mover, check_kernel, check_stream};
use crate::clock::now_ns;
use crate::error::MoveError;
use crate::error::Unsupported;
use crate::flow::Flow;
use crate::limits::{Needs, pinned_bytes};
use crate::pages::Pages;
use crate::socket::set_option;
use crate::stop::Phase;
use crate::transfer::{self, SendFailure, Sent};
use crate::{completions, stream};

/// Sends that may wait for their completion. Each takes a little of the socket's option memory (net.core.optmem_max);
/// the default of 128 KiB is enough for about this many.
const MAX_OUTSTANDING_SENDS: u64 = 128;
/// Sends between two checks of the error queue: consecutive completions arrive as one.
const SENDS_PER_LOOK: u64 = 16;
/// How long one wait for a completion lasts, nanoseconds; memory may be available from elsewhere by then.
const COMPLETION_WAIT_NS: u64 = 1_000_000;
/// How long memory may be refused while this flow holds none, nanoseconds: other flows of the same user count against
/// the same limit.
const STARVED_NS: u64 = 1_000_000_000;
/// How long a sender waits for the last completions, nanoseconds: well below the 100 ms in which it must stop. The
/// kernel keeps the pages beyond the sender's end.
const LAST_COMPLETION_NS: u64 = 50_000_000;

/// Sends from pinned pages of memory or of a mapped file. Memory: one chunk shared by all sending flows.
pub struct Zerocopy;

impl Mover for Zerocopy {
    fn id(&self) -> &'static str {
        "zerocopy"
    }

    fn summary(&self) -> &'static str {
        "send with MSG_ZEROCOPY; count what the kernel copied anyway"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Sender]
    }

    fn work(&self, _role: Role) -> HostWork {
        HostWork::PageReferences
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_stream(self, plan)?;
        if plan.socket.mptcp {
            return Err(Unsupported {
                mover: self.id().into(),
                why: "MPTCP sockets have no MSG_ZEROCOPY".into(),
                needs: "choose another mover, or leave out --mptcp".into(),
            });
        }
        check_kernel(self, "MSG_ZEROCOPY", "4.14", || {
            enable(socket(AddressFamily::INET, SocketType::STREAM, None)?.as_fd())
        })
    }

    fn needs(&self, plan: &Plan, role: Role) -> Needs {
        Needs { locked_bytes: pinned_bytes(plan.chunk_bytes.0), ..Needs::chunk(plan, role) }
    }

    fn takes(&self, source: &Source) -> bool {
        *source != Source::Input
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        enable_on(flow)?;
        flow.counters.copied_sends(0);
        if let Some(source) = flow.config.storage.source.as_deref() {
            let mut file =
                FromFile { mapped: Mapped::new(flow, source)?, pinned: Pinned::new(flow) };
            transfer::send(flow, source, &mut file)?;
            flow.payload_is_over();
            return file.pinned.wait_for_last();
        }
        let chunk = Pages::payload(&flow.config.framing, flow.config.chunk)
            .map_err(|cause| flow.failed("make the buffer to send from", cause))?;
        let mut memory = FromMemory { chunk, pinned: Pinned::new(flow) };
        stream::send(flow, &mut memory)?;
        flow.payload_is_over();
        memory.pinned.wait_for_last()
    }
}

/// `SO_ZEROCOPY` (socket(7)).
fn enable(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, &1i32.to_ne_bytes())
}

fn enable_on(flow: &Flow) -> Result<(), MoveError> {
    let failed = |cause| MoveError::from_system(flow.config.id, "use MSG_ZEROCOPY", cause);
    enable(flow.socket.as_fd()).map_err(failed)
}

/// A flow that sends without a copy.
struct Pinned<'a> {
    flow: &'a Flow,
    /// Sends that the kernel took.
    sent: u64,
    /// Sends that the kernel has finished.
    done: u64,
    /// Whether the last send was refused because memory was short.
    refused: bool,
    /// Since when memory is refused while no send of this flow is outstanding.
    starved_ns: Option<u64>,
}

/// One buffer, sent repeatedly.
struct FromMemory<'a> {
    chunk: Arc<Pages>,
    pinned: Pinned<'a>,
}

impl stream::Write for &mut FromMemory<'_> {
    fn write(&mut self, at: usize, want: usize) -> SysResult<usize> {
        let (part, socket) = (&self.chunk[at..at + want], &self.pinned.flow.socket);
        self.pinned.send(|flags| {
            let flags = SendFlags::NOSIGNAL | SendFlags::from_bits_retain(flags as u32);
            send(socket, part, flags)
        })
    }

    fn wait(&mut self, flow: &Flow) -> Result<(), MoveError> {
        self.pinned.wait(flow)
    }

    /// An unread report would end every wait for the peer's answer.
    fn settle(&mut self, _flow: &Flow) -> Result<(), MoveError> {
        self.pinned.wait_for_all(u64::MAX)
    }

    fn go_over(&mut self, flow: &Flow) -> Result<(), MoveError> {
        self.pinned.go_over(flow)
    }
}

/// The pages of a file. A write to the file while it is sent changes what is sent.
struct FromFile<'a> {
    mapped: Mapped<'a>,
    pinned: Pinned<'a>,
}

impl transfer::FileSender for &mut FromFile<'_> {
    fn send(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<Sent, SendFailure> {
        let mut trouble = None;
        let sent = self.pinned.send(|flags| {
            self.mapped.send_part(flow, offset, want, flags).map_err(|why| match why {
                SendFailure::Socket(cause) => cause,
                other => {
                    trouble = Some(other);
                    Errno::IO
                }
            })
        });
        match sent {
            Ok(bytes) => Ok(Sent { bytes, full: bytes < want }),
            Err(cause) => Err(trouble.unwrap_or(SendFailure::Socket(cause))),
        }
    }

    fn wait(&mut self, flow: &Flow) -> Result<(), MoveError> {
        self.pinned.wait(flow)
    }

    /// An unread report would end every wait for the peer's answer.
    fn settle(&mut self, _flow: &Flow) -> Result<(), MoveError> {
        self.pinned.wait_for_all(u64::MAX)
    }

    fn go_over(&mut self, flow: &Flow) -> Result<(), MoveError> {
        self.pinned.go_over(flow)
    }
}

impl<'a> Pinned<'a> {
    fn new(flow: &'a Flow) -> Self {
        Self { flow, sent: 0, done: 0, refused: false, starved_ns: None }
    }

    /// Makes a send with the right flag.
    fn send(&mut self, call: impl FnOnce(i32) -> SysResult<usize>) -> SysResult<usize> {
        if self.outstanding() >= MAX_OUTSTANDING_SENDS {
            return Err(Errno::AGAIN);
        }
        let result = call(libc::MSG_ZEROCOPY);
        self.refused = result == Err(Errno::NOBUFS);
        match result {
            Ok(_) => {
                self.starved_ns = None;
                self.sent += 1;
                if self.sent.is_multiple_of(SENDS_PER_LOOK) {
                    self.look()?;
                }
                result
            }
            Err(Errno::NOBUFS) => Err(Errno::AGAIN),
            other => other,
        }
    }

    /// Waits until another send is worth trying.
    fn wait(&mut self, flow: &Flow) -> Result<(), MoveError> {
        let done = self.done;
        // The queue must be empty before a wait, because otherwise poll(2) returns at once.
        self.look().map_err(|cause| flow.failed("read completions", cause))?;
        if self.refused && self.outstanding() == 0 {
            return self.wait_for_memory();
        }
        if !self.refused && self.outstanding() < MAX_OUTSTANDING_SENDS {
            return flow.wait_writable();
        }
        if self.done > done { Ok(()) } else { self.wait_for_completion() }
    }
}

impl Pinned<'_> {
    /// Continues on another socket. Reports that the previous socket still owes are lost.
    fn go_over(&mut self, flow: &Flow) -> Result<(), MoveError> {
        self.done = self.sent;
        enable_on(flow)
    }

    fn outstanding(&self) -> u64 {
        self.sent.saturating_sub(self.done)
    }

    /// Reads the available completions.
    fn look(&mut self) -> SysResult<()> {
        let done = completions::drain(self.flow.socket.as_fd())
            .map_err(|cause| Errno::from_io_error(&cause).unwrap_or(Errno::IO))?;
        self.done += done.sends;
        self.flow.counters.copied_sends(done.copied);
        Ok(())
    }

    /// Waits for a completion, which poll(2) reports as an error, whatever events were requested.
    fn wait_for_completion(&self) -> Result<(), MoveError> {
        let until = Some(now_ns() + COMPLETION_WAIT_NS);
        self.flow.counters.blocked.during(|| self.flow.park(Some(PollFlags::empty()), until))
    }

    fn wait_for_memory(&mut self) -> Result<(), MoveError> {
        let now = now_ns();
        if now - *self.starved_ns.get_or_insert(now) < STARVED_NS {
            return self.flow.wait_blocked(COMPLETION_WAIT_NS);
        }
        let cause = no_memory(self.flow.config.chunk);
        Err(MoveError::from_system(self.flow.config.id, "send without copying", cause))
    }

    /// Waits briefly until the kernel has finished all sends, so that its copies are counted.
    fn wait_for_last(&mut self) -> Result<(), MoveError> {
        self.wait_for_all(now_ns() + LAST_COMPLETION_NS)
    }

    /// Waits until the kernel has finished all sends, or until `end` on the monotonic clock, the clock of a stop's
    /// deadline too.
    fn wait_for_all(&mut self, end: u64) -> Result<(), MoveError> {
        loop {
            self.look().map_err(|cause| self.flow.failed("read completions", cause))?;
            let now = now_ns();
            let end = self.flow.stop.deadline_ns().map_or(end, |deadline| end.min(deadline));
            if self.outstanding() == 0 || now >= end {
                return Ok(());
            }
            if self.flow.stop.phase() == Phase::Abort {
                return Err(self.flow.aborted());
            }
            self.flow.park(None, Some(end.min(now + COMPLETION_WAIT_NS)))?;
        }
    }
}

/// `ENOBUFS` names neither of its two possible limits.
fn no_memory(chunk: usize) -> io::Error {
    let locked = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    let locked = locked.map_or_else(|| "unlimited".into(), |bytes| format!("{bytes} bytes"));
    io::Error::other(format!(
        "the kernel has no memory for it; raise the limit on locked memory, {locked} for all flows of this user, which must hold a chunk of {chunk} bytes per flow (ulimit -l), or raise sysctl net.core.optmem_max, or choose a smaller --chunk, fewer flows or the mover copy"
    ))
}
