//! UDP with segmentation offload: the sender hands over up to 64 numbered datagrams as one packet
//! that is taken apart as late as possible, at best by the device (`UDP_SEGMENT`).
//!
//! Each datagram has its own header, so what is lost, late or twice is counted one by one, as without
//! offload. The receiver takes them one by one too; the mover `gro` takes them joined. A paced flow
//! joins no more of them than its bursts may have.

use std::os::fd::AsFd;

use goodput_framing::{LEAST, MAX_DATAGRAM};
use goodput_model::{Plan, Transport};
use rustix::net::{AddressFamily, SocketType, socket};

use super::{Mover, check_chunk_within, check_kernel, check_transport};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::udp::outbox::split_departures;
use crate::udp::receiving::{self, Reading};
use crate::udp::sending;

/// Datagrams of one packet at most: `UDP_MAX_SEGMENTS` (include/linux/udp.h) of Linux 4.18 to 6.8;
/// later ones take 128.
const SEGMENTS: usize = 64;
/// Bytes handed over in one call: small datagrams make several packets of it.
const AT_ONCE: usize = 1 << 16;

/// Datagrams of `chunk` bytes with a header each, sent joined. Memory: 64 KiB to send, up to 1 MiB
/// to receive.
pub struct Gso;

impl Mover for Gso {
    fn id(&self) -> &'static str {
        "gso"
    }

    fn summary(&self) -> &'static str {
        "numbered datagrams passed to the kernel as large packets (UDP_SEGMENT), for more datagrams a second"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Udp]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        // Larger ones have no other to be joined with.
        check_chunk_within(self, plan, LEAST as u64, MAX_DATAGRAM as u64 / 2)?;
        check_kernel(self, "UDP_SEGMENT", "4.18", || {
            let trial = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            split_departures(trial.as_fd(), 1400)
        })
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let size = flow.config.chunk.min(MAX_DATAGRAM / 2);
        let failed = |cause| MoveError::from_system(flow.config.id, "use UDP_SEGMENT", cause);
        split_departures(flow.socket.as_fd(), size as u16).map_err(failed)?;
        let joined = SEGMENTS.min(MAX_DATAGRAM / size);
        let packets = (AT_ONCE / (joined * size)).max(1);
        sending::send(flow, size, joined, packets)
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        receiving::receive(flow, Reading::SEVERAL)
    }
}
