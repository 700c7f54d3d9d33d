//! UDP: the movers, one row each. They differ only in how many datagrams each end puts into a system call or a packet.
//!
//! Each datagram has its own header, so lost, late and duplicate datagrams are counted one by one, joined or not.
//! Arrival times are the kernel's (`SO_TIMESTAMPNS`), so that a late reader adds no jitter. Sending times are taken
//! once per call: an unpaced batch leaves as one burst, and the jitter then shows the burst.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use goodput_framing::{MAX_DATAGRAM_BYTES, MIN_DATAGRAM_BYTES};
use goodput_model::{Plan, Role, Transport};
use rustix::net::sockopt::set_txtime;
use rustix::net::{AddressFamily, SocketType, TxTimeFlags, socket};
use rustix::time::ClockId;

use super::{Mover, check_chunk_within, check_kernel, check_transport};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::Needs;
use crate::udp::inbox::{self, join_arrivals};
use crate::udp::outbox::split_departures;
use crate::udp::receiving::{self, Reading};
use crate::udp::sending;

/// Most datagrams in one call. With 1400 bytes each, a call for more saves nothing measurable.
const DATAGRAMS_PER_CALL: usize = 32;
/// Most datagrams in one packet: `UDP_MAX_SEGMENTS` (include/linux/udp.h) of Linux 4.18 to 6.8; later kernels take 128.
const SEGMENTS_PER_PACKET: usize = 64;
/// Longest datagram that can still be joined with another, bytes.
const MAX_JOINED_BYTES: usize = MAX_DATAGRAM_BYTES / 2;
/// Bytes handed over in one call: small datagrams then fill several packets.
const BYTES_PER_CALL: usize = 1 << 16;
/// Size of the datagram with which the kernel is asked whether it has a feature, bytes.
const TRIAL_BYTES: usize = 1400;

/// One row: datagrams of `chunk` bytes, each with a header.
#[derive(Debug)]
pub struct Datagrams {
    id: &'static str,
    summary: &'static str,
    /// Longest datagram, bytes.
    longest: usize,
    /// The socket option to set before the socket is used.
    option: Option<SocketOption>,
    /// Why the mover has nothing to do without a rate.
    needs_rate: Option<&'static str>,
    /// Sends datagrams of up to this many bytes.
    send: fn(&Flow, usize) -> Result<(), MoveError>,
    reading: Reading,
    /// Memory to receive into, bytes, if other than the size of a datagram.
    receive_bytes: Option<u64>,
}

