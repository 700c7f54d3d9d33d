//! `qdisc.fq_codel.*`, `qdisc.fq.*`, `qdisc.cake.*`: parameters of queueing disciplines, one row each. Attributes
//! and ranges are those of `*_policy` and `*_change` in net/sched/sch_{fq_codel,fq,cake}.c.

use crate::machine::{Form, QdiscParameter};
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// Packets that all flows of fq_codel together may have waiting.
pub static FQ_CODEL_LIMIT: Setting = row(
    [
        "qdisc.fq_codel.limit",
        "packets that all flows of fq_codel together may have waiting",
        "packets",
        "qdisc.fq_codel.limit@eth0=10240,1000",
    ],
    "Beyond the limit, fq_codel drops from the fattest flow, so a short limit hurts fast flows on long paths.",
    &QdiscParameter { kind: "fq_codel", attribute: 2, form: Form::Number(1..=i32::MAX as u32) },
);

/// Queueing delay that fq_codel tolerates.
pub static FQ_CODEL_TARGET: Setting = row(
    [
        "qdisc.fq_codel.target",
        "queueing delay that fq_codel tolerates",
        "microseconds; read back in steps of 1.024",
        "qdisc.fq_codel.target@eth0=5000,20000",
    ],
    "Below the target nothing is dropped; on a slow link one packet alone may take longer than the target, and then every \
     flow is slowed.",
    &QdiscParameter { kind: "fq_codel", attribute: 1, form: Form::Micros(1..=10_000_000) },
);

/// Time over which fq_codel sees a queue as standing.
pub static FQ_CODEL_INTERVAL: Setting = row(
    [
        "qdisc.fq_codel.interval",
        "time over which fq_codel sees a queue as standing",
        "microseconds; read back in steps of 1.024",
        "qdisc.fq_codel.interval@eth0=100000,300000",
    ],
    "It should be about the longest round-trip time; a shorter interval slows flows on long paths without need.",
    &QdiscParameter { kind: "fq_codel", attribute: 3, form: Form::Micros(1..=100_000_000) },
);

/// Bytes of one flow that fq_codel sends in turn.
pub static FQ_CODEL_QUANTUM: Setting = row(
    [
        "qdisc.fq_codel.quantum",
        "bytes of one flow that fq_codel sends in turn",
        "bytes from 256 to 1048576",
        "qdisc.fq_codel.quantum@eth0=1514,300",
    ],
    "A small quantum favours small packets; a large quantum costs less CPU.",
    &QdiscParameter { kind: "fq_codel", attribute: 6, form: Form::Size(256..=1 << 20) },
);

/// Whether fq_codel marks instead of dropping.
pub static FQ_CODEL_ECN: Setting = row(
    [
        "qdisc.fq_codel.ecn",
        "whether fq_codel marks instead of dropping",
        "on or off",
        "qdisc.fq_codel.ecn@eth0=on,off",
    ],
    "Flows that understand congestion marks slow down without a loss (RFC 3168).",
    &QdiscParameter { kind: "fq_codel", attribute: 4, form: Form::Words(&["off", "on"]) },
);

/// Packets that all flows of fq together may have waiting.
pub static FQ_LIMIT: Setting = row(
    [
        "qdisc.fq.limit",
        "packets that all flows of fq together may have waiting",
        "packets",
        "qdisc.fq.limit@eth0=10000,1000",
    ],
    "Beyond the limit new packets are dropped, whichever flow they belong to.",
    &QdiscParameter { kind: "fq", attribute: 1, form: Form::Number(1..=i32::MAX as u32) },
);

/// Packets that one flow of fq may have waiting.
pub static FQ_FLOW_LIMIT: Setting = row(
    [
        "qdisc.fq.flow_limit",
        "packets that one flow of fq may have waiting",
        "packets",
        "qdisc.fq.flow_limit@eth0=100,1000",
    ],
    "Beyond the limit a single fast flow loses its packets before they leave the host.",
    &QdiscParameter { kind: "fq", attribute: 2, form: Form::Number(1..=i32::MAX as u32) },
);

/// Bytes of one flow that fq sends in turn.
pub static FQ_QUANTUM: Setting = row(
    [
        "qdisc.fq.quantum",
        "bytes of one flow that fq sends in turn",
        "bytes from 1 to 1048576",
        "qdisc.fq.quantum@eth0=3028,30280",
    ],
    "A large quantum costs less CPU; a small quantum shares more evenly.",
    &QdiscParameter { kind: "fq", attribute: 3, form: Form::Size(1..=1 << 20) },
);

/// Highest rate at which fq paces a flow.
pub static FQ_MAXRATE: Setting = row(
    [
        "qdisc.fq.maxrate",
        "highest rate at which fq paces a flow",
        "a rate like 90mbit, or none",
        "qdisc.fq.maxrate@eth0=none,90mbit",
    ],
    "A rate just below a policer or a slow link downstream avoids the losses there.",
    &QdiscParameter { kind: "fq", attribute: 7, form: Form::Rate },
);

/// Rate that cake shapes to.
pub static CAKE_BANDWIDTH: Setting = row(
    [
        "qdisc.cake.bandwidth",
        "rate that cake shapes to",
        "a rate like 90mbit, or none",
        "qdisc.cake.bandwidth@eth0=none,90mbit",
    ],
    "Only the queue at the slowest link decides the delay; with a rate just below that link's, it is this queue.",
    &QdiscParameter { kind: "cake", attribute: 2, form: Form::LongRate },
);

/// Round-trip time that cake is tuned for.
pub static CAKE_RTT: Setting = row(
    [
        "qdisc.cake.rtt",
        "round-trip time that cake is tuned for",
        "microseconds",
        "qdisc.cake.rtt@eth0=100000,20000",
    ],
    "Flows with shorter round trips fill the queue for too long; flows with longer ones are slowed too early.",
    &QdiscParameter { kind: "cake", attribute: 7, form: Form::Micros(1..=100_000_000) },
);

/// Whether cake drops acknowledgements that newer ones replace.
pub static CAKE_ACK_FILTER: Setting = row(
    [
        "qdisc.cake.ack_filter",
        "whether cake drops acknowledgements that newer ones replace",
        "off, on or aggressive",
        "qdisc.cake.ack_filter@eth0=off,on",
    ],
    "On a link with a slow upstream, acknowledgements hold up the downstream.",
    &QdiscParameter {
        kind: "cake",
        attribute: 16,
        form: Form::Words(&["off", "on", "aggressive"]),
    },
);

/// The row of a parameter: its id, title, values and an example, and why one would change it.
const fn row(
    [id, title, values, example]: [&'static str; 4],
    why: &'static str,
    backend: &'static QdiscParameter,
) -> Setting {
    Setting {
        id,
        title,
        why,
        scope: Scope::Device,
        values,
        example,
        unset: None,
        permanent: AT_BOOT,
        backend: Backend::Machine(backend),
    }
}
