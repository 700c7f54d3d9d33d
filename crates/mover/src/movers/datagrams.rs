//! UDP: the movers that differ only in how many datagrams a system call or a packet has, at each end. One
//! row each.
//!
//! Each datagram has a header of its own, so what is lost, late or twice is counted one by one, joined or
//! not. Times of arrival are the kernel's (`SO_TIMESTAMPNS`), so that a late reader adds no jitter. The
//! times of sending are taken once a call; an unpaced batch leaves as one burst, which is what the jitter
//! then shows.

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

/// Datagrams of one call at most. With 1400 bytes each, a call for more saves nothing measurable.
const DATAGRAMS_PER_CALL: usize = 32;
/// Datagrams of one packet at most: `UDP_MAX_SEGMENTS` (include/linux/udp.h) of Linux 4.18 to 6.8;
/// later ones take 128.
const SEGMENTS_PER_PACKET: usize = 64;
/// Longest datagram that has another to be joined with, bytes.
const MAX_JOINED_BYTES: usize = MAX_DATAGRAM_BYTES / 2;
/// Bytes handed over in one call: small datagrams make several packets of it.
const BYTES_PER_CALL: usize = 1 << 16;
/// Bytes of a datagram for which the kernel is asked whether it has a feature.
const TRIAL_BYTES: usize = 1400;

/// One row: datagrams of `chunk` bytes with a header each.
#[derive(Debug)]
pub struct Datagrams {
    id: &'static str,
    summary: &'static str,
    /// Longest datagram, bytes.
    longest: usize,
    /// The socket option that is set before the socket is used.
    option: Option<SocketOption>,
    /// Why it has nothing to do without a rate.
    needs_rate: Option<&'static str>,
    /// Sends datagrams of up to this many bytes.
    send: fn(&Flow, usize) -> Result<(), MoveError>,
    reading: Reading,
    /// Memory to receive into, bytes, if that is not a datagram's.
    receive_bytes: Option<u64>,
}

/// A socket option that a mover is made of.
#[derive(Debug)]
struct SocketOption {
    name: &'static str,
    /// What is done with it, for an error.
    operation: &'static str,
    /// The first Linux that has it.
    since: &'static str,
    /// The end that sets it.
    role: Role,
    /// Sets it, for datagrams of this many bytes.
    set: fn(BorrowedFd<'_>, usize) -> io::Result<()>,
}

/// UDP as a plain program has it: one system call for each datagram, at both ends. It shows what the batches
/// of [`DATAGRAM`] and the offloads of [`GSO`] and [`GRO`] are worth. Memory: one datagram.
pub static PLAIN: Datagrams = Datagrams {
    id: "plain",
    summary: "numbered datagrams, one per system call, as in most programs",
    send: |flow, size| sending::send(flow, size, 1, 1),
    reading: Reading::ONE,
    ..DATAGRAM_ROW
};

/// Batches of one system call, one by one if they are paced. Memory: one batch to send, up to 1 MiB to
/// receive.
pub static DATAGRAM: Datagrams = DATAGRAM_ROW;

/// Segmentation offload: the sender hands over up to 64 datagrams as one packet that is taken apart as late
/// as possible, at best by the device. The receiver takes them one by one; [`GRO`] takes them joined. A paced
/// flow joins no more of them than its bursts may have. Memory: 64 KiB to send, up to 1 MiB to receive.
pub static GSO: Datagrams = Datagrams {
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
        let size = size.min(MAX_JOINED_BYTES);
        let joined = SEGMENTS_PER_PACKET.min(MAX_DATAGRAM_BYTES / size);
        sending::send(flow, size, joined, (BYTES_PER_CALL / (joined * size)).max(1))
    },
    ..DATAGRAM_ROW
};

/// Receive offload: the kernel gives datagrams of one size that came together as one message, if the
/// device, or a sender on this machine with [`GSO`], has joined them. Jitter is between packets only: the
/// datagrams of one have one time of arrival, and the gaps that they had on the wire are not known. The
/// record says how many came so. Memory: up to 1 MiB to receive.
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

/// Paced by the kernel: each datagram is handed over with the time at which it shall leave, and the queueing
/// discipline fq of the device holds it until then. The sender needs no spinning, sleeps most of the time,
/// and still leaves even gaps. Memory: as [`DATAGRAM`].
///
/// Times are of `CLOCK_MONOTONIC`, which fq counts in (net/sched/sch_fq.c, `fq_enqueue`; since Linux 4.20).
/// etf counts in `CLOCK_TAI` and drops all others (net/sched/sch_etf.c, `is_packet_valid`), so it is not for
/// this mover. Any other discipline ignores the times, and datagrams leave in batches of up to 1 ms of the
/// rate: the record warns of that, and its share of even gaps shows it.
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

/// What the rows have in common unless they say otherwise.
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
    /// Sets the socket option of this end, if it has one.
    fn set_option(&self, flow: &Flow, role: Role) -> Result<(), MoveError> {
        let Some(option) = self.option.as_ref().filter(|option| option.role == role) else {
            return Ok(());
        };
        (option.set)(flow.socket.as_fd(), flow.config.chunk)
            .map_err(|cause| MoveError::from_system(flow.config.id, option.operation, cause))
    }
}
