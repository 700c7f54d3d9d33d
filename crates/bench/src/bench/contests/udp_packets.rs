//! UDP, one flow of datagrams of 64 bytes: how many are received.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{CPU, LOSS, PACKETS};
use crate::bench::watch::Watch;

pub(super) const JOINED: &str = "goodput, gso and gro";
pub(super) const MANY_A_CALL: &str = "goodput, datagram";
pub(super) const ONE_A_CALL: &str = "goodput, plain";
pub(super) const AUTO: &str = "goodput, auto";

/// Every way in which goodput sends datagrams, and every peer.
pub(super) const ENTRIES: &[Entry] = &[
    with(JOINED, &GOODPUT, &["--mover", "gso", "--receive-mover", "gro"]),
    with(MANY_A_CALL, &GOODPUT, &["--mover", "datagram"]),
    with(ONE_A_CALL, &GOODPUT, &["--mover", "plain"]),
    with(AUTO, &GOODPUT, &["--mover", "auto"]),
    peer(&IPERF3),
    newest("iperf3 --gsro", &IPERF3, &["--gsro"]),
    peer(&IPERF),
    peer(&NUTTCP),
    peer(&QPERF),
    peer(&SOCKPERF),
    peer(&NETPERF),
];

/// Relative to the best peer of those that send and receive one datagram a call, as programs do without further options.
pub(super) const fn over_best_single_datagrams(
    of: &'static str,
    what: &'static str,
    measure: &'static Measure,
    at_least: f64,
) -> Goal {
    let (against, bound) = (Against::BestUsualPeer(measure), Bound::AtLeast(at_least));
    Goal { what, of, measure, against, bound }
}

pub static CONTEST: Contest = Contest {
    id: "udp-packets",
    title: "UDP, one flow, 64 bytes a datagram",
    about: "As fast as each program sends. goodput asks for a receive buffer of 4 MiB; the other programs keep \
            the kernel's. `gso and gro` hands many datagrams to the kernel as one packet and receives them the \
            same way, `datagram` moves several in one system call, `plain` moves one, as the peers do without \
            further options.",
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
            measure: &PACKETS,
            against: Against::Entry("iperf3"),
            bound: Bound::AtLeast(5.0),
        },
        Goal {
            what: "packets received / best peer",
            of: JOINED,
            measure: &PACKETS,
            against: Against::BestPeer(&PACKETS),
            bound: Bound::None,
        },
        over_best_single_datagrams(
            ONE_A_CALL,
            "packets received, one datagram a call / best such peer",
            &PACKETS,
            1.3,
        ),
        over_best_single_datagrams(
            MANY_A_CALL,
            "packets received, several datagrams a call / best peer with one",
            &PACKETS,
            2.0,
        ),
        auto_over_best_choice(AUTO, &PACKETS),
    ],
};
