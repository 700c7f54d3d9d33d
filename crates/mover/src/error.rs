//! The mover's errors, and why a mover can't run a plan.

use std::io;

/// Why a flow did not end as it should.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The peer closed or reset the connection before the stream was over.
    #[error(
        "flow {flow}: the peer broke the connection while this end tried to {operation} ({cause}); see the other end's messages"
    )]
    PeerGone {
        /// Number of the flow.
        flow: u16,
        /// What this end was doing.
        operation: &'static str,
        /// The system's words.
        cause: io::Error,
    },
    /// A system call failed.
    #[error("flow {flow}: can't {operation}: {cause}{}", advice(.cause))]
    System {
        /// Number of the flow.
        flow: u16,
        /// What this end was doing.
        operation: &'static str,
        /// The system's words.
        cause: io::Error,
    },
    /// The source of the flow can't be read.
    #[error("flow {flow}: can't read the source {name}: {cause}{}", source_advice(.cause))]
    Source {
        /// Number of the flow.
        flow: u16,
        /// Name of the source.
        name: String,
        /// The system's words.
        cause: io::Error,
    },
    /// The source of the flow was truncated while it was sent.
    #[error(
        "flow {flow}: the source {name} shrank while it was sent: it had {had} bytes when the test \
         began, and has {has} now; send a file that nobody writes to"
    )]
    Shrunk {
        /// Number of the flow.
        flow: u16,
        /// Name of the source.
        name: String,
        /// Its length when the test began, bytes.
        had: u64,
        /// Its length when the change was found, bytes.
        has: u64,
    },
    /// The sink of the flow can't be written.
    #[error("flow {flow}: can't write to the sink {name} after {written} bytes: {cause}{}", sink_advice(.cause))]
    Sink {
        /// Number of the flow.
        flow: u16,
        /// Name of the sink.
        name: String,
        /// Bytes written to it.
        written: u64,
        /// The system's words.
        cause: io::Error,
    },
    /// The flow's thread can't run on the CPU to which it should be pinned.
    #[error(
        "flow {flow}: can't run on CPU {cpu} only: {cause}; after the test was planned, this program lost the CPU (taskset, the cgroup's cpuset, or the CPU went offline)"
    )]
    Pin {
        /// Number of the flow.
        flow: u16,
        /// Number of the CPU.
        cpu: u16,
        /// The system's words.
        cause: io::Error,
    },
    /// A requested body did not arrive as it should.
    #[error("{why}")]
    Body {
        /// Number of the flow.
        flow: u16,
        /// In words.
        why: String,
        /// Who failed it.
        fault: BodyFault,
    },
    /// The far end showed no sign of life.
    #[error(
        "flow {flow}: stopped sending datagrams because nothing was heard from the far end for {seconds} s; check that it still runs and that its answers get through"
    )]
    Silence {
        /// Number of the flow.
        flow: u16,
        /// How long this end waited for a sign, seconds.
        seconds: u32,
    },
    /// The flow's mover can't send on the flow's path.
    #[error("flow {flow}: {why}")]
    Unsupported {
        /// Number of the flow.
        flow: u16,
        /// The mover, what prevents it, and what would be needed.
        why: Unsupported,
    },
    /// The measurement was aborted from this side, through [`crate::Stop::abort`].
    #[error("flow {flow}: stopped early because this end aborted the measurement")]
    Aborted {
        /// Number of the flow.
        flow: u16,
    },
    /// The flow's thread panicked.
    #[error("flow {flow}: its thread panicked; this is a bug in goodput, please report it")]
    Panicked {
        /// Number of the flow.
        flow: u16,
    },
}

/// Who made a body fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFault {
    /// The peer did or said something unexpected.
    Peer,
    /// The peer does not let this user get or store the body.
    Forbidden,
    /// This end could not continue.
    Own,
}

impl MoveError {
    /// Sorts an error of the system into the kinds above.
    pub(crate) fn from_system(
        flow: u16,
        operation: &'static str,
        cause: impl Into<io::Error>,
    ) -> Self {
        let cause = cause.into();
        match cause.raw_os_error() {
            Some(libc::EPIPE | libc::ECONNRESET | libc::ECONNREFUSED | libc::ENOTCONN) => {
                Self::PeerGone { flow, operation, cause }
            }
            _ => Self::System { flow, operation, cause },
        }
    }
}

