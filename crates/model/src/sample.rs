//! Cumulative counters of the flows at one end at one instant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::{Known, Missing};
use crate::tcp_info::TcpInfo;

/// Counters at one instant. They only grow from sample to sample, except the gauges of tcp_info and the fill levels
/// of buffers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Seconds since this end began to move payload, on its monotonic clock.
    pub at_s: f64,
    /// Payload bytes written by all sending flows of this end.
    pub sent_bytes: u64,
    /// Payload bytes read by all receiving flows of this end.
    pub received_bytes: u64,
    /// Counters of each flow. Only some samples have these details; in the others, the list is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowSample>,
}

/// Whether this end sends or receives on a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// This end writes payload.
    Sender,
    /// This end reads payload.
    Receiver,
}

/// One flow at one end at one instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSample {
    /// Number of the flow in the plan.
    pub flow: u16,
    /// Whether this end sends or receives on the flow.
    pub role: Role,
    /// Payload bytes that this end has written or read.
    pub bytes: u64,
    /// Time that goodput's thread waited, microseconds: a writer for space in the send buffer, a reader for data. A
    /// second witness beside tcp_info's times; missing for another program's flow.
    pub blocked_us: Known<u64>,
    /// Time that goodput's thread waited on purpose to keep a rate (`--rate`), microseconds.
    pub paced_us: Known<u64>,
    /// Number of system calls that moved payload.
    pub calls: Known<u64>,
    /// CPU time of the flow's thread, user and system, microseconds.
    pub cpu_us: Known<u64>,
    /// Time that the flow's thread was ready to run and waited for a CPU, microseconds (run-queue delay, second
    /// number of /proc/PID/task/TID/schedstat, Documentation/scheduler/sched-stats.rst). Part of this time also
    /// counts as blocked, because the thread's event came before the thread ran.
    #[serde(default = "unreported")]
    pub cpu_wait_us: Known<u64>,
    /// Time that the flow's thread spent in the calls that read its source, microseconds; missing if payload comes
    /// from memory. If one call reads and sends, the time that the thread slept in this call, waits for a CPU
    /// included.
    #[serde(default = "no_storage", skip_serializing_if = "is_no_storage")]
    pub source_us: Known<u64>,
    /// Time that the flow's thread spent in writing to its sink and in bringing the data to the disk, microseconds.
    #[serde(default = "no_storage", skip_serializing_if = "is_no_storage")]
    pub sink_us: Known<u64>,
    /// Number of the `calls` that were zero-copy sends but that the kernel copied anyway, as it reports
    /// (Documentation/networking/msg_zerocopy.rst). Absent for movers that copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_sends: Option<u64>,
    /// Number of the `bytes` whose pages were mapped instead of copied (`TCP_ZEROCOPY_RECEIVE`, net/ipv4/tcp.c).
    /// Absent for movers that do not map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped_bytes: Option<u64>,
    /// How often the kernel ended a request for many receives because none of its buffers was free (`ENOBUFS`,
    /// io_uring_prep_recv_multishot(3)). The request was then made again. Absent for movers without such requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted_buffers: Option<u64>,
    /// What the kernel knows about the TCP connection.
    pub tcp: Known<TcpInfo>,
    /// Number of subflows of an MPTCP connection, or that it fell back to TCP. `tcp` is about the first subflow.
    /// Absent without MPTCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp_subflows: Option<Known<u64>>,
    /// Memory that the socket uses, and its limits.
    pub memory: Known<SocketMemory>,
    /// Bytes in the socket that the reader has not read yet (`SIOCINQ`), or that the peer has not acknowledged yet
    /// (`SIOCOUTQ`).
    pub queued_bytes: Known<u64>,
    /// Number of the `bytes` that the peer's TCP acknowledged, if the connection carries more than payload: all
    /// that was written, except what is still in the socket. Absent otherwise, because `tcp` has this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_payload_bytes: Option<u64>,
    /// Counts of datagrams; only for UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramCounts>,
}

