//! The memory of 256 flows at each end.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{FAR_PEAK, NEAR_PEAK, RATE};
use crate::bench::watch::Watch;

pub static CONTEST: Contest = Contest {
    id: "memory",
    title: "Memory, 256 TCP flows",
    about: "The highest resident memory of each process (`VmHWM`), 10^6 bytes. iperf3 and nuttcp end at 128 \
            flows.",
    places: VETH,
    load: Load::tcp(128 << 10).flows(256),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: &[with("goodput", &GOODPUT, COPY), peer(&IPERF)],
    columns: &[&NEAR_PEAK, &FAR_PEAK, &RATE],
    goals: &[
        Goal {
            what: "client's memory, MB",
            of: "goodput",
            measure: &NEAR_PEAK,
            against: Against::Nothing,
            bound: Bound::Below(40.0),
        },
        Goal {
            what: "server's memory, MB",
            of: "goodput",
            measure: &FAR_PEAK,
            against: Against::Nothing,
            bound: Bound::Below(40.0),
        },
    ],
};
