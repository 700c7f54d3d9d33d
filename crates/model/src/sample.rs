//! Raw cumulative counters of the flows at one end at one instant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::{Known, Missing};
use crate::tcp_info::TcpInfo;

/// Counters at one instant. Everything in it only grows from sample to sample, tcp_info's gauges
/// and buffer levels apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Seconds since this end began to move payload, by its monotonic clock.
    pub at_s: f64,
    /// Payload bytes written by all sending flows of this end.
    pub sent_bytes: u64,
    /// Payload bytes read by all receiving flows of this end.
    pub received_bytes: u64,
    /// Each flow in detail; empty in the samples between two detailed ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowSample>,
}

/// Whether this end sends or receives on a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Writes payload.
    Sender,
    /// Reads payload.
    Receiver,
}

/// One flow at one end at one instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSample {
    /// Number of the flow in the plan.
    pub flow: u16,
    /// Whether this end sends or receives on it.
    pub role: Role,
    /// Payload bytes written or read.
    pub bytes: u64,
    /// Time our own thread waited: a writer for space in the send buffer, a reader for data.
    /// The second witness beside tcp_info's chronographs; missing for another program's flow.
    pub blocked_us: Known<u64>,
    /// Time our own thread waited on purpose, to hold a rate (`--rate`).
    pub paced_us: Known<u64>,
    /// System calls that moved payload.
    pub calls: Known<u64>,
    /// CPU time of the flow's thread, user and system.
    pub cpu_us: Known<u64>,
    /// Time that the flow's thread was ready to run and waited for a CPU (run-queue delay, second
    /// number of /proc/PID/task/TID/schedstat, Documentation/scheduler/sched-stats.rst). Part of it
    /// counts as blocked too: what woke it came before it ran.
    #[serde(default = "unreported")]
    pub cpu_wait_us: Known<u64>,
    /// Time that the flow's thread took to get payload from its source, if that is not memory: in
    /// the calls that read it. If one call reads and sends, the time that the thread slept in it,
    /// waits for a CPU included.
    #[serde(default = "no_storage", skip_serializing_if = "is_no_storage")]
    pub source_us: Known<u64>,
    /// Time that the flow's thread took to write to its sink, and to bring it to the disk.
    #[serde(default = "no_storage", skip_serializing_if = "is_no_storage")]
    pub sink_us: Known<u64>,
    /// Of `calls`, zero-copy sends of which the kernel has reported that it copied
    /// them anyway (Documentation/networking/msg_zerocopy.rst). Absent for movers that copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_sends: Option<u64>,
    /// Of `bytes`, those whose pages were mapped instead of copied (`TCP_ZEROCOPY_RECEIVE`,
    /// net/ipv4/tcp.c). Absent for movers that do not map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped_bytes: Option<u64>,
    /// How often a request that stands for many receives ended because the kernel found none of the
    /// buffers free that it receives into, and was made anew (`ENOBUFS`, io_uring_prep_recv_multishot(3)).
    /// Absent for movers that make no such request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted_buffers: Option<u64>,
    /// The kernel's view of the connection.
    pub tcp: Known<TcpInfo>,
    /// Subflows that an MPTCP connection has, or that it fell back to TCP. `tcp` is of the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp_subflows: Option<Known<u64>>,
    /// Memory of the socket against its limits.
    pub memory: Known<SocketMemory>,
    /// Bytes waiting in the socket for the reader (`SIOCINQ`), or not yet acknowledged (`SIOCOUTQ`).
    pub queued_bytes: Known<u64>,
    /// Of `bytes`, what the peer's TCP acknowledged, if the connection carries more than payload: all that was written
    /// but what waits in the socket. Absent otherwise, because `tcp` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_payload_bytes: Option<u64>,
    /// Datagram counts; only for UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramCounts>,
}

impl FlowSample {
    /// A flow of whose payload nothing but the bytes is known: all else is missing, because of `why`,
    /// but what only some movers and transports count, which is absent, and its payload is memory.
    /// Callers that know more override fields: `FlowSample { calls, ..FlowSample::unreported(…) }`.
    pub fn unreported(flow: u16, role: Role, bytes: u64, why: &'static str) -> Self {
        let unreported = || Known::missing(why);
        Self {
            flow,
            role,
            bytes,
            blocked_us: unreported(),
            paced_us: unreported(),
            calls: unreported(),
            cpu_us: unreported(),
            cpu_wait_us: unreported(),
            source_us: no_storage(),
            sink_us: no_storage(),
            copied_sends: None,
            mapped_bytes: None,
            exhausted_buffers: None,
            tcp: Known::missing(why),
            mptcp_subflows: None,
            memory: Known::missing(why),
            queued_bytes: unreported(),
            acked_payload_bytes: None,
            datagrams: None,
        }
    }
}