impl FlowSample {
    /// A flow of which only the payload bytes are known. Everything else is missing, because of `why`; counts that
    /// only some movers or transports have are absent; payload is memory. Callers that know more override fields:
    /// `FlowSample { calls, ..FlowSample::unreported(…) }`.
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

/// The value if the peer does not know `cpu_wait_us`.
fn unreported() -> Known<u64> {
    Known::missing("the peer does not report how long its threads waited for a CPU")
}

/// The value for a flow whose payload comes from memory, or goes nowhere.
pub fn no_storage() -> Known<u64> {
    Known::missing("its payload is memory")
}

fn is_no_storage(time: &Known<u64>) -> bool {
    *time == no_storage()
}

/// Memory of a socket, from `SO_MEMINFO` (include/uapi/linux/sock_diag.h, `SK_MEMINFO_*`). The numbers are bytes as
/// the kernel charges them, bookkeeping included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketMemory {
    /// Receive memory in use, bytes.
    pub rmem_alloc_bytes: u64,
    /// Limit of the receive memory, bytes.
    pub rcvbuf_bytes: u64,
    /// Send memory that queued packets use, bytes.
    pub wmem_alloc_bytes: u64,
    /// Limit of the send memory, bytes.
    pub sndbuf_bytes: u64,
    /// Send memory of unsent and unacknowledged data together, bytes.
    pub wmem_queued_bytes: u64,
    /// Memory of packets that wait because the reader holds the socket, bytes.
    pub backlog_bytes: u64,
    /// Number of packets that the socket dropped.
    pub drops: u64,
}

/// Datagrams that a UDP flow counted. A sender fills in `sent`, `refused`, `spun_us` and `stalled_us`, a receiver the rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DatagramCounts {
    /// Datagrams that the sender handed to the kernel.
    pub sent: u64,
    /// Number of the `sent` datagrams that a firewall rule of the sending host dropped (`EPERM`), such as one that limits a
    /// rate.
    #[serde(default, skip_serializing_if = "is_none")]
    pub refused: u64,
    /// Datagrams that the receiver read.
    pub received: u64,
    /// Sequence numbers that never arrived, below the highest one that did.
    pub lost: u64,
    /// Datagrams that arrived after one with a higher sequence number.
    pub reordered: u64,
    /// Datagrams that arrived more than once, as far back as the receiver remembers numbers.
    pub duplicated: u64,
    /// Interarrival jitter (RFC 3550, section 6.4.1), microseconds. It is measured between packets, by the kernel's
    /// arrival times.
    pub jitter_us: f64,
    /// Datagrams that arrived behind another in one packet (`UDP_GRO`). The gaps before them are unknown, and are
    /// not part of `jitter_us`.
    #[serde(default, skip_serializing_if = "is_none")]
    pub joined: u64,
    /// Gaps between two datagrams with consecutive numbers that arrived one after the other, each in a packet of
    /// its own; only for paced flows.
    #[serde(default, skip_serializing_if = "is_none")]
    pub gaps: u64,
    /// Number of the `gaps` that were within 20 % of the gap at the plan's rate.
    #[serde(default, skip_serializing_if = "is_none")]
    pub even_gaps: u64,
    /// CPU time that the sender's thread spent in busy-waiting, to keep its rate more precisely than timers can,
    /// microseconds.
    #[serde(default, skip_serializing_if = "is_none")]
    pub spun_us: u64,
    /// Time by which a paced sender's schedule was moved, microseconds, because its thread was held up for longer
    /// than it may catch up on. The sender left out what the rate gives in this time.
    #[serde(default, skip_serializing_if = "is_none")]
    pub stalled_us: u64,
    /// Whether the datagrams carry numbers. Without them (some other protocols), `lost`, `reordered` and
    /// `duplicated` mean nothing.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub numbered: bool,
    /// Whether the datagrams carry their sending time. Without it, `jitter_us` means nothing.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub timed: bool,
}

impl Default for DatagramCounts {
    fn default() -> Self {
        Self {
            sent: 0,
            refused: 0,
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
    /// Sequence numbers that never arrived, below the highest one that did; missing if the datagrams carry no
    /// numbers.
    pub fn lost(&self) -> Result<u64, Missing> {
        let unknown = || Missing::because("datagrams of this protocol carry no numbers");
        self.numbered.then_some(self.lost).ok_or_else(unknown)
    }

    /// Interarrival jitter, microseconds; missing if the datagrams carry no sending times.
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
