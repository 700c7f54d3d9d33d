//! UDP paced by the kernel: each datagram is handed over with the time at which it shall leave
//! (`SO_TXTIME`), and the queueing discipline fq of the device holds it until then. The sender needs no
//! spinning, sleeps most of the time, and still leaves even gaps.
//!
//! Times are of `CLOCK_MONOTONIC`, which fq counts in (net/sched/sch_fq.c, `fq_enqueue`; since Linux
//! 4.20). etf counts in `CLOCK_TAI` and drops all others (net/sched/sch_etf.c, `is_packet_valid`), so it
//! is not for this mover. Any other discipline ignores the times, and datagrams leave in batches of up
//! to 1 ms of the rate: the record warns of that, and its share of even gaps shows it.

use std::os::fd::AsFd;

use goodput_model::{Plan, Transport};
use rustix::net::sockopt::set_txtime;
use rustix::net::{AddressFamily, SocketType, TxTimeFlags, socket};
use rustix::time::ClockId;

use super::datagram::Datagram;
use super::{Mover, check_kernel, check_transport};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::udp::sending;

/// Datagrams of `chunk` bytes with a header each, and a time to leave. Memory: as `datagram`.
pub struct Txtime;

impl Mover for Txtime {
    fn id(&self) -> &'static str {
        "txtime"
    }

    fn summary(&self) -> &'static str {
        "send like `datagram`, with a departure time for each datagram (SO_TXTIME), so the qdisc fq holds the --rate"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Udp]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        Datagram.can_run(plan)?;
        if plan.rate_bits_per_s.is_none() {
            return Err(Unsupported {
                mover: self.id().into(),
                why: "without a rate there are no departure times".into(),
                needs: "add --rate".into(),
            });
        }
        check_kernel(self, "SO_TXTIME", "4.20", || {
            let trial = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            Ok(set_txtime(trial.as_fd(), ClockId::Monotonic, TxTimeFlags::empty())?)
        })
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        set_txtime(flow.socket.as_fd(), ClockId::Monotonic, TxTimeFlags::empty())
            .map_err(|cause| flow.failed("use SO_TXTIME", cause))?;
        sending::send_timed(flow, flow.config.chunk)
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        Datagram.receive(flow)
    }
}
