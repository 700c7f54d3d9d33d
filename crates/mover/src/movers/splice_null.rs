//! splice(2) of the socket into a pipe, and of the pipe into the null device: only references to the packets' pages
//! move, and nobody reads the payload.

use std::io;
use std::os::fd::OwnedFd;

use goodput_model::{HostWork, Plan, Role};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, Result as SysResult};
use rustix::pipe::{
    PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice,
};

use super::{Mover, check_stream};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::Needs;
use crate::stream;

/// Size of the pipe, bytes, if the kernel allows it (pipe(7)). The pipe has one slot per page, and a packet's fragment
/// takes a slot however short it is.
const PIPE_BYTES: usize = 1 << 20;
/// Most bytes taken out of the socket at once: what this many slots hold of the longest fragments (32 KiB,
/// `SKB_FRAG_PAGE_ORDER`, include/net/sock.h).
const BYTES_PER_CALL: usize = 8 << 20;

/// Receives into nothing. Memory: only the pages of packets in flight.
pub struct SpliceNull;

impl Mover for SpliceNull {
    fn id(&self) -> &'static str {
        "splice-null"
    }

    fn summary(&self) -> &'static str {
        "pass packets through a pipe to the null device (splice); no program ever sees them"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Receiver]
    }

    fn work(&self, _role: Role) -> HostWork {
        HostWork::PageReferences
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_stream(self, plan)?;
        Drain::new().map(drop).map_err(|cause| Unsupported {
            mover: self.id().into(),
            why: format!("no pipe to /dev/null available: {cause}"),
            needs: "it needs /dev/null, and three descriptors for each flow (ulimit -n)".into(),
        })
    }

    fn needs(&self, _plan: &Plan, _role: Role) -> Needs {
        Needs { descriptors: 3, ..Needs::default() }
    }

    fn shows(&self) -> bool {
        false
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        let drain = Drain::new().map_err(|cause| {
            MoveError::from_system(flow.config.id, "make a pipe to null", cause)
        })?;
        stream::receive(flow, BYTES_PER_CALL, |want: usize| {
            let taken = drain.fill(&flow.socket, want)?;
            if taken > 0 {
                flow.counters.called();
                drain.empty(taken)?;
            }
            Ok(taken)
        })
    }
}

/// A pipe whose far end is the null device.
struct Drain {
    out: OwnedFd,
    into: OwnedFd,
    null: OwnedFd,
}

impl Drain {
    fn new() -> io::Result<Self> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
        if fcntl_getpipe_size(&into)? < PIPE_BYTES {
            // A smaller pipe also works, with more calls: an unprivileged user has a limit on all pipes together
            // (pipe(7), pipe-user-pages-soft).
            let _ = fcntl_setpipe_size(&into, PIPE_BYTES);
        }
        let null = openat(CWD, "/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { out, into, null })
    }

    /// Moves up to `most` bytes from a non-blocking socket into the empty pipe; 0 at the end of the stream.
    fn fill(&self, socket: &OwnedFd, most: usize) -> SysResult<usize> {
        splice(socket, None, &self.into, None, most, SpliceFlags::NONBLOCK)
    }

    /// Drops the `bytes` in the pipe. The null device takes everything.
    fn empty(&self, bytes: usize) -> SysResult<()> {
        let mut left = bytes;
        while left > 0 {
            match splice(&self.out, None, &self.null, None, left, SpliceFlags::empty()) {
                // A device that takes no payload is not the null device.
                Ok(0) => return Err(Errno::IO),
                Ok(dropped) => left -= dropped,
                Err(Errno::INTR) => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }
}