/// What the user can do about an error of the system while payload moves.
fn advice(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::EMSGSIZE) => "; choose a smaller --chunk",
        Some(libc::EIO) => {
            "; with the mover gso, the device or its checksums may not support it: use the mover datagram"
        }
        Some(libc::EPERM) => "; a firewall rule of this host forbids the packet",
        Some(libc::EHOSTUNREACH | libc::ENETUNREACH) => "; check the route to the peer",
        Some(libc::ENETDOWN | libc::ENODEV) => "; check whether the network device is up",
        // A packet that the own queueing discipline drops counts as a probe without an answer, and 15 of those, half a second
        // apart, are enough (tcp_send_probe0, tcp_output.c; tcp_retries2).
        Some(libc::ETIMEDOUT) => {
            "; the peer no longer answers, or this host's own queue dropped all that was sent: use fewer flows or a longer queue"
        }
        Some(libc::ENOSYS) => {
            "; this kernel, or a container's system call filter, does not support this mover: choose another one"
        }
        Some(libc::ENOMEM) => {
            "; this host is short of memory: use fewer flows or a smaller --chunk"
        }
        _ => "",
    }
}

fn source_advice(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::EINVAL | libc::ENODEV | libc::EOPNOTSUPP) => {
            "; its file system doesn't support this: use the mover copy"
        }
        Some(libc::EIO | libc::EFAULT) => "; look for disk errors in the kernel's log (dmesg)",
        Some(libc::ESTALE) => "; its server removed it",
        _ => "",
    }
}

fn sink_advice(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => "; make room there, or write to another disk",
        Some(libc::EFBIG) => "; raise the limit on the size of files (ulimit -f)",
        Some(libc::EINVAL) => "; its file system doesn't support this: leave out --direct",
        Some(libc::EPIPE) => "; its reader closed it",
        _ => "",
    }
}

impl MoveError {
    /// Whether this host failed, its storage or its network, which also ends the other flows. A peer that went away may
    /// still report why.
    pub(crate) fn is_of_this_host(&self) -> bool {
        !self.is_by_peer() && !self.is_abort()
    }

    /// Whether the peer ended the flow, and so knows why.
    pub fn is_by_peer(&self) -> bool {
        match self {
            Self::PeerGone { .. } => true,
            Self::Body { fault, .. } => *fault != BodyFault::Own,
            _ => false,
        }
    }

    /// Whether only this flow's connection is lost, if it is a TCP one: the peer or the path broke it, or nobody
    /// acknowledged (`tcp_write_err`, net/ipv4/tcp_timer.c). The other flows may go on.
    pub fn is_of_one_connection(&self) -> bool {
        const GIVEN_UP: [i32; 3] = [libc::ETIMEDOUT, libc::EHOSTUNREACH, libc::ENETUNREACH];
        match self {
            Self::PeerGone { .. } => true,
            Self::System { cause, .. } => {
                cause.raw_os_error().is_some_and(|c| GIVEN_UP.contains(&c))
            }
            _ => false,
        }
    }

    /// Whether the peer, or this host, does not permit it to this user.
    pub fn is_not_permitted(&self) -> bool {
        matches!(self, Self::Body { fault: BodyFault::Forbidden, .. })
    }

    /// Whether it only says that something else ended the flow.
    pub fn is_abort(&self) -> bool {
        matches!(self, Self::Aborted { .. })
    }
}

/// Why a mover can't run a plan here, and what would be needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("mover {mover} can't be used: {why}; {needs}")]
pub struct Unsupported {
    /// The mover, as the plan names it.
    pub mover: String,
    /// What prevents it.
    pub why: String,
    /// What would be needed.
    pub needs: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_flow_operation_cause_and_a_way_out() {
        let gone = MoveError::from_system(3, "send", io::Error::from_raw_os_error(libc::EPIPE));
        assert!(gone.to_string().starts_with("flow 3: the peer broke the connection while"));
        let size = MoveError::from_system(0, "send", io::Error::from_raw_os_error(libc::EMSGSIZE));
        assert!(size.to_string().ends_with("choose a smaller --chunk"), "{size}");
    }
}
