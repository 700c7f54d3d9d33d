//! TCP, one flow, sent as every program can: write 128 KiB, read into a buffer.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{CPU, RATE};
use crate::bench::watch::Watch;

pub static CONTEST: Contest = Contest {
    id: "tcp-copy",
    title: "TCP, one flow, 128 KiB a write",
    about: "Every program sends and receives through a buffer, with the kernel's own socket buffers and \
            congestion control. sockperf is missing: its messages have at most 65507 bytes. The last two rows \
            are not programs: one CPU copies a buffer of 128 KiB again and again, then one far larger than its \
            caches. A sender copies each byte once, and a receiver on another CPU copies it once more.",
    places: BOTH,
    load: Load::tcp(128 << 10),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: &[
        with("goodput", &GOODPUT, COPY),
        peer(&IPERF3),
        peer(&IPERF),
        peer(&NUTTCP),
        peer(&QPERF),
        peer(&NETPERF),
        peer(&NEPER),
        reference::COPY_IN_CACHE,
        reference::COPY_IN_MEMORY,
    ],
    columns: &[&RATE, &CPU],
    goals: &[
        AS_FAST,
        AS_CHEAP,
        Goal {
            what: "% of what copying alone allows, in cache",
            of: "goodput",
            measure: &RATE,
            against: Against::PercentOf(reference::COPY_IN_CACHE.name),
            bound: Bound::None,
        },
        Goal {
            what: "% of what copying alone allows, in memory",
            of: "goodput",
            measure: &RATE,
            against: Against::PercentOf(reference::COPY_IN_MEMORY.name),
            bound: Bound::None,
        },
    ],
};
