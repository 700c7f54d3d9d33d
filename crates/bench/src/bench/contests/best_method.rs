//! TCP, one flow, each program with its fastest method.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::quantity::{CPU, RATE};
use crate::bench::watch::Watch;

const OURS: &str = "goodput, splice and discard";

const AUTO: &str = "goodput, auto";

pub static CONTEST: Contest = Contest {
    id: "best-method",
    title: "TCP, one flow, best method against best method",
    about: "goodput sends pages without a copy, and the receiver's kernel drops the payload. `auto` takes the \
            best way that the program knows for each end. iperf3 sends with `--zerocopy`; from 3.19 on it drops \
            with `--skip-rx-copy`. The other programs have one way only. All use the congestion control of the \
            host; the next contest shows what that costs.",
    places: BOTH,
    load: Load::tcp(128 << 10),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: &[
        with(OURS, &GOODPUT, UNTOUCHED),
        with(AUTO, &GOODPUT, &["--mover", "auto"]),
        with("iperf3 --zerocopy", &IPERF3, &["--zerocopy"]),
        newest("iperf3 --zerocopy --skip-rx-copy", &IPERF3, &["--zerocopy", "--skip-rx-copy"]),
        peer(&IPERF),
        peer(&NUTTCP),
        peer(&NETPERF),
        reference::COPY_IN_CACHE,
    ],
    columns: &[&RATE, &CPU],
    goals: &[
        over_best_peer(OURS, Bound::AtLeast(2.0)),
        over_best_peer(AUTO, Bound::None),
        cpu_over_that_peer(OURS, Bound::None),
        Goal {
            what: "% of what copying alone allows, in cache",
            of: OURS,
            quantity: &RATE,
            against: Against::PercentOf(reference::COPY_IN_CACHE.name),
            bound: Bound::None,
        },
    ],
};
