//! What a server costs while no client is there.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::AT_REST;
use crate::bench::watch::Watch;

pub static CONTEST: Contest = Contest {
    id: "at-rest",
    title: "A server at rest",
    about: "Each server has no client. The CPU time of its threads (/proc/PID/task/TID/schedstat), half a second \
            after it began to listen, per second. 1000 µs/s are a tenth of a percent of a CPU.",
    places: VETH,
    load: Load::tcp(128 << 10),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: &[
        at_rest(&GOODPUT),
        at_rest(&IPERF3),
        at_rest(&IPERF),
        at_rest(&NUTTCP),
        at_rest(&NETPERF),
    ],
    columns: &[&AT_REST],
    goals: &[
        Goal {
            what: "CPU at rest, µs/s",
            of: "goodput",
            measure: &AT_REST,
            against: Against::Nothing,
            bound: Bound::Below(1000.0),
        },
        Goal {
            what: "CPU at rest − that of the best peer, µs/s",
            of: "goodput",
            measure: &AT_REST,
            against: Against::BestPeerMinus(&AT_REST),
            bound: Bound::None,
        },
    ],
};

const fn at_rest(program: &'static Program) -> Entry {
    Entry { name: program.name, kind: Kind::AtRest(program) }
}
