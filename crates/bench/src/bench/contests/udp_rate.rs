//! UDP at a rate: how exact its mean is, and how even its packets are.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{CPU, EVEN_GAPS, LOSS, RATE_ERROR};
use crate::bench::watch::Watch;

pub static CONTEST: Contest = Contest {
    id: "udp-rate",
    title: "UDP at 1 Gbit/s, 1472 bytes a datagram",
    about: "Both are measured of all programs alike, outside of them: from the kernel's time of each packet at \
            the receiving device (tcpdump, nanoseconds, at the lowest priority). The mean is from the first \
            packet to the last; the ideal gap is 11.776 µs. Datagrams that the kernel handled as one \
            packet have gaps of zero. qperf has no rate.",
    places: VETH,
    load: Load::udp(1472).at(1_000_000_000),
    length: Length::Asked,
    watch: Watch::Even,
    entries: &[
        with("goodput", &GOODPUT, &["--mover", "datagram"]),
        peer(&IPERF3),
        peer(&IPERF),
        peer(&NUTTCP),
        peer(&SOCKPERF),
    ],
    columns: &[&RATE_ERROR, &EVEN_GAPS, &LOSS, &CPU],
    goals: &[
        Goal {
            what: "mean off by, %",
            of: "goodput",
            measure: &RATE_ERROR,
            against: Against::Nothing,
            bound: Bound::AtMost(0.1),
        },
        Goal {
            what: "gaps within 20 % of the ideal, %",
            of: "goodput",
            measure: &EVEN_GAPS,
            against: Against::Nothing,
            bound: Bound::AtLeast(99.0),
        },
        Goal {
            what: "even gaps − those of the best peer, percentage points",
            of: "goodput",
            measure: &EVEN_GAPS,
            against: Against::BestPeerMinus(&EVEN_GAPS),
            bound: Bound::Above(0.0),
        },
        Goal {
            what: "mean's error − that of the best peer, percentage points",
            of: "goodput",
            measure: &RATE_ERROR,
            against: Against::BestPeerMinus(&RATE_ERROR),
            bound: Bound::Below(0.0),
        },
    ],
};
