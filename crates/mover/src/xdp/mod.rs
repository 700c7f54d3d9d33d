//! Datagrams as Ethernet frames, through an AF_XDP socket (Documentation/networking/af_xdp.rst).
//!
//! The frames lie in memory that is shared with the kernel (UMEM). A ring names those to send, and another ring those
//! that have left. The kernel copies each frame into a packet of its own (copy mode). Nothing is received: the socket has
//! no receive ring, and its fill ring stays empty.
//!
//! The path is looked up once, when the flow begins: device, next hop and its hardware address. A path that changes
//! during the flow is not followed.

mod frames;
mod headers;
mod memory;
mod path;
mod refusal;
mod ring;
mod socket;

use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::pace::Pacer;
use crate::udp::sending;
use frames::Frames;
use headers::MAX_HEADER_BYTES;
use memory::MAX_FRAME_BYTES;
use socket::XdpSocket;

pub(crate) use memory::memory_bytes;
pub(crate) use refusal::ID;

/// Longest datagram that fits into one frame with its headers, bytes.
pub(crate) const MAX_DATAGRAM_BYTES: usize = MAX_FRAME_BYTES - MAX_HEADER_BYTES;

/// Whether this process may have an AF_XDP socket of this kernel.
pub(crate) fn check_kernel() -> Result<(), Unsupported> {
    XdpSocket::try_out().map_err(refusal::not_made)
}

/// Sends the flow's datagrams until the limit or the stop, then reports the end to the receiver by the flow's socket.
pub(crate) fn send(flow: &Flow) -> Result<(), MoveError> {
    let datagrams = flow.config.datagrams();
    let size = flow.config.chunk.max(datagrams.least());
    let Some(path) = path::find(flow, size).map_err(|why| why.of(flow))? else {
        return sending::send(flow, size, 1, 1);
    };
    let Some(socket) = socket::open(flow, &path, size)? else {
        return sending::send(flow, size, 1, 1);
    };
    let frames = Frames::new(datagrams, size, path.addressing, socket);
    sending::send_with(flow, frames, size, Pacer::for_datagrams(flow, size))
}
