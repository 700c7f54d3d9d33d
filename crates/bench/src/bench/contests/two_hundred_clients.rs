//! Many clients at the same time.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{FAILED, RATE};
use crate::bench::watch::Watch;

pub static CONTEST: Contest = Contest {
    id: "two-hundred-clients",
    title: "200 clients at once, a TCP flow each",
    about: "Each client is a process. The rate is the payload of all clients over the time from the first start to \
            the last end, so it has the time in which they start, agree and report. iperf3 serves one client at a \
            time. nuttcp is missing: a server that serves several goes to the background.",
    places: VETH,
    load: Load::tcp(128 << 10).clients(200),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: &[with("goodput", &GOODPUT, COPY), peer(&IPERF), peer(&NETPERF)],
    columns: &[&RATE, &FAILED],
    goals: &[
        Goal {
            what: "clients that failed, %",
            of: "goodput",
            measure: &FAILED,
            against: Against::Nothing,
            bound: Bound::AtMost(0.0),
        },
        AS_FAST,
    ],
};
