//! UDP: numbered datagrams, in batches of one system call, one by one where they are paced.
//!
//! Times of arrival are the kernel's (`SO_TIMESTAMPNS`), so that a late reader adds no jitter. The
//! times of sending are taken once a call; an unpaced batch leaves as one burst, which is what the
//! jitter then shows.

use goodput_framing::{LEAST, MAX_DATAGRAM};
use goodput_model::{Plan, Transport};

use super::{Mover, check_chunk_within, check_transport};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::udp::receiving::{self, Reading};
use crate::udp::sending;

/// Datagrams of one call at most. With 1400 bytes each, a call for more saves nothing measurable.
const BATCH: usize = 32;

/// Datagrams of `chunk` bytes with a header each. Memory: one batch to send, up to 1 MiB to
/// receive.
pub struct Datagram;

impl Mover for Datagram {
    fn id(&self) -> &'static str {
        "datagram"
    }

    fn summary(&self) -> &'static str {
        "numbered datagrams, several per system call; what `copy` means over UDP"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Udp]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        check_chunk_within(self, plan, LEAST as u64, MAX_DATAGRAM as u64)
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        sending::send(flow, flow.config.chunk, 1, BATCH)
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        receiving::receive(flow, Reading::SEVERAL)
    }
}
