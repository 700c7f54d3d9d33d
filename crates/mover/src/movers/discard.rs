//! recv(2) with `MSG_TRUNC`: the receiver's kernel drops the payload instead of copying it out
//! (tcp(7), since Linux 2.4).

use goodput_model::{Plan, Source, Transport};
use rustix::net::{RecvFlags, recv};

use super::{Mover, check_chunk, check_transport, copy};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::stream;

/// Bytes dropped by one call at most. Nothing is copied, so no cache sets a bound.
const AT_ONCE: usize = 4 << 20;

/// Sends like `copy`. Memory to receive: none that is ever touched.
pub struct Discard;

impl Mover for Discard {
    fn id(&self) -> &'static str {
        "discard"
    }

    fn summary(&self) -> &'static str {
        "send like `copy`; the receiver's kernel drops the payload (MSG_TRUNC), which no program ever sees"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Tcp]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        check_chunk(self, plan)
    }

    fn takes(&self, _source: &Source) -> bool {
        true
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        copy::send(flow)
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        // The call wants an address for its length, though the kernel leaves it alone: zeroed
        // memory takes no pages as long as nobody touches it.
        let mut untouched = vec![0; AT_ONCE];
        stream::receive(flow, AT_ONCE, |want| {
            let room = &mut untouched[..want];
            recv(&flow.socket, room, RecvFlags::TRUNC).map(|(_, dropped)| dropped)
        })
    }
}
