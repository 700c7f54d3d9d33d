//! UDP as whole Ethernet frames through an AF_XDP socket, past this host's IP stack, its firewall and its queueing
//! disciplines.
//!
//! The datagrams, their numbers and their pace are those of `datagram`, from the port of the flow's own socket, so any
//! receiver takes them. The connected socket stays open: it hears what the receiver says, and reports the end.

use goodput_framing::MIN_DATAGRAM_BYTES;
use goodput_model::{Plan, Role, Transport};

use super::{Mover, check_chunk_within, check_transport};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::Needs;
use crate::xdp;

/// Frames of memory that the kernel reads.
pub(super) struct Xdp;

impl Mover for Xdp {
    fn id(&self) -> &'static str {
        xdp::ID
    }

    fn summary(&self) -> &'static str {
        "numbered datagrams as Ethernet frames (AF_XDP), past the IP stack, the firewall and the qdisc; needs CAP_NET_RAW"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Udp]
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Sender]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        let most = xdp::MAX_DATAGRAM_BYTES as u64;
        check_chunk_within(self, plan, MIN_DATAGRAM_BYTES as u64, most)?;
        if plan.socket.max_pacing_bits_per_s.is_some() {
            return Err(Unsupported {
                mover: xdp::ID.into(),
                why: "its frames bypass the socket whose rate --max-pacing would limit".into(),
                needs: "use --rate instead".into(),
            });
        }
        xdp::check_kernel()
    }

    fn needs(&self, plan: &Plan, _role: Role) -> Needs {
        let bytes = xdp::memory_bytes(plan.chunk_bytes.0);
        // The socket, and the one that asks for the path.
        Needs { descriptors: 2, locked_bytes: bytes, memory_bytes: bytes, ..Needs::default() }
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        xdp::send(flow)
    }
}
