//! sendfile(2) from a file in memory: the payload is never copied on its way out.

use std::os::fd::OwnedFd;

use goodput_model::{Plan, Transport};
use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::io::Errno;

use super::{Mover, check_chunk, check_transport, copy};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::{payload, stream};

/// Least length of the file, bytes. Long enough that pages still queued in the socket are seldom
/// those being sent again, short enough for the memory of many flows.
const FILE_BYTES: usize = 1 << 20;

/// Sends from the page cache. Memory: a file of at least 1 MiB, in whole chunks, for each sending
/// flow. The receiving side copies, as there is no other way.
pub struct Sendfile;

impl Mover for Sendfile {
    fn id(&self) -> &'static str {
        "sendfile"
    }

    fn summary(&self) -> &'static str {
        "send straight from the page cache, without a copy; receive through a buffer"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Tcp]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        check_chunk(self, plan)
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let len = FILE_BYTES.next_multiple_of(flow.config.chunk);
        let file = memory_file(len)
            .map_err(|cause| flow.failed("make the file in memory to send from", cause))?;
        let mut offset = 0;
        stream::send(flow, |want| {
            // Where a chunk was cut by a full socket, the rest of the file may be shorter than the
            // next one.
            if offset >= len as u64 {
                offset = 0;
            }
            let want = want.min(len - offset as usize);
            sendfile(&flow.socket, &file, Some(&mut offset), want)
        })
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        copy::receive(flow)
    }
}

/// A file of `len` random bytes that has no name and lives in memory only.
fn memory_file(len: usize) -> Result<OwnedFd, Errno> {
    let file = memfd_create(c"goodput-payload", MemfdFlags::CLOEXEC)?;
    let bytes = payload::random(len);
    let mut written = 0;
    while written < len {
        match rustix::io::write(&file, &bytes[written..]) {
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(file)
}
