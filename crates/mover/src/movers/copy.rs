//! The plain way: send(2) from one buffer, recv(2) into another.

use goodput_model::{Plan, Transport};
use rustix::net::{self, RecvFlags, SendFlags};

use super::{Mover, check_chunk, check_transport};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::{payload, stream};

/// Least room to read into, bytes. What collects while the reader is away is then read at once.
const READ_ROOM: usize = 256 * 1024;

/// Copies between user space and the kernel. Memory: one chunk to send; to receive one chunk, or
/// 256 KiB where that is more.
pub struct Copy;

impl Mover for Copy {
    fn id(&self) -> &'static str {
        "copy"
    }

    fn summary(&self) -> &'static str {
        "send and receive through a buffer, as most programs do"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Tcp]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        check_chunk(self, plan)
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        send(flow)
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        receive(flow)
    }
}

/// Writes a byte stream from a buffer.
pub(super) fn send(flow: &Flow) -> Result<(), MoveError> {
    let chunk = payload::random(flow.config.chunk);
    stream::send(flow, |want: usize| net::send(&flow.socket, &chunk[..want], SendFlags::NOSIGNAL))
}

/// Reads a byte stream, however it was sent.
pub(super) fn receive(flow: &Flow) -> Result<(), MoveError> {
    let mut room = vec![0; flow.config.chunk.max(READ_ROOM)];
    let len = room.len();
    stream::receive(flow, len, |want| {
        net::recv(&flow.socket, &mut room[..want], RecvFlags::empty()).map(|(taken, _)| taken)
    })
}
