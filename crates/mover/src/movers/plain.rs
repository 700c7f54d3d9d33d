//! UDP as a plain program has it: one system call for each datagram, at both ends. It shows what the
//! batches of `datagram` and the offloads of `gso` and `gro` are worth.

use goodput_model::{Plan, Transport};

use super::datagram::Datagram;
use super::{Mover, check_transport};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::udp::receiving::{self, Reading};
use crate::udp::sending;

/// Datagrams of `chunk` bytes with a header each, one by one. Memory: one datagram.
pub struct Plain;

impl Mover for Plain {
    fn id(&self) -> &'static str {
        "plain"
    }

    fn summary(&self) -> &'static str {
        "numbered datagrams, one per system call, as in most programs"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Udp]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        Datagram.can_run(plan)
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        sending::send(flow, flow.config.chunk, 1, 1)
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        receiving::receive(flow, Reading::ONE)
    }
}