/// A socket option that a mover depends on.
#[derive(Debug)]
struct SocketOption {
    name: &'static str,
    /// What is being done, for an error.
    operation: &'static str,
    /// The first Linux version with the option.
    since: &'static str,
    /// The end that sets it.
    role: Role,
    /// Sets it, for datagrams of this many bytes.
    set: fn(BorrowedFd<'_>, usize) -> io::Result<()>,
}

/// UDP as in a plain program: one system call per datagram, at both ends. It shows what the batches of [`DATAGRAM`] and
/// the offloads of [`GSO`] and [`GRO`] are worth. Memory: one datagram.
pub static PLAIN: Datagrams = Datagrams {
    id: "plain",
    summary: "numbered datagrams, one per system call, as in most programs",
    send: |flow, size| sending::send(flow, size, 1, 1),
    reading: Reading::ONE,
    ..DATAGRAM_ROW
};

/// Batches of datagrams in one system call; one datagram per call if paced. Memory: one batch to send, up to 1 MiB to
/// receive.
pub static DATAGRAM: Datagrams = DATAGRAM_ROW;

/// Segmentation offload: the sender hands over up to 64 datagrams as one packet, which is split as late as possible,
/// ideally by the device. The receiver takes them one by one; [`GRO`] takes them joined. A paced flow joins no more
/// datagrams than its bursts may hold. Memory: 64 KiB to send, up to 1 MiB to receive.
pub static GSO: Datagrams = GSO_ROW;

/// [`GSO`] as `auto` takes it, if nobody named a mover: a path that takes no joined datagrams gets single ones.
pub static GSO_IF_TAKEN: Datagrams = Datagrams {
    send: |flow, size| {
        let (size, joined, messages) = joining(size);
        sending::send_if_taken(flow, size, joined, messages)
    },
    ..GSO_ROW
};

const GSO_ROW: Datagrams = Datagrams {
    id: "gso",
    summary: "numbered datagrams passed to the kernel as large packets (UDP_SEGMENT), for more datagrams a second",
    longest: MAX_JOINED_BYTES,
    option: Some(SocketOption {
        name: "UDP_SEGMENT",
        operation: "use UDP_SEGMENT",
        since: "4.18",
        role: Role::Sender,
        set: |socket, size| split_departures(socket, size.min(MAX_JOINED_BYTES) as u16),
    }),
    send: |flow, size| {
        let (size, joined, messages) = joining(size);
        sending::send(flow, size, joined, messages)
    },
    ..DATAGRAM_ROW
};

/// Receive offload: the kernel delivers datagrams of equal size as one message, if the device, or a sender on this
/// machine with [`GSO`], has joined them. Jitter is measured between packets only: the datagrams of one packet share an
/// arrival time, and their gaps on the wire are unknown. The record reports how many datagrams came joined. Memory: up
/// to 1 MiB to receive.
pub static GRO: Datagrams = Datagrams {
    id: "gro",
    summary: "send like `datagram`; receive datagrams that arrive together as one message (UDP_GRO)",
    option: Some(SocketOption {
        name: "UDP_GRO",
        operation: "use UDP_GRO",
        since: "5.0",
        role: Role::Receiver,
        set: |socket, _| join_arrivals(socket),
    }),
    reading: Reading::JOINED,
    receive_bytes: Some(inbox::BATCH_BYTES as u64),
    ..DATAGRAM_ROW
};

/// Paced by the kernel: each datagram is handed over with its departure time, and the device's queueing discipline fq
/// holds it until then. The sender needs no spinning, sleeps most of the time, and still sends at even gaps. Memory: as
/// [`DATAGRAM`].
///
/// Times are of `CLOCK_MONOTONIC`, fq's clock (net/sched/sch_fq.c, `fq_enqueue`; since Linux 4.20). etf uses
/// `CLOCK_TAI` and drops everything else (net/sched/sch_etf.c, `is_packet_valid`), so this mover can't use etf. Any
/// other discipline ignores the times, and datagrams leave in batches of up to 1 ms of the rate. The record warns of
/// this, and its share of even gaps shows it.
pub static TXTIME: Datagrams = Datagrams {
    id: "txtime",
    summary: "send like `datagram`, with a departure time for each datagram (SO_TXTIME), so the qdisc fq holds the --rate",
    option: Some(SocketOption {
        name: "SO_TXTIME",
        operation: "use SO_TXTIME",
        since: "4.20",
        role: Role::Sender,
        set: |socket, _| Ok(set_txtime(socket, ClockId::Monotonic, TxTimeFlags::empty())?),
    }),
    needs_rate: Some("without a rate there are no departure times"),
    send: sending::send_timed,
    ..DATAGRAM_ROW
};

/// Defaults that the rows share.
const DATAGRAM_ROW: Datagrams = Datagrams {
    id: "datagram",
    summary: "numbered datagrams, several per system call; what `copy` means over UDP",
    longest: MAX_DATAGRAM_BYTES,
    option: None,
    needs_rate: None,
    send: |flow, size| sending::send(flow, size, 1, DATAGRAMS_PER_CALL),
    reading: Reading::SEVERAL,
    receive_bytes: None,
};

/// Size of the datagrams, bytes, how many of them make a packet, and packets in a call.
fn joining(size: usize) -> (usize, usize, usize) {
    let size = size.min(MAX_JOINED_BYTES);
    let joined = SEGMENTS_PER_PACKET.min(MAX_DATAGRAM_BYTES / size);
    (size, joined, (BYTES_PER_CALL / (joined * size)).max(1))
}

impl Mover for Datagrams {
    fn id(&self) -> &'static str {
        self.id
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Udp]
    }

    fn needs(&self, plan: &Plan, role: Role) -> Needs {
        let chunk = Needs::chunk(plan, role);
        match (role, self.receive_bytes) {
            (Role::Receiver, Some(memory_bytes)) => Needs { memory_bytes, ..chunk },
            _ => chunk,
        }
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        check_chunk_within(self, plan, MIN_DATAGRAM_BYTES as u64, self.longest as u64)?;
        if let (Some(why), None) = (self.needs_rate, plan.rate_bits_per_s) {
            let (why, needs) = (why.into(), "add --rate".into());
            return Err(Unsupported { mover: self.id.into(), why, needs });
        }
        let Some(option) = &self.option else { return Ok(()) };
        check_kernel(self, option.name, option.since, || {
            let trial = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            (option.set)(trial.as_fd(), TRIAL_BYTES)
        })
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        self.set_option(flow, Role::Sender)?;
        (self.send)(flow, flow.config.chunk)
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        self.set_option(flow, Role::Receiver)?;
        receiving::receive(flow, self.reading)
    }
}

impl Datagrams {
    /// Sets this end's socket option, if it has one.
    fn set_option(&self, flow: &Flow, role: Role) -> Result<(), MoveError> {
        let Some(option) = self.option.as_ref().filter(|option| option.role == role) else {
            return Ok(());
        };
        (option.set)(flow.socket.as_fd(), flow.config.chunk)
            .map_err(|cause| MoveError::from_system(flow.config.id, option.operation, cause))
    }
}
