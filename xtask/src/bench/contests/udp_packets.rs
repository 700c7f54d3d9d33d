//! UDP, one flow of datagrams of 64 bytes: how many are received.

use super::*;
use crate::bench::contest::{Against, Length, Load};
use crate::bench::quantity::{CPU, LOSS, PACKETS};
use crate::bench::watch::Watch;

pub static CONTEST: Contest = Contest {
    id: "udp-packets",
    title: "UDP, one flow, 64 bytes a datagram",
    about: "As fast as each program sends, with the kernel's own socket buffers.",
    places: VETH,
    load: Load::udp(64),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: &[
        with("goodput, gso", &GOODPUT, &["--mover", "gso"]),
        with("goodput, datagram", &GOODPUT, &["--mover", "datagram"]),
        peer(&IPERF3),
        peer(&IPERF),
        peer(&NUTTCP),
        peer(&QPERF),
        peer(&SOCKPERF),
    ],
    columns: &[&PACKETS, &LOSS, &CPU],
    goals: &[
        Goal {
            what: "packets received / iperf3",
            of: "goodput, gso",
            quantity: &PACKETS,
            against: Against::Entry("iperf3"),
            bound: Bound::AtLeast(5.0),
        },
        Goal {
            what: "packets received / best peer",
            of: "goodput, gso",
            quantity: &PACKETS,
            against: Against::BestPeer(&PACKETS),
            bound: Bound::None,
        },
        Goal {
            what: "packets received, no joined datagrams / iperf3",
            of: "goodput, datagram",
            quantity: &PACKETS,
            against: Against::Entry("iperf3"),
            bound: Bound::None,
        },
    ],
};
