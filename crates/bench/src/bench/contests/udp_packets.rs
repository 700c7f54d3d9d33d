//! UDP, one flow of datagrams of 64 bytes: how many are received.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::quantity::{CPU, LOSS, PACKETS};
use crate::bench::watch::Watch;

pub(super) const JOINED: &str = "goodput, gso and gro";
pub(super) const MANY_A_CALL: &str = "goodput, datagram";

/// Every way in which goodput sends datagrams, and every peer.
pub(super) const ENTRIES: &[Entry] = &[
    with(JOINED, &GOODPUT, &["--mover", "gso", "--receive-mover", "gro"]),
    with(MANY_A_CALL, &GOODPUT, &["--mover", "datagram"]),
    with("goodput, plain", &GOODPUT, &["--mover", "plain"]),
    peer(&IPERF3),
    newest("iperf3 --gsro", &IPERF3, &["--gsro"]),
    peer(&IPERF),
    peer(&NUTTCP),
    peer(&QPERF),
    peer(&SOCKPERF),
    peer(&NETPERF),
];

pub static CONTEST: Contest = Contest {
    id: "udp-packets",
    title: "UDP, one flow, 64 bytes a datagram",
    about: "As fast as each program sends. goodput asks for a receive buffer of 4 MiB; the other programs keep \
            the kernel's. `gso and gro` hands many datagrams to the kernel as one packet and receives them the \
            same way, `datagram` moves several in one system call, `plain` moves one.",
    places: VETH,
    load: Load::udp(64),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: ENTRIES,
    columns: &[&PACKETS, &LOSS, &CPU],
    goals: &[
        Goal {
            what: "packets received / iperf3",
            of: JOINED,
            quantity: &PACKETS,
            against: Against::Entry("iperf3"),
            bound: Bound::AtLeast(5.0),
        },
        Goal {
            what: "packets received / best peer",
            of: JOINED,
            quantity: &PACKETS,
            against: Against::BestPeer(&PACKETS),
            bound: Bound::None,
        },
        Goal {
            what: "packets received, no joined datagrams / iperf3",
            of: MANY_A_CALL,
            quantity: &PACKETS,
            against: Against::Entry("iperf3"),
            bound: Bound::None,
        },
    ],
};