/// What a peer that knows no `cpu_wait_us` leaves us with.
fn unreported() -> Known<u64> {
    Known::missing("the peer does not report how long its threads waited for a CPU")
}

/// What is said of the source or the sink of a flow that has none.
pub fn no_storage() -> Known<u64> {
    Known::missing("its payload is memory")
}

fn is_no_storage(time: &Known<u64>) -> bool {
    *time == no_storage()
}

/// Socket memory, from `SO_MEMINFO` (include/uapi/linux/sock_diag.h, `SK_MEMINFO_*`). Bytes as the
/// kernel charges them, bookkeeping included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketMemory {
    /// Receive memory in use.
    pub rmem_alloc_bytes: u64,
    /// Receive memory allowed.
    pub rcvbuf_bytes: u64,
    /// Send memory in use by queued packets.
    pub wmem_alloc_bytes: u64,
    /// Send memory allowed.
    pub sndbuf_bytes: u64,
    /// Send memory queued, unsent and unacknowledged data together.
    pub wmem_queued_bytes: u64,
    /// Packets waiting because the reader held the socket.
    pub backlog_bytes: u64,
    /// Packets the socket dropped.
    pub drops: u64,
}

/// What a UDP flow counted. A sender fills `sent`; a receiver the rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DatagramCounts {
    /// Datagrams handed to the kernel.
    pub sent: u64,
    /// Datagrams read.
    pub received: u64,
    /// Sequence numbers never seen, up to the highest one seen.
    pub lost: u64,
    /// Datagrams that came after one with a higher sequence number.
    pub reordered: u64,
    /// Datagrams seen more than once, within the receiver's window of remembrance.
    pub duplicated: u64,
    /// Interarrival jitter after RFC 3550 section 6.4.1, microseconds; between packets, by the
    /// kernel's times of arrival.
    pub jitter_us: f64,
    /// Datagrams that came joined behind another in one packet (`UDP_GRO`). The gap before each is
    /// unknown, and not part of `jitter_us`.
    #[serde(default, skip_serializing_if = "is_none")]
    pub joined: u64,
    /// Gaps between two datagrams with consecutive numbers that came one after the other, each in a
    /// packet of its own; only of paced flows.
    #[serde(default, skip_serializing_if = "is_none")]
    pub gaps: u64,
    /// Those of `gaps` within 20 % of what the plan's rate gives.
    #[serde(default, skip_serializing_if = "is_none")]
    pub even_gaps: u64,
    /// Time that the sender spent spinning, to hold its rate more precisely than timers do; CPU time
    /// of its thread.
    #[serde(default, skip_serializing_if = "is_none")]
    pub spun_us: u64,
    /// Time by which the schedule of a paced sender was moved, because its thread was held up for longer than
    /// is made up; what the rate gives in it was not sent.
    #[serde(default, skip_serializing_if = "is_none")]
    pub stalled_us: u64,
    /// Whether the datagrams carry numbers. If a foreign protocol has none, `lost`, `reordered`
    /// and `duplicated` mean nothing.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub numbered: bool,
    /// Whether the datagrams carry their time of sending; if not, `jitter_us` means nothing.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub timed: bool,
}

impl Default for DatagramCounts {
    fn default() -> Self {
        Self {
            sent: 0,
            received: 0,
            lost: 0,
            reordered: 0,
            duplicated: 0,
            jitter_us: 0.0,
            joined: 0,
            gaps: 0,
            even_gaps: 0,
            spun_us: 0,
            stalled_us: 0,
            numbered: true,
            timed: true,
        }
    }
}

impl DatagramCounts {
    /// Numbers never seen, up to the highest one seen, if there are numbers.
    pub fn lost(&self) -> Result<u64, Missing> {
        let unknown = || Missing::because("datagrams of this protocol carry no numbers");
        self.numbered.then_some(self.lost).ok_or_else(unknown)
    }

    /// Interarrival jitter, microseconds, if the datagrams carry their time of sending.
    pub fn jitter_us(&self) -> Result<f64, Missing> {
        let unknown = || Missing::because("datagrams of this protocol carry no times");
        self.timed.then_some(self.jitter_us).ok_or_else(unknown)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_yes(value: &bool) -> bool {
    *value
}
