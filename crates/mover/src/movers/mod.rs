//! The registry of movers: the ways to get payload into a socket and out of it.
//!
//! To add one, add a file here named after its id, or for UDP a row in `datagrams.rs`, and a line in [`ALL`].
//! `tests/conformance.rs` then runs it.

mod copy;
mod datagrams;
mod discard;
mod mmap_send;
mod sendfile;
mod splice;
mod splice_null;
mod uring;
mod uring_zerocopy;
mod writev;
mod xdp;
mod zerocopy;
mod zerocopy_receive;

pub(crate) use datagrams::GSO_IF_TAKEN;

use std::io;

use goodput_model::{HostWork, Plan, Role, Source, Transport};
use rustix::io::Errno;

use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::{self, Needs};

/// One way to move payload.
pub trait Mover: Sync {
    /// The mover's id: kebab-case, and the name of its file, if it has its own.
    fn id(&self) -> &'static str;

    /// One line for `goodput list movers`.
    fn summary(&self) -> &'static str;

    /// The transports it can move payload over.
    fn transports(&self) -> &'static [Transport] {
        &[Transport::Tcp]
    }

    /// What it can do: send, receive, or both.
    fn roles(&self) -> &'static [Role] {
        &[Role::Sender, Role::Receiver]
    }

    /// Whether it can run `plan` on this host; if not, why, and what would be needed.
    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_stream(self, plan)
    }

    /// What each flow of `plan` takes in this role, beside its socket and its thread.
    fn needs(&self, plan: &Plan, role: Role) -> Needs {
        Needs::chunk(plan, role)
    }

    /// The least work that it does for payload in this role.
    fn work(&self, _role: Role) -> HostWork {
        HostWork::Copying
    }

    /// Which of its forms the mover uses in this role on this host, and why, if it has several.
    fn form(&self, _role: Role) -> Option<String> {
        None
    }

    /// Whether it can send from `source` instead of its own memory.
    fn takes(&self, _source: &Source) -> bool {
        false
    }

    /// Whether its receiving side can write the payload to a sink.
    fn stores(&self) -> bool {
        false
    }

    /// Whether its receiving side reads bodies that only the requester can read.
    fn decodes(&self) -> bool {
        false
    }

    /// Whether its receiving side sees the payload, so that a [`Tap`](crate::Tap) can look at it. No program ever sees
    /// what the kernel drops.
    fn shows(&self) -> bool {
        self.roles().contains(&Role::Receiver)
    }

    /// Whether its sending side continues a chunk of `chunk` bytes that a full socket has cut, so that the stream
    /// repeats this chunk.
    fn continues(&self, _chunk: usize) -> bool {
        true
    }

    /// Sends until the limit or the stop, and ends the stream. Returns within 100 ms of a stop. Only called if the
    /// mover has this role.
    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        Err(flow.failed("send with a mover that only receives", Errno::OPNOTSUPP))
    }

    /// Receives until the peer ends the stream, or until the deadline of the stop. Only called if the mover has this
    /// role.
    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        Err(flow.failed("receive with a mover that only sends", Errno::OPNOTSUPP))
    }
}

/// Every mover.
pub const ALL: &[&dyn Mover] = &[
    &copy::Copy,
    &datagrams::DATAGRAM,
    &discard::Discard,
    &datagrams::GRO,
    &datagrams::GSO,
    &mmap_send::MmapSend,
    &datagrams::PLAIN,
    &sendfile::Sendfile,
    &splice::Splice,
    &splice_null::SpliceNull,
    &datagrams::TXTIME,
    &uring::Uring,
    &uring_zerocopy::UringZerocopy,
    &writev::Writev,
    &xdp::Xdp,
    &zerocopy::Zerocopy,
    &zerocopy_receive::ZerocopyReceive,
];

/// Largest chunk of a stream, bytes: each flow keeps one in memory.
pub const MAX_CHUNK: u64 = 256 << 20;

/// The mover with this id.
pub fn find(id: &str) -> Option<&'static dyn Mover> {
    ALL.iter().copied().find(|mover| mover.id() == id)
}

/// Whether a mover can run `plan` on this host, with the limits of this process.
pub fn check_here(mover: &dyn Mover, plan: &Plan, role: Role) -> Result<(), Unsupported> {
    mover.can_run(plan)?;
    limits::check(mover.id(), mover.needs(plan, role), plan)
}

