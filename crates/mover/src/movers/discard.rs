//! recv(2) with `MSG_TRUNC`: the receiver's kernel drops the payload instead of copying it out
//! (tcp(7), since Linux 2.4).

use goodput_model::{HostWork, Plan, Role};
use rustix::net::{RecvFlags, recv};

use super::Mover;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::limits::Needs;
use crate::low_water::LowWater;
use crate::stream::{self, ShortRead};

/// Most bytes dropped by one call. Nothing is copied, so no cache sets a bound.
const BYTES_PER_CALL: usize = 4 << 20;

/// Memory: none that is ever touched.
pub struct Discard;

impl Mover for Discard {
    fn id(&self) -> &'static str {
        "discard"
    }

    fn summary(&self) -> &'static str {
        "let the kernel drop the payload (MSG_TRUNC); no program ever sees it"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Receiver]
    }

    fn work(&self, _role: Role) -> HostWork {
        HostWork::EmptyCalls
    }

    fn needs(&self, _plan: &Plan, _role: Role) -> Needs {
        Needs::default()
    }

    fn shows(&self) -> bool {
        false
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        // The call requires an address of this length, though the kernel never writes to it. Zeroed memory takes no
        // pages until somebody touches it.
        let mut untouched = vec![0; BYTES_PER_CALL];
        let read = |want| {
            let room = &mut untouched[..want];
            recv(&flow.socket, room, RecvFlags::TRUNC).map(|(_, dropped)| dropped)
        };
        let (mark, short) = (LowWater::dropped(), ShortRead::EmptiedSocket);
        stream::receive_with(flow, BYTES_PER_CALL, mark, short, read)
    }
}
