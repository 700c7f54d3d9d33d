//! UDP with receive offload: the kernel gives datagrams of one size that came together as one message
//! (`UDP_GRO`), where the device, or a sender on this machine with the mover `gso`, has joined them.
//!
//! Each datagram has its own header, so what is lost, late or twice is counted one by one, as without
//! offload. Jitter is between packets only: the datagrams of one have one time of arrival, and the
//! gaps that they had on the wire are not known. The record says how many came so.

use std::os::fd::AsFd;

use goodput_model::{Plan, Role, Transport};
use rustix::net::{AddressFamily, SocketType, socket};

use super::datagram::Datagram;
use super::{Mover, check_kernel, check_transport};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::Needs;
use crate::udp::inbox::{self, join_arrivals};
use crate::udp::receiving::{self, Reading};

/// Datagrams of `chunk` bytes with a header each, received joined. Memory: up to 1 MiB to receive.
pub struct Gro;

impl Mover for Gro {
    fn id(&self) -> &'static str {
        "gro"
    }

    fn summary(&self) -> &'static str {
        "send like `datagram`; receive datagrams that arrive together as one message (UDP_GRO)"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Udp]
    }

    fn needs(&self, plan: &Plan, role: Role) -> Needs {
        let memory_bytes = match role {
            Role::Sender => 0,
            Role::Receiver => inbox::ROOM as u64,
        };
        Needs { memory_bytes, ..Needs::chunk(plan, role) }
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        Datagram.can_run(plan)?;
        check_kernel(self, "UDP_GRO", "5.0", || {
            let trial = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            join_arrivals(trial.as_fd())
        })
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        Datagram.send(flow)
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        let failed = |cause| MoveError::from_system(flow.config.id, "use UDP_GRO", cause);
        join_arrivals(flow.socket.as_fd()).map_err(failed)?;
        receiving::receive(flow, Reading::JOINED)
    }
}
