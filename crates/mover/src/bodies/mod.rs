//! Payload that moves as a sequence of requested bodies, as from a file server, or to one.
//!
//! The requester is not the mover's business: the mover learns how long each body is, and reads or writes it like any
//! stream. If a body is encrypted or chunked, so that the socket can't carry it as it is, it goes through the
//! requester.

mod pause;
mod receiving;
mod sending;

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Result as SysResult;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::body_source::{BodyError, BodySource};
use crate::clock::now_ns;
use crate::error::{BodyFault, MoveError};
use crate::flow::Flow;

pub(crate) use receiving::Succession;
pub(crate) use sending::{Begun, Uploads};

/// A shorter silence at the end is no stall: lost packets alone can cause it (retransmission timeouts, RFC 6298).
const MIN_STALL_NS: u64 = 1_000_000_000;

/// How long a flow that began at `began_ns` had stalled at its end, nanoseconds, if it stalled for most of its time.
/// What it moved is then no rate.
fn stall_at_end(began_ns: u64, moved_ns: u64) -> Option<u64> {
    let now_ns = now_ns();
    let still_ns = now_ns.saturating_sub(moved_ns);
    let is_long = still_ns >= MIN_STALL_NS && still_ns > now_ns.saturating_sub(began_ns) / 2;
    is_long.then_some(still_ns)
}

impl Flow {
    /// Reads a byte stream without waiting, by way of its bodies if it has any.
    pub(crate) fn take(&self, room: &mut [u8]) -> SysResult<usize> {
        match &self.config.bodies {
            Some(source) => source.read(&self.socket, room),
            None => recv(&self.socket, room, RecvFlags::empty()).map(|(taken, _)| taken),
        }
    }

    /// Writes a byte stream without waiting, by way of its bodies if it has any.
    pub(crate) fn put(&self, payload: &[u8]) -> SysResult<usize> {
        match &self.config.bodies {
            Some(source) => source.write(&self.socket, payload),
            None => send(&self.socket, payload, SendFlags::NOSIGNAL),
        }
    }

    /// Replaces the flow's socket by `socket`, if there is one. The descriptor number stays, so its users get the new
    /// socket. Returns whether there is one.
    fn go_over(&self, source: &BodySource, socket: Option<OwnedFd>) -> Result<bool, MoveError> {
        let Some(socket) = socket else { return Ok(false) };
        let replaced =
            rustix::io::ioctl_fionbio(&socket, true).and_then(|()| self.replace(source, &socket));
        replaced.map_err(|cause| self.failed("go on with another connection", cause))?;
        Ok(true)
    }

    #[expect(unsafe_code, reason = "a descriptor that others hold is made to mean another socket")]
    fn replace(&self, source: &BodySource, socket: &OwnedFd) -> SysResult<()> {
        // SAFETY: the flow keeps its descriptor open, and this second owner never closes it.
        let mut own = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(self.socket.as_raw_fd()) });
        source.holding(|| {
            source.connections.leaves(own.as_fd());
            rustix::io::dup3(socket, &mut own, rustix::io::DupFlags::CLOEXEC)
        })
    }

    /// The flow fails because of `why`; [`BodyError::Stopped`] is an abort.
    fn body_failed(&self, why: BodyError) -> MoveError {
        let (why, fault) = match why {
            BodyError::Stopped => return self.aborted(),
            BodyError::Peer(why) => (why, BodyFault::Peer),
            BodyError::Forbidden(why) => (why, BodyFault::Forbidden),
            BodyError::Own(why) => (why, BodyFault::Own),
        };
        MoveError::Body { flow: self.config.id, why, fault }
    }
}
