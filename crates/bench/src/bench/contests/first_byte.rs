//! How soon after its start a program sends payload.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::FIRST_BYTE;
use crate::bench::watch::Watch;

pub static CONTEST: Contest = Contest {
    id: "first-byte",
    title: "From start to first byte",
    about: "From just before the client is started to the first segment of payload on a data connection, by \
            the kernel's time of that packet on the loopback device.",
    places: LOOPBACK,
    load: Load::tcp(128 << 10),
    length: Length::OneSecond,
    watch: Watch::FirstByte,
    entries: &[
        with("goodput", &GOODPUT, COPY),
        peer(&IPERF3),
        peer(&IPERF),
        peer(&NUTTCP),
        peer(&QPERF),
    ],
    columns: &[&FIRST_BYTE],
    goals: &[Goal {
        what: "first byte after, ms",
        of: "goodput",
        measure: &FIRST_BYTE,
        against: Against::Nothing,
        bound: Bound::Below(20.0),
    }],
};
