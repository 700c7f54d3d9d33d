//! A vector of chunks in one write (sendmsg(2), as writev(2) without its signal): what a program gains
//! that gathers small messages before it enters the kernel.
//!
//! To the kernel it is one write, which fills segments and large packets. Many writes in one system
//! call would not: with sendmmsg(2) as with io_uring, `MSG_MORE` or `TCP_CORK` or not, TCP hands
//! each segment down as soon as it is full (tcp_push, net/ipv4/tcp.c, Linux 6.18), so over a
//! device of MTU 1500 every write of 1500 bytes becomes a packet of its own.

use std::io::IoSlice;

use goodput_model::{Plan, Role, Transport};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::{Mover, check_chunk, check_transport};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::pages::Pages;
use crate::stream;

/// Chunks of one write at most: UIO_MAXIOV in include/uapi/linux/uio.h.
const PARTS: usize = 1024;
/// Bytes of one write at most, unless a chunk is larger: what a full socket would refuse costs time
/// too.
const AT_ONCE: usize = 256 << 10;

/// Writes several chunks at once. Memory: one chunk for all sending flows.
pub struct Writev;

impl Mover for Writev {
    fn id(&self) -> &'static str {
        "writev"
    }

    fn summary(&self) -> &'static str {
        "gather many chunks into one write, as a program does that collects small messages"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Tcp]
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Sender]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        check_chunk(self, plan)
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let chunk = flow.config.chunk;
        let pages = Pages::payload(&flow.config.framing, chunk)
            .map_err(|cause| flow.failed("make the buffer to send from", cause))?;
        let most = (AT_ONCE / chunk).clamp(1, PARTS);
        let parts = vec![IoSlice::new(&pages); most];
        stream::send_pieces(flow, chunk * most, |at, want| {
            let part = [IoSlice::new(&pages[at..chunk.min(at + want)])];
            let parts = if want < chunk { &part } else { &parts[..want / chunk] };
            let mut nothing = SendAncillaryBuffer::default();
            sendmsg(&flow.socket, parts, &mut nothing, SendFlags::NOSIGNAL)
        })
    }
}
