//! What a sender says after its last datagram.

use rustix::io::Errno;
use rustix::net::SendFlags;

use super::formats::Format;
use super::outbox::Outbox;
use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::stop::Phase;

/// Tells the receiver that this was all, as well as that can be done with datagrams.
pub(super) fn end<F: Format>(flow: &Flow, outbox: &mut Outbox<F>) -> Result<(), MoveError> {
    for round in 0.. {
        let Some((datagram, pause_ns)) = outbox.closing(round) else { break };
        if flow.stop.phase() == Phase::Abort {
            return Err(flow.aborted());
        }
        match rustix::net::send(&flow.socket, datagram, SendFlags::empty()) {
            // A receiver that has seen an earlier one may be gone already.
            Err(Errno::CONNREFUSED) => break,
            // One that does not fit into the socket is like one that gets lost.
            _ => flow.park(None, Some(now_ns() + pause_ns))?,
        }
    }
    Ok(())
}
