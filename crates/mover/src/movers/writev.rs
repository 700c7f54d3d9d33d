//! A vector of chunks in one write (sendmsg(2), which is writev(2) without the signal): the gain of a program that
//! gathers small messages before it enters the kernel.
//!
//! The kernel sees one write, which fills segments and large packets. Many writes in one system call (sendmmsg(2),
//! io_uring) would not, even with `MSG_MORE` or `TCP_CORK`. TCP hands each segment down as soon as it is full
//! (tcp_push, net/ipv4/tcp.c, Linux 6.18). So over a device with an MTU of 1500 every write of 1500 bytes becomes its
//! own packet.

use std::io::IoSlice;

use goodput_model::Role;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::Mover;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::pages::Pages;
use crate::stream;

/// Most chunks in one write: UIO_MAXIOV in include/uapi/linux/uio.h.
const CHUNKS_PER_CALL: usize = 1024;
/// Most bytes in one write, unless a chunk is larger: attempts that a full socket would refuse cost time too.
const BYTES_PER_CALL: usize = 256 << 10;

/// Writes several chunks at once. Memory: one chunk shared by all sending flows.
pub struct Writev;

impl Mover for Writev {
    fn id(&self) -> &'static str {
        "writev"
    }

    fn summary(&self) -> &'static str {
        "gather many chunks into one write, as a program does that collects small messages"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Sender]
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let chunk = flow.config.chunk;
        let pages = Pages::payload(&flow.config.framing, chunk)
            .map_err(|cause| flow.failed("make the buffer to send from", cause))?;
        let most = (BYTES_PER_CALL / chunk).clamp(1, CHUNKS_PER_CALL);
        let parts = vec![IoSlice::new(&pages); most];
        stream::send_pieces(flow, chunk * most, |at, want| {
            let part = [IoSlice::new(&pages[at..chunk.min(at + want)])];
            let parts = if want < chunk { &part } else { &parts[..want / chunk] };
            let mut nothing = SendAncillaryBuffer::default();
            sendmsg(&flow.socket, parts, &mut nothing, SendFlags::NOSIGNAL)
        })
    }
}
