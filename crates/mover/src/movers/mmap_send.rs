//! send(2) straight from a mapped file: what a server does that maps its files instead of reading
//! them.

use goodput_model::{Plan, Transport};
use rustix::net::{SendFlags, send};

use super::{Mover, check_chunk, check_transport, copy};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::pages::Pages;
use crate::{payload, stream};

/// Sends from a mapping of a file in memory. Memory: a file of at least 1 MiB, in whole chunks, for
/// each sending flow. The kernel copies from the page cache into the socket; the receiving side
/// copies too.
pub struct MmapSend;

impl Mover for MmapSend {
    fn id(&self) -> &'static str {
        "mmap-send"
    }

    fn summary(&self) -> &'static str {
        "send from a mapped file, one copy instead of the two of read and send; receive through a buffer"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Tcp]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        check_chunk(self, plan)
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let len = payload::file_len(flow.config.chunk);
        let mapped = payload::memory_file(len).and_then(|file| Pages::of_file(&file, len));
        let mapped = mapped.map_err(|cause| flow.failed("map the file to send from", cause))?;
        let mut offset = 0;
        stream::send(flow, |want: usize| {
            // Where a chunk was cut by a full socket, the rest of the file may be shorter than the
            // next one.
            if offset >= len {
                offset = 0;
            }
            let want = want.min(len - offset);
            let sent = send(&flow.socket, &mapped[offset..offset + want], SendFlags::NOSIGNAL)?;
            offset += sent;
            Ok(sent)
        })
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        copy::receive(flow)
    }
}
