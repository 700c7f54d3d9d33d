//! What it costs to observe the hosts and the flows during a measurement.

use super::*;
use crate::bench::contest::{Against, Length, Load};
use crate::bench::quantity::{CPU, RATE};
use crate::bench::watch::Watch;

const WITHOUT: &str = "goodput --no-observe";

pub static CONTEST: Contest = Contest {
    id: "observing",
    title: "The cost of observing",
    about: "TCP, one flow, 128 KiB a write, twice as long as the others.",
    places: VETH,
    load: Load::tcp(128 << 10),
    length: Length::Times(2),
    watch: Watch::Nothing,
    entries: &[
        with("goodput", &GOODPUT, COPY),
        with(WITHOUT, &GOODPUT, &["--mover", "copy", "--no-observe"]),
    ],
    columns: &[&RATE, &CPU],
    goals: &[
        Goal {
            what: "throughput lost, %",
            of: "goodput",
            quantity: &RATE,
            against: Against::PercentBelow(WITHOUT),
            bound: Bound::Below(1.0),
        },
        Goal {
            what: "CPU per byte added, %",
            of: "goodput",
            quantity: &CPU,
            against: Against::PercentAbove(WITHOUT),
            bound: Bound::Below(1.0),
        },
    ],
};
