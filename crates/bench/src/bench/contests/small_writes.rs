//! TCP, one flow, in writes of 1500 bytes, for which system calls cost more than copying.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{CPU, RATE};
use crate::bench::watch::Watch;

const AUTO: &str = "goodput, auto";

pub static CONTEST: Contest = Contest {
    id: "small-writes",
    title: "TCP, one flow, 1500 bytes a write",
    about: "`copy` makes a system call for each write, like all other programs. `writev` and `uring` hand many \
            writes to the kernel in one call. The last row is not a program: it shows the rate if each 1500 \
            bytes cost one system call that does nothing. The rest is the kernel's cost: over an idle path each \
            write becomes a packet of its own, whichever program wrote it. The best of five peers is the one \
            that was luckiest with its CPUs in that round.",
    places: VETH,
    load: Load::tcp(1500),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: &[
        with("goodput, copy", &GOODPUT, COPY),
        with("goodput, writev", &GOODPUT, &["--mover", "writev"]),
        with("goodput, uring", &GOODPUT, &["--mover", "uring"]),
        with(AUTO, &GOODPUT, &["--mover", "auto"]),
        with(
            "goodput, writev and discard",
            &GOODPUT,
            &["--mover", "writev", "--receive-mover", "discard"],
        ),
        with("goodput, splice and discard", &GOODPUT, UNTOUCHED),
        peer(&IPERF3),
        peer(&IPERF),
        peer(&NUTTCP),
        peer(&QPERF),
        peer(&SOCKPERF),
        peer(&NETPERF),
        peer(&NEPER),
        reference::CALLS,
    ],
    columns: &[&RATE, &CPU],
    goals: &[
        Goal {
            what: "throughput / iperf3",
            of: "goodput, writev",
            measure: &RATE,
            against: Against::Entry("iperf3"),
            bound: Bound::AtLeast(3.0),
        },
        Goal {
            what: "throughput, one call a write / iperf3",
            of: "goodput, copy",
            measure: &RATE,
            against: Against::Entry("iperf3"),
            bound: Bound::None,
        },
        Goal {
            what: "throughput, one call a write / best peer",
            of: "goodput, copy",
            measure: &RATE,
            against: Against::BestPeer(&RATE),
            bound: Bound::AtLeast(1.3),
        },
        auto_over_best_choice(AUTO, &RATE),
        Goal {
            what: "% of what empty system calls alone allow",
            of: "goodput, copy",
            measure: &RATE,
            against: Against::PercentOf(reference::CALLS.name),
            bound: Bound::None,
        },
    ],
};
