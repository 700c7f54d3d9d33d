//! UDP, one flow of datagrams that fill a packet: how many are received, and how many are lost.

use super::udp_packets::{
    AUTO, ENTRIES, JOINED, MANY_A_CALL, ONE_A_CALL, over_best_single_datagrams,
};
use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{CPU, LOSS, RATE};
use crate::bench::watch::Watch;

pub static CONTEST: Contest = Contest {
    id: "udp-throughput",
    title: "UDP, one flow, 1472 bytes a datagram",
    about: "As fast as each program sends. goodput asks for a receive buffer of 4 MiB; the other programs keep \
            the kernel's. `gso and gro` hands many datagrams to the kernel as one packet and receives them the \
            same way, `datagram` moves several in one system call, `plain` moves one, as the peers do without \
            further options. 1472 bytes fill a packet of 1500.",
    places: VETH,
    load: Load::udp(1472),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: ENTRIES,
    columns: &[&RATE, &LOSS, &CPU],
    goals: &[
        over_best_peer(JOINED, Bound::AtLeast(2.0)),
        Goal {
            what: "loss − that of the best peer, percentage points",
            of: JOINED,
            measure: &LOSS,
            against: Against::BestPeerMinus(&RATE),
            bound: Bound::Below(0.0),
        },
        over_best_single_datagrams(
            ONE_A_CALL,
            "throughput, one datagram a call / best such peer",
            &RATE,
            1.3,
        ),
        over_best_single_datagrams(
            MANY_A_CALL,
            "throughput, several datagrams a call / best peer with one",
            &RATE,
            2.0,
        ),
        auto_over_best_choice(AUTO, &RATE),
        Goal {
            what: "loss, no joined datagrams − that of the best peer, percentage points",
            of: MANY_A_CALL,
            measure: &LOSS,
            against: Against::BestPeerMinus(&RATE),
            bound: Bound::None,
        },
    ],
};
