//! The cost of observing the hosts and the flows during a measurement.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{BESIDE, CPU, RATE};
use crate::bench::watch::Watch;

const WITHOUT: &str = "goodput --no-observe";

pub static CONTEST: Contest = Contest {
    id: "observing",
    title: "The cost of observing",
    about: "TCP, one flow, 128 KiB a write, both ends on one CPU, so that observing takes CPU time from the \
            flows. The measure is the CPU time of all threads except those of the flows, as a share of all CPU \
            time (/proc/PID/task/TID/schedstat, read every 25 ms). These threads agree, observe and report. \
            Flows that could use a whole CPU lose this share of their throughput. The throughput itself is shown \
            too, but it varies more from run to run than observing could change it, even on one CPU. Most of the \
            share is spent before and after the payload, so it is smaller in a longer test.",
    places: ONE_CPU,
    // Without observing there is a sample every 500 ms: both count from the first sample.
    load: Load::tcp(128 << 10).omit_ms(500),
    length: Length::Asked,
    watch: Watch::Threads,
    entries: &[
        with("goodput", &GOODPUT, COPY),
        with(WITHOUT, &GOODPUT, &["--mover", "copy", "--no-observe"]),
    ],
    columns: &[&BESIDE, &RATE, &CPU],
    goals: &[
        Goal {
            what: "CPU beside the flows − that without observing, percentage points",
            of: "goodput",
            measure: &BESIDE,
            against: Against::EntryMinus(WITHOUT),
            bound: Bound::Below(1.0),
        },
        Goal {
            what: "throughput lost, %",
            of: "goodput",
            measure: &RATE,
            against: Against::PercentBelow(WITHOUT),
            bound: Bound::None,
        },
        Goal {
            what: "CPU per byte added, %",
            of: "goodput",
            measure: &CPU,
            against: Against::PercentAbove(WITHOUT),
            bound: Bound::None,
        },
    ],
};
