//! `qdisc.fq_codel.*`, `qdisc.fq.*`, `qdisc.cake.*`: parameters of queueing disciplines, one row each. Attributes
//! and ranges are those of `*_policy` and `*_change` in net/sched/sch_{fq_codel,fq,cake}.c.
//!
//! Left out is what a change can't put back: fq_codel's `flows`, which only a new discipline takes, its `drop_batch`, of which
//! some kernels make 1, and its `ce_threshold`, which the kernel does not report while it is off.

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

/// Memory that the packets in fq_codel may take.
pub static FQ_CODEL_MEMORY_LIMIT: Setting = row(
    [
        "qdisc.fq_codel.memory_limit",
        "memory that the packets in fq_codel may take",
        "bytes up to 2G",
        "qdisc.fq_codel.memory_limit@eth0=32M,4M",
    ],
    "Beyond the limit, fq_codel drops from the fattest flow, as beyond `qdisc.fq_codel.limit`; small packets take more memory than bytes.",
    &QdiscParameter { kind: "fq_codel", attribute: 9, form: Form::Size(0..=1 << 31) },
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
    &QdiscParameter { kind: "fq", attribute: 7, form: Form::rate("none", u32::MAX) },
);

/// Bytes that a new flow of fq sends at first.
pub static FQ_INITIAL_QUANTUM: Setting = row(
    [
        "qdisc.fq.initial_quantum",
        "bytes that a new flow of fq sends at first",
        "bytes below 2G",
        "qdisc.fq.initial_quantum@eth0=15140,30280",
    ],
    "A large one lets the start of a connection pass at once; a small one keeps bursts of new flows short.",
    &QdiscParameter { kind: "fq", attribute: 4, form: Form::Size(0..=i32::MAX as u32) },
);

/// Whether fq paces flows.
pub static FQ_PACING: Setting = row(
    ["qdisc.fq.pacing", "whether fq paces flows", "on or off", "qdisc.fq.pacing@eth0=on,off"],
    "Without pacing, windows leave in bursts, which short queues downstream drop.",
    &QdiscParameter { kind: "fq", attribute: 5, form: Form::Words(&["off", "on"]) },
);

/// The kernel rounds a time up to its clock tick, which is at most this long, and reports it in 32 bits.
const LONGEST_TICK_US: u32 = 10_000;

/// Pause after which a flow of fq counts as new.
pub static FQ_REFILL_DELAY: Setting = row(
    [
        "qdisc.fq.refill_delay",
        "pause after which a flow of fq counts as new",
        "microseconds, in steps of the kernel's clock tick",
        "qdisc.fq.refill_delay@eth0=40000,100000",
    ],
    "A flow that counts as new sends `qdisc.fq.initial_quantum` at once.",
    &QdiscParameter {
        kind: "fq",
        attribute: 9,
        form: Form::Number(0..=u32::MAX - LONGEST_TICK_US),
    },
);

/// Flows into which fq sorts packets that have no socket.
pub static FQ_ORPHAN_MASK: Setting = row(
    [
        "qdisc.fq.orphan_mask",
        "flows into which fq sorts packets that have no socket",
        "a mask of hash bits, such as 1023",
        "qdisc.fq.orphan_mask@eth0=1023,65535",
    ],
    "A router forwards packets without sockets: with few flows, many connections share one.",
    &QdiscParameter { kind: "fq", attribute: 10, form: Form::Number(0..=u32::MAX) },
);

/// Rate below which fq paces no packets in advance.
pub static FQ_LOW_RATE_THRESHOLD: Setting = row(
    [
        "qdisc.fq.low_rate_threshold",
        "rate below which fq sends each packet of a flow on its own",
        "a rate like 550kbit, or off",
        "qdisc.fq.low_rate_threshold@eth0=550kbit,1mbit",
    ],
    "Flows below the threshold get one packet at a time, without credit for more.",
    &QdiscParameter { kind: "fq", attribute: 11, form: Form::rate("off", 0) },
);