/// The ids of the matching movers, for a message.
pub(crate) fn names(fits: impl Fn(&dyn Mover) -> bool) -> String {
    let ids: Vec<_> = ALL.iter().filter(|m| fits(**m)).map(|m| m.id()).collect();
    ids.join(", ")
}

/// Whether a plan is a byte stream in chunks of a size that every mover accepts.
fn check_stream(mover: &(impl Mover + ?Sized), plan: &Plan) -> Result<(), Unsupported> {
    check_transport(mover, plan)?;
    check_chunk_within(mover, plan, 1, MAX_CHUNK)
}

fn check_transport(mover: &(impl Mover + ?Sized), plan: &Plan) -> Result<(), Unsupported> {
    if mover.transports().contains(&plan.transport) {
        return Ok(());
    }
    Err(Unsupported {
        mover: mover.id().into(),
        why: format!("it does not move {}", transport_name(plan.transport)),
        needs: format!("choose one of {}", names(|m| m.transports().contains(&plan.transport))),
    })
}

fn check_chunk_within(
    mover: &(impl Mover + ?Sized),
    plan: &Plan,
    least: u64,
    most: u64,
) -> Result<(), Unsupported> {
    if (least..=most).contains(&plan.chunk_bytes.0) {
        return Ok(());
    }
    Err(Unsupported {
        mover: mover.id().into(),
        why: format!("a chunk of {} bytes is outside its range", plan.chunk_bytes.0),
        needs: format!("choose a --chunk of {least} to {most} bytes"),
    })
}

/// Tries out whether the kernel has `feature`, which came with Linux `since`.
fn check_kernel(
    mover: &dyn Mover,
    feature: &str,
    since: &str,
    trial: impl FnOnce() -> io::Result<()>,
) -> Result<(), Unsupported> {
    trial().map_err(|cause| Unsupported {
        mover: mover.id().into(),
        why: format!("the kernel refuses {feature}: {cause}"),
        needs: short_of(&cause).map_or_else(
            || {
                format!(
                    "it needs Linux {since} or later, and this is {}; if the version is new enough, a container's system call filter forbids it",
                    rustix::system::uname().release().to_string_lossy()
                )
            },
            Into::into,
        ),
    })
}

/// What would be needed if the kernel has the feature, but is short of something at the moment.
fn short_of(cause: &io::Error) -> Option<&'static str> {
    match cause.raw_os_error()? {
        libc::EMFILE | libc::ENFILE => Some("use fewer flows or raise ulimit -n"),
        libc::ENOMEM | libc::ENOBUFS | libc::EAGAIN => {
            Some("this host is short of memory now: try again, or use fewer flows")
        }
        _ => None,
    }
}

/// Whether it supports the storage that the plan gives to its side.
pub(crate) fn check_storage(mover: &dyn Mover, plan: &Plan, role: Role) -> Result<(), Unsupported> {
    let lacks = |why: String, needs| Err(Unsupported { mover: mover.id().into(), why, needs });
    match (role, &plan.storage.source, &plan.storage.sink) {
        (Role::Sender, Some(source), _) if !mover.takes(source) => lacks(
            format!("it can't send from {}", kind_of(source)),
            format!("choose one of {}", names(|mover| mover.takes(source))),
        ),
        (Role::Receiver, _, Some(_)) if !mover.stores() => lacks(
            "what it receives can't be written to a sink".into(),
            format!("choose a --receive-mover of {}", names(|mover| mover.stores())),
        ),
        _ => Ok(()),
    }
}

fn kind_of(source: &Source) -> &'static str {
    match source {
        Source::File { .. } | Source::Memory(_) => "a file",
        Source::Input => "standard input",
    }
}

fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "a byte stream (TCP)",
        Transport::Udp => "datagrams (UDP)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_lacks_is_said_with_the_version_it_takes() {
        let refuse = || Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT));
        let lacking = check_kernel(&copy::Copy, "COPYING", "9.9", refuse).unwrap_err();
        assert!(lacking.why.starts_with("the kernel refuses COPYING: "), "{lacking}");
        assert!(
            lacking.needs.starts_with("it needs Linux 9.9 or later, and this is "),
            "{lacking}"
        );
        let short = || Err(io::Error::from_raw_os_error(libc::EMFILE));
        let short = check_kernel(&copy::Copy, "COPYING", "9.9", short).unwrap_err();
        assert!(short.needs.contains("ulimit -n") && !short.needs.contains("9.9"), "{short}");
    }
}
