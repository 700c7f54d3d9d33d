//! sendfile(2) from a file in memory: the payload is never copied on its way out.

use goodput_model::{Plan, Transport};
use rustix::fs::sendfile;

use super::{Mover, check_chunk, check_transport, copy};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::{payload, stream};

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
        let len = payload::file_len(flow.config.chunk);
        let file = payload::memory_file(len)
            .map_err(|cause| flow.failed("make the file in memory to send from", cause))?;
        let mut offset = 0;
        stream::send(flow, |want: usize| {
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