/// Queueing delay beyond which fq marks packets.
pub static FQ_CE_THRESHOLD: Setting = row(
    [
        "qdisc.fq.ce_threshold",
        "queueing delay beyond which fq marks packets",
        "microseconds; 4294967295 never marks",
        "qdisc.fq.ce_threshold@eth0=4294967295,5000",
    ],
    "Flows that understand congestion marks, above all DCTCP, then keep the queue this short (RFC 8257).",
    &QdiscParameter { kind: "fq", attribute: 12, form: Form::Number(0..=u32::MAX) },
);

/// How late the timer of fq may be.
pub static FQ_TIMER_SLACK: Setting = row(
    [
        "qdisc.fq.timer_slack",
        "how late the timer of fq may be",
        "nanoseconds",
        "qdisc.fq.timer_slack@eth0=10000,50000",
    ],
    "A late timer sends more packets at once and costs less CPU; an exact one paces more evenly.",
    &QdiscParameter { kind: "fq", attribute: 13, form: Form::Number(0..=u32::MAX) },
);

/// How far ahead fq takes packets with a time to be sent.
pub static FQ_HORIZON: Setting = row(
    [
        "qdisc.fq.horizon",
        "how far ahead fq takes packets that have a time to be sent",
        "microseconds",
        "qdisc.fq.horizon@eth0=10000000,2000000",
    ],
    "Packets that are to be sent later are dropped, or sent at the horizon (`qdisc.fq.horizon_drop`).",
    &QdiscParameter { kind: "fq", attribute: 14, form: Form::Number(0..=u32::MAX) },
);

/// Whether fq drops packets beyond its horizon.
pub static FQ_HORIZON_DROP: Setting = row(
    [
        "qdisc.fq.horizon_drop",
        "whether fq drops packets beyond its horizon",
        "on or off",
        "qdisc.fq.horizon_drop@eth0=on,off",
    ],
    "Otherwise a packet beyond the horizon is sent at the horizon, earlier than asked for.",
    &QdiscParameter { kind: "fq", attribute: 15, form: Form::ByteWords(&["off", "on"]) },
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

/// What cake calls the classes, by their numbers (include/uapi/linux/pkt_sched.h `CAKE_DIFFSERV_*`).
const DIFFSERV: &[&str] = &["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"];

/// What tc-cake(8) calls the isolation of flows, by numbers (include/uapi/linux/pkt_sched.h `CAKE_FLOW_*`).
const FLOW_MODES: &[&str] = &[
    "flowblind",
    "srchost",
    "dsthost",
    "hosts",
    "flows",
    "dual-srchost",
    "dual-dsthost",
    "triple-isolate",
];

/// Classes into which cake sorts by DSCP.
pub static CAKE_DIFFSERV: Setting = row(
    [
        "qdisc.cake.diffserv",
        "classes into which cake sorts packets by their DSCP",
        "besteffort, precedence, diffserv3, diffserv4 or diffserv8",
        "qdisc.cake.diffserv@eth0=diffserv3,besteffort",
    ],
    "Each class has a share of the rate; with one class, marked traffic waits like all other traffic, and less CPU is needed.",
    &QdiscParameter { kind: "cake", attribute: 3, form: Form::Words(DIFFSERV) },
);

/// Between whom cake shares the rate.
pub static CAKE_FLOWMODE: Setting = row(
    [
        "qdisc.cake.flowmode",
        "between whom cake shares the rate",
        "flowblind, srchost, dsthost, hosts, flows, dual-srchost, dual-dsthost or triple-isolate",
        "qdisc.cake.flowmode@eth0=triple-isolate,flows",
    ],
    "With flows alone, a host with many connections gets most of the rate.",
    &QdiscParameter { kind: "cake", attribute: 5, form: Form::Words(FLOW_MODES) },
);

/// Whether cake looks up hosts behind a NAT.
pub static CAKE_NAT: Setting = row(
    [
        "qdisc.cake.nat",
        "whether cake tells hosts behind this host's NAT apart",
        "on or off",
        "qdisc.cake.nat@eth0=off,on",
    ],
    "Without it, all hosts behind the NAT are one host to `qdisc.cake.flowmode`; it takes a kernel with connection tracking.",
    &QdiscParameter { kind: "cake", attribute: 11, form: Form::Words(&["off", "on"]) },
);

/// Whether cake clears DSCP.
pub static CAKE_WASH: Setting = row(
    [
        "qdisc.cake.wash",
        "whether cake clears the DSCP of what it sends",
        "on or off",
        "qdisc.cake.wash@eth0=off,on",
    ],
    "A network downstream may treat marks that it did not set in any way.",
    &QdiscParameter { kind: "cake", attribute: 13, form: Form::Words(&["off", "on"]) },
);

/// Whether cake counts what it drops.
pub static CAKE_INGRESS: Setting = row(
    [
        "qdisc.cake.ingress",
        "whether cake counts packets that it drops towards its rate",
        "on or off",
        "qdisc.cake.ingress@eth0=off,on",
    ],
    "For what arrives, dropped packets have crossed the slow link already.",
    &QdiscParameter { kind: "cake", attribute: 15, form: Form::Words(&["off", "on"]) },
);

/// Whether cake splits super-packets.
pub static CAKE_SPLIT_GSO: Setting = row(
    [
        "qdisc.cake.split_gso",
        "whether cake splits super-packets",
        "on or off",
        "qdisc.cake.split_gso@eth0=on,off",
    ],
    "Whole super-packets make others wait longer at low rates; splitting them costs CPU at high rates.",
    &QdiscParameter { kind: "cake", attribute: 17, form: Form::Words(&["off", "on"]) },
);

/// The cells of the link below cake's.
pub static CAKE_ATM: Setting = row(
    [
        "qdisc.cake.atm",
        "framing that cake adds to the length of each packet",
        "noatm, atm or ptm",
        "qdisc.cake.atm@eth0=noatm,ptm",
    ],
    "An ADSL link sends whole cells of 48 bytes; without them, cake's rate is above that link's for small packets.",
    &QdiscParameter { kind: "cake", attribute: 4, form: Form::Words(&["noatm", "atm", "ptm"]) },
);

/// Bytes that cake adds to the length of each packet.
pub static CAKE_OVERHEAD: Setting = row(
    [
        "qdisc.cake.overhead",
        "bytes that cake adds to the length of each packet",
        "raw (frames as they are), or bytes from -64 to 256 beside the IP packet",
        "qdisc.cake.overhead@eth0=raw,44",
    ],
    "If the slow link adds more than cake counts, the queue is there, and not here.",
    &QdiscParameter { kind: "cake", attribute: 6, form: Form::Overhead { raw: 12 } },
);

/// Shortest length that cake counts for a packet.
pub static CAKE_MPU: Setting = row(
    [
        "qdisc.cake.mpu",
        "shortest length that cake counts for a packet",
        "bytes from 0 to 256",
        "qdisc.cake.mpu@eth0=0,64",
    ],
    "A link fills up short packets: an Ethernet frame has at least 64 bytes.",
    &QdiscParameter { kind: "cake", attribute: 14, form: Form::Number(0..=256) },
);

/// Memory that the packets in cake may take.
pub static CAKE_MEMLIMIT: Setting = row(
    [
        "qdisc.cake.memlimit",
        "memory that the packets in cake may take",
        "bytes below 4G; 0 lets cake choose by rate and round-trip time",
        "qdisc.cake.memlimit@eth0=0,8388608",
    ],
    "Beyond the limit cake drops from the fattest flow.",
    &QdiscParameter { kind: "cake", attribute: 10, form: Form::Size(0..=u32::MAX) },
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
